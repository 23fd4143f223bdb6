"""Keeping primitives, running them on addresses, the reorders around them and packed weights, on a stand-in."""

from __future__ import annotations

import pytest

from flambeau._backends.cpu.onednn import primitives
from flambeau._backends.cpu.onednn.constants import BIAS, DST, F32, SCRATCHPAD, SRC, WEIGHTS
from flambeau._backends.cpu.onednn.library import Unsupported
from flambeau._backends.cpu.onednn.memory import descriptor
from flambeau._backends.cpu.onednn.primitives import Argument, PackedWeights, Primitive, cached, described
from tests._backends.cpu.onednn.stand_in import Layout, StandIn

PLAIN = (3, 1)
OTHER = Layout((2, 3), (1, 2), F32)


def product(stand_in: StandIn, *reordered: int) -> Primitive:
    """A primitive of two operands and a result, which wants the given arguments in another layout."""
    for number in (SRC, WEIGHTS, DST):
        stand_in.wanted[number] = OTHER if number in reordered else Layout((2, 3), PLAIN, F32)
    layout = descriptor((2, 3), PLAIN, F32)
    arguments = [Argument(SRC, layout), Argument(WEIGHTS, layout), Argument(DST, layout, True)]
    return Primitive(described("matmul", layout, layout, None, layout), arguments)


# ----- keeping ------------------------------------------------------------------------------------------------------


def test_results_are_kept_by_key_and_thread_count(stand_in: StandIn) -> None:
    built: list[tuple[int, ...]] = []

    @cached
    def build(*key: int) -> object:
        built.append(key)
        return object()

    first = build(1, 2)
    assert build(1, 2) is first
    assert build(2, 1) is not first
    stand_in.thread_count = 2
    assert build(1, 2) is not first
    stand_in.thread_count = 1
    assert build(1, 2) is first
    assert built == [(1, 2), (2, 1), (1, 2)]
    primitives.clear()
    assert build(1, 2) is not first


def test_that_something_is_unsupported_is_kept_too(stand_in: StandIn) -> None:
    built: list[int] = []

    @cached
    def build(key: int) -> object:
        built.append(key)
        raise Unsupported("not this")

    for _ in range(3):
        with pytest.raises(Unsupported, match="not this"):
            build(1)
    assert built == [1]


def test_other_errors_are_not_kept(stand_in: StandIn) -> None:
    built: list[int] = []

    @cached
    def build(key: int) -> object:
        built.append(key)
        raise MemoryError

    for _ in range(2):
        with pytest.raises(MemoryError):
            build(1)
    assert built == [1, 1]


def test_reference_code_is_refused_unless_allowed(stand_in: StandIn, monkeypatch: pytest.MonkeyPatch) -> None:
    layout = descriptor((2, 3), PLAIN, F32)
    stand_in.implementation = b"ref:any"
    with pytest.raises(Unsupported, match="only reference code for this matmul"):
        described("matmul", layout, layout, None, layout)
    described("matmul", layout, layout, None, layout, reference=True)
    monkeypatch.setattr(primitives, "reference_allowed", True)
    described("matmul", layout, layout, None, layout)
    stand_in.implementation = b"brgemm:avx512_core"
    monkeypatch.undo()


def test_descriptor_is_made_with_engine_first_and_attributes_last(stand_in: StandIn) -> None:
    layout = descriptor((2, 3), PLAIN, F32)
    described("matmul", layout, layout, None, layout)
    name, *args = stand_in.asked[-1]
    assert name == "matmul_primitive_desc_create"
    value = layout.value
    assert args == [stand_in.engine.value, value, value, None, value, stand_in.attributes.value]


# ----- running ------------------------------------------------------------------------------------------------------


def test_run_passes_each_argument_with_its_address(stand_in: StandIn) -> None:
    product(stand_in).run([100, 200, 300])
    assert stand_in.executed == [[(SRC, 100), (WEIGHTS, 200), (DST, 300)]]


