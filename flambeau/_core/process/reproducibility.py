"""Which results programs asked to be the same: see `flambeau.reproducible`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

LEVELS = ("run", "threads", "batch", "machine")
"""From the weakest to the strongest; each includes those before it."""


class _Reproducibility:
    """The level that holds in this process; None: none was asked for."""

    __slots__ = ("checked", "function", "level", "machine", "product", "samples", "total")

    def __init__(self) -> None:
        self.level: str | None = None
        self.machine = False
        """Whether results must not depend on the processor and on which kernels there are: the level is "machine"."""
        self.checked: Callable[[Any, Callable[..., Any]], Callable[..., Any]] | None = None
        """At "machine" what runs a kernel of an op, `(op, kernel)`, and says the op's name where it cannot be kept."""
        self.function: Callable[..., Any] | None = None
        """At "machine" what computes a function of real numbers, by NumPy's name for it: `(name, *arrays)`."""
        self.product: Callable[[Any, Any], Any] | None = None
        """From "batch" on what multiplies arrays of NumPy's as `np.matmul` does, each element in one fixed order."""
        self.total: Callable[[Any, tuple[int, ...] | None, bool], Any] | None = None
        """From "batch" on what sums up `(array, dims, keepdims)`, each element in one fixed order."""

        self.samples: Any = None
        """From "batch" on the module of sums over samples as a tree, `_backends/cpu/linalg/over_samples.py`."""

    def refuse_at_batch(self, name: str, why: str) -> None:
        """Raise for a call whose results depend on the batch by definition, if "batch" was asked for."""
        if self.product is not None:
            raise RuntimeError(f'{name} cannot be kept by reproducible("{self.level}"): {why}')

    def refuse_at_machine(self, name: str, why: str) -> None:
        """Raise for a call that runs in other ways on other processors, if "machine" was asked for."""
        if self.machine:
            raise RuntimeError(
                f'{name} cannot be kept by reproducible("machine"): {why}. Use reproducible("batch"), or call '
                "flambeau.reproducible(None) before"
            )

    def kernel_of(self, op: Any) -> Callable[..., Any]:
        """The kernel of an op that runs without its backend's `prepare`."""
        kernel: Callable[..., Any] = op.kernel
        return kernel if self.checked is None else self.checked(op, kernel)

    def refuse_complex_body(self, name: str, is_complex: bool) -> None:
        """Raise for an elementwise op of complex numbers at "machine", unless it only adds or moves their parts."""
        if self.machine and is_complex and name not in _EXACT_OF_COMPLEX:
            self.refuse_at_machine(name, OF_COMPLEX)


class NotKept(RuntimeError):
    """A kernel has asked for something that depends on what a sample is batched with."""

    def __init__(self, what: str) -> None:
        super().__init__(f"{what} cannot be kept by reproducible({REPRODUCIBILITY.level!r}) on this device")
        self.what = what


OF_COMPLEX = "NumPy multiplies and divides complex numbers by other instructions on other processors"
_EXACT_OF_COMPLEX = frozenset(
    ("add", "sub", "neg", "positive", "conj", "real", "imag", "eq", "ne", "isnan", "isfinite")
)
REPRODUCIBILITY = _Reproducibility()


def power(base: Any, exponent: Any) -> Any:
    """`base ** exponent` of numbers: the C library's at most levels, at "machine" the same on every machine."""
    if REPRODUCIBILITY.function is not None and type(base) in (int, float) and type(exponent) in (int, float):
        found = base**exponent  # which raises what it raises, and is exact of integers
        if type(found) is float:
            return float(REPRODUCIBILITY.function("power", float(base), float(exponent)))
        return found
    return base**exponent
