"""What a program makes of the sizes of its inputs: exported, decomposed, read from a file and recorded by `make_fx`."""

from __future__ import annotations

import io
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import flambeau as T
from tests.support.differential import differential

_OF_BOTH: dict[str, Callable[[Any, Any], Any]] = {
    "times a power": lambda torch, x: x * x.shape[0] ** -0.5,
    "times a half": lambda torch, x: x * (x.shape[0] * 0.5),
    "times a reciprocal": lambda torch, x: x * (1 / x.shape[0]),
    "an integer": lambda torch, x: (x, x.shape[0] * 2),
    "the number of elements": lambda torch, x: (x, x.numel()),
    "a quotient": lambda torch, x: (x, x.shape[0] / 2),
    "a sum": lambda torch, x: (x, x.shape[0] + 1.5),
    "a shape": lambda torch, x: (x, tuple(x.shape)),
    "in a dict": lambda torch, x: {"n": x.size(0) - 1, "x": x},
    "filled": lambda torch, x: torch.full((2,), x.shape[0]),
    "filled with a float": lambda torch, x: torch.full((2,), x.shape[0] / 3),
    "a tensor": lambda torch, x: torch.tensor(x.shape[0]),
    "a tensor of two": lambda torch, x: torch.tensor([x.shape[0], 3]),
    "a tensor of a float": lambda torch, x: torch.tensor(x.shape[0] / 3.0),
    "a limit": lambda torch, x: x.clamp(max=x.shape[0] / 10),
    "a diagonal": lambda torch, x: torch.ones(x.shape[0], x.shape[0]).tril(diagonal=x.shape[0] // 2),
    "a view": lambda torch, x: x.view(x.shape[0] * 2, -1).softmax(-1),
    "the smallest size": lambda torch, x: x.new_zeros(max(x.shape[0], 3)),
    "the larger size": lambda torch, x: x * max(x.shape[0], x.shape[1]),
    "sym_min": lambda torch, x: x * torch.sym_min(x.shape[0], 6),
    "sym_max": lambda torch, x: x.new_ones(torch.sym_max(x.shape[0], 6)),
    "nothing": lambda torch, x: [x, x],
}
_OURS: dict[str, Callable[[Any, Any], Any]] = {
    "over a root": lambda torch, x: x / math.sqrt(x.shape[0]),
    "epsilon": lambda torch, x: torch.nn.functional.layer_norm(x, (4,), eps=1 / x.shape[0]),
    "data of NumPy": lambda torch, x: x + torch.from_numpy(np.full((1,), x.shape[0], np.float32)),
    "halves": lambda torch, x: x[: x.shape[0] // 2],
    "halves rounded up": lambda torch, x: x[: (x.shape[0] + 1) // 2],
}
_BOUNDED_OR_ROUNDED: dict[str, Callable[[Any], Any]] = {
    "at least": lambda x: x.new_zeros(max(x.shape[0], 3)),
    "at most": lambda x: x[: min(x.shape[0], 3)] * 2,
    "at most half": lambda x: x[: min(x.shape[0] // 2, 3)] * 2,
    "less, not below zero": lambda x: x * max(x.shape[0] - 6, 0),
    "twice as many, not less than nine": lambda x: x * max(2 * x.shape[0] - 3, 9),
    "thirds rounded up": lambda x: x[: -(-x.shape[0] // 3)] * 2,
    "eighths rounded up": lambda x: x * -(-x.shape[0] // 8),
    "quarters": lambda x: x * (x.shape[0] // 4),
    "over at most eight": lambda x: x / min(x.shape[0], 8),
    "the rest": lambda x: x * (x.shape[0] % 4),
    "a distance": lambda x: x * abs(x.shape[0] - 4),
    "between": lambda x: x * min(max(x.shape[0], 4), 8),
}
_REFUSED = ("at most half", "the rest", "a distance", "between")
_REFUSED_AT_TWO_ROWS = ("less, not below zero", "twice as many, not less than nine")
_UNKNOWN: dict[str, Callable[[Any, Any], Any]] = {
    "a truth": lambda torch, x: (x, x.shape[0] > 6),
    "a text": lambda torch, x: (x, str(x.shape[0])),
    "a logarithm": lambda torch, x: x * math.log(x.shape[0]),
    "a decision": lambda torch, x: x + 1 if x.shape[0] > 6 else x - 1,
    "another structure": lambda torch, x: (x,) if x.shape[0] < 7 else (x, x),
    "None or a number": lambda torch, x: (x, None if x.shape[0] < 7 else 1),
    "an option": lambda torch, x: x.sum(0, keepdim=x.shape[0] > 6),
    "positions": lambda torch, x: x[[0, x.shape[0] - 1]],
    "up to a multiple": lambda torch, x: x.new_ones((x.shape[0] + 7) // 8 * 8),
    "an array": lambda torch, x: x + torch.from_numpy(np.ones((x.shape[0], 1), np.float32)),
    "a loop": lambda torch, x: sum(x[i] for i in range(x.shape[0])),
}


def _module(torch: Any, function: Callable[[Any, Any], Any]) -> Any:
    class Run(torch.nn.Module):
        def forward(self, x: Any) -> Any:
            return function(torch, x)

    return Run()


def _exported(torch: Any, function: Callable[[Any, Any], Any]) -> Any:
    batch = torch.export.Dim("batch", min=2, max=64)
    return torch.export.export(_module(torch, function), (torch.ones(5, 4),), dynamic_shapes=({0: batch},))


def _inputs(torch: Any) -> list[Any]:
    return [torch.arange(4.0 * count).reshape(count, 4) / 7 for count in (5, 7, 8, 2)]


@pytest.mark.parametrize("name", _OF_BOTH)
@differential
def test_exported_programs_compute_with_sizes(torch: Any, name: str) -> Any:
    module = _exported(torch, _OF_BOTH[name]).module()
    return [module(x) for x in _inputs(torch)]


def _ways(function: Callable[[Any, Any], Any]) -> dict[str, Callable[..., Any]]:
    program = _exported(T, function)
    file = io.BytesIO()
    T.export.save(program, file)
    file.seek(0)
    symbolic = T.fx.experimental.proxy_tensor.make_fx(_module(T, function), tracing_mode="symbolic")
    return {
        "exported": program.module(),
        "decomposed": program.run_decompositions().module(),
        "read": T.export.load(file).module(),
        "recorded": symbolic(T.ones(5, 4)),
    }


@pytest.mark.parametrize("name", [*_OF_BOTH, *_OURS])
def test_all_forms_of_a_program_compute_with_sizes(name: str) -> None:
    function = (_OF_BOTH | _OURS)[name]
    for way, call in _ways(function).items():
        for x in _inputs(T):
            expected, actual = function(T, x), call(x)
            T.testing.assert_close(actual, expected, rtol=0, atol=0, msg=way)


@pytest.mark.parametrize("rows", [2, 5, 8, 16, 33])
@pytest.mark.parametrize("name", _BOUNDED_OR_ROUNDED)
def test_what_is_like_another_function_at_a_few_sizes(name: str, rows: int) -> None:
    """Exported programs compute at every size what the module does, or the export is refused."""
    function = _BOUNDED_OR_ROUNDED[name]
    sizes = ({0: T.export.Dim("batch", min=2, max=100)},)
    module = _module(T, lambda torch, x: function(x))
    if name in _REFUSED or (rows == 2 and name in _REFUSED_AT_TWO_ROWS):
        with pytest.raises(T._dynamo.exc.UserError, match="follows from the dynamic dimensions is unknown"):
            T.export.export(module, (T.ones(rows, 2),), dynamic_shapes=sizes)
        return
    exported = T.export.export(module, (T.ones(rows, 2),), dynamic_shapes=sizes).module()
    wrong = [each for each in range(2, 101) if not T.equal(exported(T.ones(each, 2)), module(T.ones(each, 2)))]
    assert wrong == []


@pytest.mark.parametrize("name", _UNKNOWN)
def test_what_does_not_follow_from_sizes_is_an_error(name: str) -> None:
    with pytest.raises(T._dynamo.exc.UserError, match=r"Constraints violated \(batch\)"):
        _exported(T, _UNKNOWN[name])


@pytest.mark.parametrize("name", _UNKNOWN)
def test_sizes_that_may_be_fixed_are_fixed_where_they_must(name: str) -> None:
    dim = T.export.Dim.AUTO
    program = T.export.export(_module(T, _UNKNOWN[name]), (T.ones(5, 4),), dynamic_shapes=({0: dim},))
    x = _inputs(T)[0]
    for expected, actual in zip(
        *map(T.utils._pytree.tree_leaves, (_UNKNOWN[name](T, x), program.module()(x))), strict=True
    ):
        assert T.equal(expected, actual) if isinstance(expected, T.Tensor) else expected == actual
    with pytest.raises(RuntimeError, match="equal to 5, but got 7"):
        program.module()(_inputs(T)[1])


def test_two_sizes_of_one_program() -> None:
    def function(torch: Any, x: Any) -> Any:
        return (x @ x.mT) / (x.shape[0] * x.shape[1]) ** 0.5, x.shape[1] - x.shape[0]

    rows, columns = T.export.dims("rows", "columns")
    program = T.export.export(_module(T, function), (T.ones(5, 3),), dynamic_shapes=({0: rows, 1: columns},))
    for form in (program, program.run_decompositions()):
        for shape in ((5, 3), (2, 2), (7, 11), (9, 4)):
            x = T.randn(*shape)
            T.testing.assert_close(form.module()(x), function(T, x), rtol=0, atol=0)


@differential
def test_specs_that_do_not_fit_the_inputs(torch: Any) -> Any:
    class Sum(torch.nn.Module):
        def forward(self, x: Any, y: Any) -> Any:
            return x + y["a"][0]

    batch = torch.export.Dim("batch")
    x = torch.ones(4, 3)
    args = (x, {"a": [x]})
    found = []
    for shapes in (
        ({0: batch},),
        ({0: batch}, None, None),
        {"x": {0: batch}},
        ((batch,), {"a": [None]}),
        ({0: "batch"}, {"a": [None]}),
        ({0: batch}, {"a": [None, None]}),
        ({0: batch}, {}),
    ):
        with pytest.raises(torch._dynamo.exc.UserError) as caught:
            torch.export.export(Sum(), args, dynamic_shapes=shapes)
        found.append((caught.value.error_type.name, str(caught.value)[:54]))
    return found


def test_dimensions_that_are_not_there() -> None:
    batch = T.export.Dim("batch")
    for shapes in ({5: batch}, {-3: batch}, {"0": batch}):
        with pytest.raises(T._dynamo.exc.UserError, match="has 2 dimensions"):
            T.export.export(T.nn.ReLU(), (T.ones(4, 3),), dynamic_shapes=(shapes,))


class _Table(T.nn.Module):
    """Takes as many rows of a table as its input has columns."""

    def __init__(self, rows: int) -> None:
        super().__init__()
        self.register_buffer("table", T.arange(float(rows))[None])

    def forward(self, x: Any) -> Any:
        return x + self.table[:, : x.shape[1]]


@pytest.mark.parametrize(("low", "high", "rows"), [(2, 64, 64), (2, 40, 40), (5, 33, 33), (2, 31, 32)])
def test_sizes_stay_within_their_bounds(low: int, high: int, rows: int) -> None:
    seen = set()

    class Seen(_Table):
        def forward(self, x: Any) -> Any:
            seen.add(int(x.shape[1]))
            return super().forward(x)

    module = Seen(rows)
    length = T.export.Dim("length", min=low, max=high)
    program = T.export.export(module, (T.ones(3, min(32, high)),), dynamic_shapes=({1: length},))
    assert all(low <= each <= high for each in seen), seen
    for size in (low, (low + high) // 2, high):
        assert T.equal(program.module()(T.ones(3, size)), module(T.ones(3, size)))


def test_a_size_that_its_bounds_fix() -> None:
    length = T.export.Dim("length", min=4, max=4)
    program = T.export.export(_Table(4), (T.ones(3, 4),), dynamic_shapes=({1: length},))
    assert T.equal(program.module()(T.ones(3, 4)), _Table(4)(T.ones(3, 4)))


def test_positions_of_vmap_follow_sizes() -> None:
    def function(torch: Any, x: Any) -> Any:
        def same(row: Any, one: Any, other: Any) -> Any:
            return x[row, one] == x[row, other]

        pairs = torch.vmap(torch.vmap(same, in_dims=(None, None, 0)), in_dims=(None, 0, None))
        rows, columns = x.shape
        return torch.vmap(pairs, in_dims=(0, None, None))(
            torch.arange(rows), torch.arange(columns), torch.arange(columns)
        )

    rows, columns = T.export.dims("rows", "columns", min=2)
    program = T.export.export(_module(T, function), (T.ones(4, 8),), dynamic_shapes=({0: rows, 1: columns},))
    for shape in ((4, 8), (2, 3), (9, 5)):
        x = T.randint(0, 3, shape).float()
        assert T.equal(program.module()(x), function(T, x))


@pytest.mark.parametrize("turned", [False, True])
@differential
def test_axes_that_bound_each_other_may_both_change(torch: Any, turned: bool) -> Any:
    class Masked(torch.nn.Module):
        def forward(self, x: Any, y: Any) -> Any:
            rows, mask = (y, x) if turned else (x, y)
            return rows * mask[torch.arange(rows.shape[0])].sum(-1, keepdim=True)

    dynamic = {0: torch.export.Dim.DYNAMIC}
    example = torch.ones(3, 4), torch.full((3, 4), 2.0)
    program = torch.export.export(Masked(), example, dynamic_shapes=(dynamic, dynamic))
    return [program.module()(torch.ones(size, 4), torch.full((size, 4), 2.0)) for size in (2, 3, 7, 12)]
