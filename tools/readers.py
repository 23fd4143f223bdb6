"""Which readers know an op: what `vmap`, DTensor, ONNX, `torch.compile`, autocast and the backends make of its record.

    python -m tools.readers          # writes docs/ops.md and tests/_dispatch/reader_gaps.json

The list of gaps only becomes shorter: `tests/_dispatch/test_readers.py` compares it.
"""

from __future__ import annotations

import json
from importlib import import_module
from pathlib import Path
from typing import NamedTuple

from flambeau._backends.cpu import lowerings as of_cpu
from flambeau._backends.cuda import lowerings as of_cuda
from flambeau._dispatch.arguments.autocast_rules import RULED
from flambeau._dispatch.backend_op import BackendOp
from flambeau._dispatch.compiled_body import BODIES
from flambeau._dispatch.composite import Composite
from flambeau._dispatch.dispatch import Primitive
from flambeau._dispatch.elementwise import Elementwise
from flambeau._dispatch.op import OPS, Op
from flambeau._dispatch.public.registry import load_all
from flambeau._ops.sparse.dispatch import SparsePrimitive
from flambeau.compiler.plan.rules import TRACED, WINDOWS
from flambeau.distributed.tensor._rules import families
from flambeau.func._batching import rules as batching
from flambeau.onnx._converters._table import CONVERTERS
from flambeau.onnx._converters.elementwise import has_steps

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "ops.md"
GAPS = ROOT / "tests" / "_dispatch" / "reader_gaps.json"

READERS = ("vmap", "DTensor", "ONNX", "compile")
"""The readers that every op should have something to say to."""


class Line(NamedTuple):
    """What each reader makes of an op; "" where it knows nothing of it."""

    name: str
    axes: str
    vmap: str
    dtensor: str
    onnx: str
    compiles: str
    autocast: str
    cpu: str
    cuda: str

    def gaps(self) -> list[str]:
        """The readers that know nothing of the op."""
        answers = (self.vmap, self.dtensor, self.onnx, self.compiles)
        return [reader for reader, answer in zip(READERS, answers, strict=True) if not answer]


def lines() -> list[Line]:
    """A line for each op that computes dense tensors of others: sparse ones, reads and checks are left out."""
    load_all()
    import_module("flambeau.onnx._converters")
    return [_line(op) for _, op in sorted(OPS.items()) if _is_listed(op)]


def _is_listed(op: Op) -> bool:
    own = op.__class__.__module__.startswith("flambeau.") and not isinstance(op, SparsePrimitive)
    return (
        own
        and isinstance(op, (Elementwise, Primitive, Composite, BackendOp))
        and not op.reads
        and not op.name.startswith("check_")
    )


def stands_for_others(op: Op) -> bool:
    """Whether an op runs in plain modes alone: readers see the ops that it stands for."""
    return isinstance(op, BackendOp) or op.spelled_out is not None


def _line(op: Op) -> Line:
    answers = ("spelled out",) * len(READERS) if stands_for_others(op) else _answers(op)
    return Line(
        op.name,
        "" if op.axes is None else type(op.axes).__name__,
        *answers,
        _autocast(op),
        "lowering" if op.name in of_cpu.KERNELS else "body" if _is_body(op) else "",
        "lowering" if op.name in of_cuda.KERNELS else "body" if _is_body(op) else "",
    )


def _answers(op: Op) -> tuple[str, str, str, str]:
    """What each of `READERS` makes of an op."""
    onnx = "converter" if op.name in CONVERTERS else "body" if has_steps(op.name) else ""
    onnx = onnx or ("decomposition" if op.decomposition is not None else "")
    return _vmap(op), _dtensor(op), onnx, _compile(op)


def _is_body(op: Op) -> bool:
    """Whether its kernel is a scalar body, from which backends make code."""
    return isinstance(op, Elementwise) or op.kernel in BODIES


def _vmap(op: Op) -> str:
    if batching.uses_loop(op):
        return ""
    decomposes, _ = batching.rule_of(op)
    if decomposes:
        return "decomposition"
    return "rule" if batching.has_own_rule(op) or op.axes is None else "axes"


def _dtensor(op: Op) -> str:
    if families.has_own_rule(op):
        return "rule"
    if op.decomposition is not None:
        return "decomposition"
    return "" if families.cases_of(op) is families.replicated else "axes"


def _compile(op: Op) -> str:
    if op.makes_windows or op.name in WINDOWS:
        return "view"
    return "body" if _is_body(op) else "rule" if op.name in TRACED else ""


def _autocast(op: Op) -> str:
    rules = RULED.get(op.name) or RULED.get(f"nn.functional.{op.name}") or RULED.get(f"linalg.{op.name}")
    if rules is None:
        return ""
    return ", ".join(f"{each}: {rule if isinstance(rule, str) else 'condition'}" for each, rule in rules.items())


_INTRODUCTION = """# Ops and what reads their records

An op's record says what transforms and backends need to know ([design.md](design.md)). This page says for each op who
knows it, and how: `axes` and `body` follow from the record, a `rule` or `converter` stands under the op's name in the
reader's own folder, a `decomposition` says the op in others; what is `spelled out` runs in plain modes alone, and the
reader sees the ops that it stands for. An empty field: `vmap` runs a loop, DTensor gathers the
tensors, ONNX refuses, a compiled segment ends. CPU and CUDA: who has code beside the reference kernel in NumPy.

`python -m tools.readers` writes this page and `tests/_dispatch/reader_gaps.json`, the list of empty fields, which only
becomes shorter.
"""


def page(found: list[Line]) -> str:
    """The page."""
    counts = [
        f"| {reader} | {len(found) - sum(reader in each.gaps() for each in found)} of {len(found)} |"
        for reader in READERS
    ]
    head = (
        "| op | axes | vmap | DTensor | ONNX | compile | autocast | CPU | CUDA |\n|---|---|---|---|---|---|---|---|---|"
    )
    rows = [f"| `{each.name}` | " + " | ".join(each[1:]) + " |" for each in found]
    return "\n".join([_INTRODUCTION, "| reader | knows |\n|---|---|", *counts, "", head, *rows, ""])


def gaps(found: list[Line]) -> dict[str, list[str]]:
    """For each reader the ops that it knows nothing of."""
    return {reader: [each.name for each in found if reader in each.gaps()] for reader in READERS}


def main() -> None:
    """Write the page and the list."""
    found = lines()
    PAGE.write_text(page(found), encoding="utf-8")
    GAPS.write_text(json.dumps(gaps(found), indent=1) + "\n", encoding="utf-8")
    for reader, names in gaps(found).items():
        print(f"{reader}: {len(names)} of {len(found)} ops unknown")


if __name__ == "__main__":
    main()
