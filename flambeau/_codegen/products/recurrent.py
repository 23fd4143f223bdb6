"""One step of gated recurrent layers, everything but its matrix product, and the derivative of such a step.

All arrays are rows without gaps: a row for each sample, `width` numbers in it for each gate.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from ..arrays import Arguments
from ..build import Builder, Value
from ..functions import sigmoid, tanh
from ..kernel import kernel
from ..shares import ELEMENTS, steps_worth
from ..types import SCALARS, Scalar

Rows = Callable[[int, int], Value]
"""Reads an array of a row: its number among the kernel's arguments, and the gate."""
Write = Callable[[int, int, Value], None]


def _over_rows(
    b: Builder,
    arguments: Arguments,
    scalar: Scalar,
    gates: tuple[int, ...],
    body: Callable[[Builder, Rows, Write], None],
) -> None:
    """Run `body` for every place in a row of every sample. `gates` says how many gates each array has.

    The last array has one, and says how many samples and places there are.
    """
    arrays = [arguments.array(number) for number in range(len(gates))]
    pointers = [array.data for array in arrays]
    rows, width = arrays[-1].size(0), arrays[-1].size(1)
    grain = steps_worth(b, width, ELEMENTS // 8)
    shares = b.parallel(rows, grain, width, *pointers, unlock=True)
    with shares as (c, begin, end, (width_, *places)), c.loop(begin, end) as row:
        for column, lanes in c.lanes(0, width_, 32 // scalar.size):

            def position(number: int, gate: int, column: Value = column) -> Value:
                return row * (width_ * gates[number]) + width_ * gate + column

            def read(number: int, gate: int = 0, lanes: int = lanes) -> Value:
                return c.load(places[number], scalar, position(number, gate), lanes)

            def write(number: int, gate: int, value: Value) -> None:
                c.store(places[number], scalar, position(number, gate), value)

            body(c, read, write)


LSTM_STEP = (4, 4, 1, 1, 1, 1)
"""How many gates each array of `lstm_step` has."""


def lstm_step_of_element(c: Builder, read: Rows, write: Write) -> None:
    """What `lstm_step` does for one place of one sample."""
    enter, forget, new, leave = (
        (tanh if gate == 2 else sigmoid)(c, read(0, gate) + read(1, gate)) for gate in range(4)
    )
    for gate, value in enumerate((enter, forget, new, leave)):
        write(0, gate, value)
    cell = c.fma(forget, read(5, 0), enter * new)
    shown = tanh(c, cell)
    write(2, 0, cell)
    write(3, 0, shown)
    write(4, 0, leave * shown)


@kernel
def lstm_step(b: Builder, arguments: Arguments, dtype: str) -> None:
    """(gates, product, cells, shown, output, before): gates hold the input's part, then what was made of it."""
    _over_rows(b, arguments, SCALARS[dtype], LSTM_STEP, lstm_step_of_element)


LSTM_STEP_BACKWARD = (4, 1, 4, 1, 1, 1, 1)
"""How many gates each array of `lstm_step_backward` has."""


def lstm_step_backward_of_element(c: Builder, read: Rows, write: Write, with_output: bool) -> None:
    """What `lstm_step_backward` does for one place of one sample."""
    enter, forget, new, leave = (read(2, gate) for gate in range(4))
    before, shown = read(3, 0), read(5, 0)
    of_state = read(6, 0)
    if with_output:
        of_state = of_state + read(4, 0)
    of_cell = read(1, 0) + of_state * leave * (1 - shown * shown)
    write(0, 0, of_cell * new * enter * (1 - enter))
    write(0, 1, of_cell * before * forget * (1 - forget))
    write(0, 2, of_cell * enter * (1 - new * new))
    write(0, 3, of_state * shown * leave * (1 - leave))
    write(1, 0, of_cell * forget)


@kernel
def lstm_step_backward(b: Builder, arguments: Arguments, dtype: str, with_output: bool) -> None:
    """(of_products, of_cell, gates, before, of_output, shown, of_hidden): `of_cell` becomes that of the step before."""
    _over_rows(
        b,
        arguments,
        SCALARS[dtype],
        LSTM_STEP_BACKWARD,
        partial(lstm_step_backward_of_element, with_output=with_output),
    )


GRU_STEP = (4, 3, 3, 1, 1)
"""How many gates each array of `gru_step` has."""


def gru_step_of_element(c: Builder, read: Rows, write: Write) -> None:
    """What `gru_step` does for one place of one sample."""
    reset = sigmoid(c, read(1, 0) + read(2, 0))
    update = sigmoid(c, read(1, 1) + read(2, 1))
    product = read(2, 2)
    new = tanh(c, c.fma(reset, product, read(1, 2)))
    for gate, value in enumerate((reset, update, new, product)):
        write(0, gate, value)
    write(3, 0, c.fma(read(4, 0) - new, update, new))


@kernel
def gru_step(b: Builder, arguments: Arguments, dtype: str) -> None:
    """(gates, from_input, from_state, output, before): gates are reset, update, the candidate and its product."""
    _over_rows(b, arguments, SCALARS[dtype], GRU_STEP, gru_step_of_element)


GRU_STEP_BACKWARD = (3, 3, 1, 4, 1, 1, 1)
"""How many gates each array of `gru_step_backward` has."""


def gru_step_backward_of_element(c: Builder, read: Rows, write: Write, with_output: bool) -> None:
    """What `gru_step_backward` does for one place of one sample."""
    reset, update, new, product = (read(3, gate) for gate in range(4))
    of_hidden = read(6, 0)
    if with_output:
        of_hidden = of_hidden + read(4, 0)
    of_new = of_hidden * (1 - update) * (1 - new * new)
    of_reset = of_new * product * reset * (1 - reset)
    of_update = of_hidden * (read(5, 0) - new) * update * (1 - update)
    for number, last in ((0, of_new * reset), (1, of_new)):
        for gate, value in enumerate((of_reset, of_update, last)):
            write(number, gate, value)
    write(2, 0, of_hidden * update)


@kernel
def gru_step_backward(b: Builder, arguments: Arguments, dtype: str, with_output: bool) -> None:
    """(of_state, of_input, kept, gates, of_output, before, of_hidden): the gradients of both products.

    `kept` is what goes straight to the state before.
    """
    _over_rows(
        b, arguments, SCALARS[dtype], GRU_STEP_BACKWARD, partial(gru_step_backward_of_element, with_output=with_output)
    )