def test_only_changed_addresses_are_stored(stand_in: StandIn) -> None:
    made = product(stand_in)
    made.run([100, 200, 300])
    count = len(stand_in.handles_set)
    made.run([100, 200, 300])
    assert len(stand_in.handles_set) == count
    made.run([100, 200, 400])
    assert len(stand_in.handles_set) == count + 1
    assert stand_in.executed[-1] == [(SRC, 100), (WEIGHTS, 200), (DST, 400)]


def test_memory_objects_in_use_are_left_alone(stand_in: StandIn) -> None:
    made = product(stand_in)
    made.run([1, 2, 3])
    in_use = made._idle.pop()  # as if another thread were running with them
    made.run([4, 5, 6])
    assert in_use.addresses == [1, 2, 3]
    assert [each.addresses for each in made._idle] == [[4, 5, 6]]


def test_scratchpad_is_the_last_argument_and_goes_back(stand_in: StandIn) -> None:
    stand_in.scratch = 5000
    made = product(stand_in)
    made.run([1, 2, 3])
    made.run([1, 2, 3])
    first, second = stand_in.executed
    assert first[-1][0] == SCRATCHPAD
    assert first[-1][1] % 64 == 0
    assert second == first  # the same buffer


def test_operand_in_another_layout_is_reordered_first(stand_in: StandIn) -> None:
    made = product(stand_in, SRC)
    assert made.reordered == [SRC]
    made.run([100, 200, 300])
    reorder, run = stand_in.executed
    (_, source), (_, target) = reorder
    assert source == 100
    assert run == [(SRC, target), (WEIGHTS, 200), (DST, 300)]


def test_result_in_another_layout_is_reordered_afterwards(stand_in: StandIn) -> None:
    made = product(stand_in, DST)
    made.run([100, 200, 300])
    run, reorder = stand_in.executed
    assert run[:2] == [(SRC, 100), (WEIGHTS, 200)]
    assert reorder == [(SRC, run[2][1]), (DST, 300)]
    source, target = next(each for each in stand_in.asked if each[0] == "reorder_primitive_desc_create")[1:4:2]
    assert stand_in.layouts[source] == OTHER
    assert stand_in.layouts[target] == Layout((2, 3), PLAIN, F32)


def test_reordered_arguments_have_buffers_of_their_own(stand_in: StandIn) -> None:
    made = product(stand_in, SRC, WEIGHTS, DST)
    made.run([100, 200, 300])
    *_, run, _ = stand_in.executed
    assert len({address for _, address in run}) == 3
    assert not {address for _, address in run} & {100, 200, 300}


def test_argument_without_a_layout_takes_the_primitives(stand_in: StandIn) -> None:
    layout = descriptor((2, 3), PLAIN, F32)
    made = Primitive(described("matmul", layout, layout, None, layout), [Argument(BIAS, None)])
    assert made.reordered == []


# ----- packed weights -----------------------------------------------------------------------------------------------


def test_packed_weights_are_reordered_once_for_each_version(stand_in: StandIn) -> None:
    made = product(stand_in, WEIGHTS)
    packed = PackedWeights()
    for _ in range(2):
        made.run([100, 200, 300], packed.at(0), 1)
    reorder, first, second = stand_in.executed
    assert reorder[0] == (SRC, 200)
    assert first == second
    assert first[1] == (WEIGHTS, reorder[1][1])
    made.run([100, 200, 300], packed.at(1), 1)
    assert len(stand_in.executed) == 5


def test_packed_weights_serve_every_primitive_with_their_layout(stand_in: StandIn) -> None:
    packed = PackedWeights().at("version")
    product(stand_in, WEIGHTS).run([100, 200, 300], packed, 1)
    product(stand_in, WEIGHTS).run([100, 200, 300], packed, 1)
    assert len(stand_in.executed) == 3
    stand_in.wanted[WEIGHTS] = Layout((2, 3), (1, 4), F32)
    layout = descriptor((2, 3), PLAIN, F32)
    other = Primitive(described("matmul", layout), [Argument(WEIGHTS, layout)])
    other.run([200], packed, 0)
    assert len(stand_in.executed) == 5


def test_operands_that_need_no_reorder_are_not_packed(stand_in: StandIn) -> None:
    packed = PackedWeights().at(0)
    product(stand_in).run([100, 200, 300], packed, 1)
    assert packed._copies == []
