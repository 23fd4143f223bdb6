"""A recorded call keeps abstract arrays of its arrays, and no memory; schedules are seen in their first call."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import flambeau as torch
from flambeau._backends.tiers import generated
from flambeau._core.arrays.abstract import AbstractArray, NeedsData
from flambeau.compiler._compiled import Compiled
from flambeau.compiler.capture.abstract_arrays import AbstractArrays
from flambeau.compiler.emit.text import Written, define, in_pieces
from flambeau.compiler.plan import segment
from flambeau.compiler.program.reads import bounds

X = torch.linspace(-2, 2, 12).reshape(3, 4)


def geometry(array: Any) -> Any:
    return array.shape, array.strides, array.dtype


def test_an_abstract_array_looks_like_its_array_and_has_no_memory() -> None:
    abstracts = AbstractArrays([])
    made = np.arange(24, dtype=np.float32).reshape(4, 6)
    for each in (made, made.T, made[1:3, ::2], made[::-1], np.zeros((), np.int64), np.ones(3, bool)):
        abstract = abstracts.of(each)
        assert geometry(abstract) == geometry(each)
        assert abstract is not each
        with pytest.raises(NeedsData):
            abstract.item()
        with pytest.raises(NeedsData):
            np.asarray(abstract)


def test_abstract_arrays_overlap_where_their_arrays_do() -> None:
    abstracts = AbstractArrays([])
    made = np.zeros((4, 6))
    whole, part, other = abstracts.of(made), abstracts.of(made[2:]), abstracts.of(made[:2])
    assert bounds(part)[0] - bounds(whole)[0] == bounds(made[2:])[0] - bounds(made)[0]
    assert bounds(whole)[0] < bounds(part)[0] < bounds(part)[1] == bounds(whole)[1]
    assert bounds(other)[1] == bounds(part)[0]


def test_what_comes_to_lie_in_freed_memory_is_something_else() -> None:
    abstracts = AbstractArrays([])
    seen: set[int] = set()
    for _ in range(50):  # every one takes the place of the one before
        low = bounds(abstracts.of(np.empty(1000)))[0]
        assert low not in seen
        seen.add(low)


def test_what_was_there_before_and_is_gone_does_not_count() -> None:
    before = np.empty(100)
    abstracts, key = AbstractArrays([before[1:]]), id(before)
    assert abstracts.of(before) is before
    del before
    for _ in range(100):
        made = np.empty(100)  # most likely it has the identity at once
        assert abstracts.of(made) is not made
        if id(made) == key:
            return
    pytest.skip("no other array got the identity")


def test_what_was_there_before_has_none() -> None:
    before = np.zeros((3, 4))
    abstracts = AbstractArrays([before[1]])
    window = before[:, 1:]
    assert abstracts.of(window) is window
    borrowed = np.frombuffer(bytearray(8), np.uint8)
    assert abstracts.of(borrowed) is borrowed


def test_a_recorded_call_lets_go_of_what_it_makes(monkeypatch: pytest.MonkeyPatch) -> None:
    x = torch.ones(7, 5)
    made = Compiled(lambda: (x * 2).relu()[1:].sum())
    recorded, recorders = made._recorder, []

    def recorder(*args: Any) -> Any:
        recorders.append(recorded(*args))
        return recorders[-1]

    monkeypatch.setattr(made, "_recorder", recorder)
    for _ in range(3):
        made()
    assert made.programs, made.reasons
    (last,) = recorders
    kept = [each._array for each in last.tensors.values()]
    assert [each for each in kept if type(each) is np.ndarray] == [x._array]
    assert [each.shape for each in kept if each is not x._array] == [(7, 5), (7, 5), (6, 5), ()]
    for call in last.calls:
        for each in (*call.examples, call.made):
            assert not isinstance(each, torch.Tensor) or each._array is x._array or type(each._array) is AbstractArray


def test_a_tape_that_gives_other_bits_is_not_run(monkeypatch: pytest.MonkeyPatch) -> None:
    if generated("call_list") is None:
        pytest.skip("there are no schedules")
    fused, runs = segment.fused, []

    def broken(*args: Any) -> Any:
        launches = fused(*args)
        for each in launches:
            function, given, options = each.calls[0]

            def run(*arrays: Any, function: Any = function, **named: Any) -> None:
                function(*arrays, **named)
                runs.append(1)
                arrays[0][...] += 1

            each.calls = ((run, given, options), *each.calls[1:])
        return launches

    def function(x: Any, y: Any) -> Any:
        y.mul_(2)
        return (x * 2 + y).sum(0).exp()

    monkeypatch.setattr(segment, "fused", broken)
    made = Compiled(function)
    mine, theirs = X.clone(), X.clone()
    for _ in range(7):
        assert torch.equal(made(X, mine), function(X, theirs))
        assert torch.equal(mine, theirs)
    assert made.programs, made.reasons
    assert runs
    count = len(runs)
    made(X, mine)
    assert len(runs) == count


def test_checks_in_pieces_find_what_one_function_finds() -> None:
    lines = [
        line
        for number in range(0, 1000, 2)
        for line in (f"p{number}, p{number + 1}, = args[{number // 2}]", f"if p{number} != {number}: return MISS")
    ]
    lines += ["return p1 + p701 + p999 + kwargs"]
    pieces, calls = in_pieces(lines, len(lines) - 1, "args, kwargs")
    assert len(pieces) > 2
    assert len(calls) < 20
    namespace: dict[str, Any] = {"MISS": None}
    define([*pieces, Written("call", "args, kwargs", calls)], namespace)
    call = namespace["call"]
    args = [(number, number + 1) for number in range(0, 1000, 2)]
    assert call(args, 5) == 1 + 701 + 999 + 5
    for wrong in (0, 250, 499):
        assert call([(-1, 0) if number == wrong else each for number, each in enumerate(args)], 5) is None


def test_large_gradients_are_joined_in_order_at_once() -> None:
    def function(*tensors: Any) -> Any:
        return torch.stack(tensors, 0).permute(1, 3, 0, -2).reshape(4, 240, -1)

    pieces = [torch.randn(4, 300, 240) for _ in range(3)]
    made = Compiled(function)
    for _ in range(5):
        assert torch.equal(made(*pieces), function(*pieces))
    program: Any = made.programs[0]
    assert "# stack" not in program.source
    assert "# contiguous_clone" in program.source
