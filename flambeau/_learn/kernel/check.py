"""Checks an answer to the lesson about kernels: on guarded memory, then as the lowering of an op."""

from __future__ import annotations

import zlib
from pathlib import Path
from typing import Any

import numpy as np

import flambeau

from ..._core.backend import backend_of
from ..._dispatch.dispatch import Primitive
from ..checking import Steps, Wrong, asked_for

STEPS = Steps()
torch: Any = flambeau
_GUARD, _MARK = 64, -12345.0
_ADVICE = (
    "Inside the `with` block code is written by `c` and by the values with an underscore (x_, factor_): those "
    "outside belong "
    "to another function. c.load(x_, scalar, position, lanes) has as many lanes as the loop says."
)


def _run(answer: Any, count: int, dtype: str, factor: float = 0.5) -> tuple[Any, Any, Any, Any]:
    """What the kernel makes of `count` elements: out, what is right, and what lies before and behind out."""
    rng = np.random.default_rng(count)
    x, y = (rng.normal(size=count).astype(dtype) for _ in range(2))
    memory = np.full(count + 2 * _GUARD, _MARK, dtype)
    out = memory[_GUARD : _GUARD + count]
    out[:] = 1
    kept = x.copy(), y.copy()
    right = 1 + np.dtype(dtype).type(factor) * (x - y) ** 2
    asked_for(answer, "add_squares", "kernel")(dtype)(out, x, y, factor)
    if not (np.array_equal(x, kept[0]) and np.array_equal(y, kept[1])):
        raise Wrong("The kernel changes x or y: store into out_ alone.")
    return out, right, memory[:_GUARD], memory[_GUARD + count :]


@STEPS.step("this machine generates code")
def generates(answer: Any) -> None:
    """The rest needs the code generator. Compiled kernels are kept on disk by name: each answer gets a name of "
    "its own."""
    if backend_of("cpu").functions["pointwise"] is None:
        raise Wrong("Code is not generated on this machine: `flambeau info` says what is missing. Then check again.")
    from ..._codegen.kernel import Kernel

    kernel = asked_for(answer, "add_squares", "kernel")
    if not isinstance(kernel, Kernel):
        raise Wrong("add_squares is no kernel: keep the decorator @kernel above it.")
    kernel.name = f"add_squares_{zlib.crc32(Path(answer.__file__).read_bytes()):08x}"


@STEPS.step("16 elements: one vector", _ADVICE)
def one_vector(answer: Any) -> None:
    """The values."""
    out, right, _, _ = _run(answer, 16, "float64")
    if np.allclose(out, right):
        return
    if np.array_equal(out, np.ones(16)):
        raise Wrong("out is as it was: the kernel stores nothing. c.store(out_, scalar, position, value) writes.")
    if np.allclose(out, right - 1):
        raise Wrong("out is replaced, not added to: load what is in out, add to it, store the sum.")
    if np.allclose(out - 1, (right - 1) * 2):
        raise Wrong("The factor is missing: out += factor * (x - y) ** 2.")
    raise Wrong(f"out[0] should be {right[0]:.4f}, your kernel gives {out[0]:.4f}: out += factor * (x - y) ** 2.")


@STEPS.step("17 and 1003 elements: those that are left over too, and no more", _ADVICE)
def tail(answer: Any) -> None:
    """Checks the elements that are left over by a division by 16."""
    for count in (5, 17, 1003):
        out, right, before, behind = _run(answer, count, "float64")
        if (before != _MARK).any() or (behind != _MARK).any():
            raise Wrong(
                f"With {count} elements the kernel writes outside of out: loop by c.lanes, which ends with single "
                "elements."
            )
        if not np.allclose(out, right):
            wrong = int(np.flatnonzero(~np.isclose(out, right))[0])
            raise Wrong(
                f"With {count} elements number {wrong} is wrong: {count} is no multiple of 16, and the elements "
                "that are left "
                "over need a loop of their own. c.lanes(begin, end, 16) gives both."
            )


@STEPS.step("a million elements, shared by threads", _ADVICE)
def threads(answer: Any) -> None:
    """Each thread has its share."""
    out, right, _, _ = _run(answer, 1_000_000, "float64")
    if not np.allclose(out, right):
        raise Wrong(
            "With a million elements, which threads share, the sums are wrong. Each thread has the elements from "
            "`begin` to "
            "`end`: one that goes over others adds to them a second time."
        )


@STEPS.step("float32 from the same lines", _ADVICE)
def single(answer: Any) -> None:
    """The dtype is a parameter."""
    out, right, _, _ = _run(answer, 1003, "float32")
    if not np.allclose(out, right, rtol=1e-5):
        raise Wrong("In float32 the values are wrong: load and store by `scalar`, which stands for the dtype.")


@STEPS.step("the engine runs it in place of a NumPy kernel")
def as_lowering(answer: Any) -> None:
    """An op whose reference kernel is NumPy's gets this one as its lowering."""
    ran: list[int] = []

    def lowering(self: Any, other: Any) -> Any:
        ran.append(1)
        out = np.zeros_like(self)
        asked_for(answer, "add_squares", "kernel")(self.dtype.name)(out, self, other, 1.0)
        return out

    op: Primitive[..., Any] = Primitive(_reference, None, {}, None, False, (), None, "learned_squares")
    backend = backend_of("cpu")
    backend.push({"learned_squares": lambda name: lowering})
    x, y = torch.randn(5000), torch.randn(5000)
    try:
        got = op(x, y)
    finally:
        del backend.functions.finders["learned_squares"]
        backend.forget()
    if not torch.allclose(got, (x - y) ** 2) or not ran:
        raise Wrong("As the lowering of an op the kernel gives other values than the op's NumPy kernel.")


def _reference(self: Array, other: Array) -> Array:
    return (self - other) ** 2


Array = Any
