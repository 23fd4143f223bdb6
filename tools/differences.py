"""Every known difference from PyTorch, by topic: `make docs` writes the page, `python -m tools.differences` prints it.

The page is made of the lists that the tests check, so that it is true of this version.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from flambeau._dispatch.public.docstrings.differences import OF_FUNCTIONS, OF_NAMES

ROOT = Path(__file__).parent.parent
STATES = {
    "autocast": "under autocast",
    "empty": "with empty arguments",
    "expanded": "with expanded arguments",
    "export": "under `torch.export`",
    "fake": "under `FakeTensorMode`",
    "functionalize": "under `torch.func.functionalize`",
    "hessian": "`torch.func.hessian`",
    "inference": "in inference mode",
    "jacfwd": "`torch.func.jacfwd`",
    "jacrev": "`torch.func.jacrev`",
    "jvp": "`torch.func.jvp`",
    "zero size": "with dimensions of size zero",
}
INTRODUCTION = """\
# Differences from PyTorch

Every known difference from PyTorch 2.13, by topic, with its reason. This page is written from the lists that the tests
check, when the site is built: an entry that no longer holds fails a test. Differences that are meant, such as what
errors say, are in [Coming from PyTorch](coming-from-pytorch.md).
"""


def write() -> str:
    """The page's text."""
    return "\n".join([INTRODUCTION, *values(), *calls(), *states(), *cuda(), *operators(), *absent(), *further()])


def read(path: str) -> Any:
    """A list of known differences."""
    return json.loads((ROOT / path).read_text(encoding="utf-8"))


def names_of(names: list[str], most: int = 12) -> str:
    """Names in the order of the alphabet, the first ones of many."""
    shown = ", ".join(f"`{each}`" for each in sorted(names)[:most])
    return shown if len(names) <= most else f"{shown} and {len(names) - most} more"


def values() -> list[str]:
    """Values that functions return."""
    lines = ["## Values", "", "| functions | what differs |", "|---|---|"]
    for table in (OF_FUNCTIONS, OF_NAMES):
        lines += [f"| {names_of(names.split(), 40)} | {sentence(text)} |" for text, names in table.items()]
    by_reason: dict[str, list[str]] = {}
    for name, cases in read("tests/conformance/known_gaps.json").items():
        for reason in cases.values():
            by_reason.setdefault(reason, []).append(name)
    lines += [f"| {names_of(sorted(set(names)))} | {sentence(reason)} |" for reason, names in by_reason.items()]
    return [
        *lines,
        "",
        "[Special values](special-values.md) and [accumulation](accumulation.md) have tables of their own.",
        "",
    ]


def sentence(text: str) -> str:
    """A reason as a sentence that a table can hold."""
    text = text.replace("|", "\\|")
    return f"{text[0].upper()}{text[1:]}."


def calls() -> list[str]:
    """How functions may be called."""
    lines = ["## Calls", "", "| functions | why |", "|---|---|"]
    for entry in read("tests/signatures/known.json"):
        lines += [f"| {names_of(list(entry['differences']))} | {sentence(entry['reason'])} |"]
    return [*lines, "", "[Signatures](signatures.md) says what was compared.", ""]


def states() -> list[str]:
    """What fails in modes and transforms, of the operators in PyTorch's database."""
    found: dict[str, list[str]] = {}
    for name, cases in read("tests/conformance/state_gaps.json").items():
        for state in cases:
            found.setdefault(state, []).append(name)
    lines = ["## Modes and transforms", "", "Of the operators in PyTorch's own database these differ or fail:", ""]
    lines += ["| where | operators |", "|---|---|"]
    lines += [
        f"| {STATES.get(state, f'`{state}`')} | {names_of(names, 40)} |" for state, names in sorted(found.items())
    ]
    loops = [name for name, how in read("tests/func/vmap_gaps.json").items() if "loop" in how]
    lines += [f"| under `vmap`: correct, but a loop over the examples | {names_of(loops, 40)} |"]
    return [*lines, ""]


def cuda() -> list[str]:
    """Operators whose results on a GPU are not those on the CPU."""
    lines = ["## CUDA", "", "| operator | what differs from the CPU |", "|---|---|"]
    gaps = read("tests/conformance/cuda_gaps.json")
    return [*lines, *(f"| `{name}` | {sentence(reason)} |" for name, reason in sorted(gaps.items())), ""]


def operators() -> list[str]:
    """Operators by their names in `torch.ops`."""
    gaps = read("tests/ops/schemas/gaps.json")
    missing = [name for name, text in gaps.items() if "there is no aten" in text or "NotImplementedError" in text]
    others = [name for name in gaps if name not in missing]
    return [
        "## Operators in `torch.ops`",
        "",
        f"{len(missing)} operators are not there or not for the arguments tried: {names_of(missing, 400)}.",
        "",
        f"{len(others)} give another result or another error for a recorded call: {names_of(others, 400)}.",
        "",
    ]


def absent() -> list[str]:
    """Names that are missing."""
    reasons = read("tools/absent_names.json")
    counts = {reason: sum(len(names) for names in modules.values()) for reason, modules in reasons.items()}
    lines = ["## Names", "", "| names | where | why they are missing |", "|--:|---|---|"]
    for reason, count in sorted(counts.items(), key=lambda each: -each[1]):
        lines.append(f"| {count} | {names_of(list(reasons[reason]), 6)} | {sentence(reason)} |")
    return [*lines, "", "[Names](names.md) lists each of them.", ""]


def further() -> list[str]:
    """Pages with what is not data."""
    return [
        "## Further",
        "",
        "- [Random numbers](random.md): which functions draw PyTorch's numbers, by dtype.",
        "- [Sparse tensors](sparse.md), [CUDA](cuda.md), [several processes](distributed.md), [models larger than one",
        "  process](sharding.md) and [export](export.md) each say what is not there.",
        "- [Modules](modules.md): which layers were compared, and how.",
        "",
    ]


if __name__ == "__main__":
    print(write())
