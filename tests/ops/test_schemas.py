"""PyTorch's operators, called by their names: recorded calls of every schema give PyTorch's results."""

from __future__ import annotations

import re

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
    assert len(lines) > 2800
    assert problems(survey(lines[::PARTS])) == []


def test_every_schema_has_a_call_or_a_reason() -> None:
    import json

    from .schemas.calls import FILE, name_in, recorded
    from .schemas.excluded import excluded
    from .schemas.recording import schemas

    called = {name_in(each) for each in recorded()}
    without = set(json.loads((FILE.parent / "without_calls.json").read_text()))
    assert not called & without
    missing = [name for name in schemas() if name not in called | without and excluded(name) is None]
    assert missing == []


def _comparable(schema: str) -> str:
    """A schema without the ways in which the same numbers and tuples are written."""
    number = re.compile(r"(?<==)-?\d+\.?\d*(?:e-?\d+)?(?=[,)])")
    return number.sub(lambda found: repr(float(found[0])), schema.replace("((", "(").replace("))", ")"))


def test_the_table_of_schemas_is_that_of_pytorch() -> None:
    import flambeau
    from flambeau._dispatch.public.schemas import operators_of, schemas_of

    from .schemas.recording import schemas

    ours = set()
    for space in ("aten", "prims"):
        ours |= {str(each) for name in operators_of(space) for each in schemas_of(space, name).values()}
    theirs = {str(schema) for name, schema in schemas().items() if name.startswith(("aten::", "prims::"))}
    assert {_comparable(each) for each in ours} == {_comparable(each) for each in theirs}
    assert str(flambeau.ops.aten.add.Tensor._schema) == str(pytorch.ops.aten.add.Tensor._schema)
