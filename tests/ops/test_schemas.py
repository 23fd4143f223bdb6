"""PyTorch's operators, called by their names: recorded calls of every schema give PyTorch's results."""

from __future__ import annotations

import pytest

from tests.support.oracle import pytorch

pytestmark = pytest.mark.skipif(pytorch is None, reason="needs PyTorch")

PARTS = 6
"""`python -m tests.ops.schemas` takes all calls, this test every so many-th."""


def test_recorded_calls_give_the_results_of_pytorch() -> None:
    from .schemas.calls import recorded
    from .schemas.gaps import problems
    from .schemas.survey import survey

    lines = list(recorded())
    assert len(lines) > 3200
    assert problems(survey(lines[::PARTS])) == []


def test_every_schema_has_a_call_or_a_reason() -> None:
    import json

    from flambeau._dispatch.public.schemas import operators_of, schemas_of

    from .schemas.calls import FILE, name_in, recorded
    from .schemas.excluded import excluded

    called = {name_in(each) for each in recorded()}
    without = set(json.loads((FILE.parent / "without_calls.json").read_text()))
    assert not called & without
    names = set()
    for space in ("aten", "prims"):
        for operator in operators_of(space):
            overloads = schemas_of(space, operator)
            names |= {f"{space}::{operator}" + ("" if each == "default" else f".{each}") for each in overloads}
    assert sorted(each for each in names if each not in called | without and excluded(each) is None) == []


@pytest.mark.parametrize("name", ["add", "max", "sum", "convolution", "sort", "pad_sequence", "dict", "_foreach_add_"])
def test_schemas_are_those_of_pytorch(name: str) -> None:
    import flambeau

    ours, theirs = getattr(flambeau.ops.aten, name), getattr(pytorch.ops.aten, name)
    assert ours.overloads() == theirs.overloads()
    for overload in ours.overloads():
        schema, expected = getattr(ours, overload)._schema, getattr(theirs, overload)._schema
        assert str(schema) == str(expected)
        for each, other in zip(schema.arguments, expected.arguments, strict=True):
            assert (each.name, each.kwarg_only, each.is_out) == (other.name, other.kwarg_only, other.is_out)
            assert each.default_value == other.default_value
