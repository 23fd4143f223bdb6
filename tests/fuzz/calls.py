"""Writes calls of operators with arguments as nobody chose them: other dtypes, layouts, sizes, numbers and options.

A call begins as a sample of PyTorch's operator database. Then its tensors and numbers are changed at random; the
function, the method, the form in place or `out=` is called, compiled or not, and derivatives follow.
"""

from __future__ import annotations

import functools
import itertools
import math
import warnings
from typing import Any

from tests.support.oracle import pytorch

from . import program
from .program import Failure, Program
from .writer import Writer

_LARGEST = 60
"""Elements of a tensor that is written out."""

_OPEN = (
    "empty", "empty_like", "empty_permuted", "empty_strided", "new_empty", "new_empty_strided", "resize_",
    "resize_as_", "linalg.eig", "linalg.eigh", "linalg.svd", "svd", "svd_lowrank", "pca_lowrank", "linalg.qr", "qr",
    "geqrf", "ormqr", "linalg.lstsq", "lstsq", "linalg.ldl_factor", "linalg.ldl_factor_ex", "linalg.ldl_solve",
    "linalg.householder_product", "linalg.eigvals", "lu_solve", "linalg.lu_solve", "lu", "linalg.lu",
    "linalg.lu_factor", "linalg.lu_factor_ex", "lu_unpack", "linalg.inv", "linalg.inv_ex", "inverse",
    "linalg.solve", "linalg.solve_ex", "linalg.pinv", "pinverse", "linalg.tensorinv", "linalg.tensorsolve",
    "cholesky_inverse", "cholesky_solve", "triangular_solve", "linalg.cond", "linalg.solve_triangular",
    "linalg.cholesky", "linalg.cholesky_ex", "cholesky", "linalg.slogdet", "logdet", "linalg.det", "det",
    "linalg.matrix_rank", "linalg.matrix_power", "matrix_exp", "linalg.matrix_exp", "as_strided_scatter",
    "special.zeta",
)  # fmt: skip
"""Operators whose results are open: of memory that nobody filled, of matrices that are singular once they are changed;
and those of which PyTorch has numbers or gradients that are not right."""

_SPECIAL = (0.0, -0.0, 1.0, -1.0, float("inf"), -float("inf"), float("nan"), 100.0, 1e-3, 0.5, 2.5)
_NUMBERS = (0.0, 1.0, -1.0, float("inf"), 100.0, 0.5, 2.5)
_BROKEN = ("float64", "float64", "float32", "int64", "int32", "uint8", "bool", "bfloat16", "float16", "complex64")
_WHOLE = ("int32", "int64", "int16")
_LAYOUTS = (
    *("{0}.mT.contiguous().mT", "torch.stack([{0}, {0} * 0], -1)[..., 0]", "torch.cat([{0}[:1], {0}])[1:]"),
    *("{0}[..., :1].expand({0}.shape)", "{0}.movedim(0, -1).contiguous().movedim(-1, 0)", "{0}.flip(0)"),
    *("{0}.view({0}.shape)", "{0}.unfold(0, 1, 1)[..., 0]", "{0}.to(memory_format=torch.channels_last)"),
    "torch.nn.Parameter({0})",
)
_SIZES = (
    *("{0}[:0]", "{0}[:1]", "{0}[None]", "{0}[..., None]", "{0}[0]", "{0}[..., :0]", "{0}.flatten()", "{0}.sum()"),
    *("torch.stack([{0}, {0}])", "{0}.mT"),
)
_OUTS = (
    *("torch.empty(0)", "{0}.detach().clone()", "torch.zeros(2, 3)", "torch.zeros((), dtype=torch.float64)"),
    "{0}.detach().clone().mT",
)
_STATES = (
    *("",) * 6,
    *("with torch.no_grad():", "with torch.inference_mode():", "with torch.autocast('cpu', dtype=torch.bfloat16):"),
)
_ENDS = (
    *("see(plain(grads(result, leaves)))",) * 3,
    "first = grads(result, leaves)\nsee(plain(first))\nsee(plain(grads(first, leaves)))",
    "see([each.detach() for each in roots(result)])",
)

_HELPERS = """\
def needs_grad(x):
    return x.detach().requires_grad_() if x.is_floating_point() or x.is_complex() else x
def roots(result):
    flat = result if isinstance(result, (tuple, list)) else (result,)
    return [each for each in flat if isinstance(each, torch.Tensor) and each.requires_grad]
def weighted(x):
    x = (x.real if x.is_complex() else x).double()
    return (x * torch.arange(1.0, x.numel() + 1).reshape(x.shape).double()).sum()
def grads(result, leaves):
    total = sum(weighted(each) for each in roots(result))
    if not leaves or not isinstance(total, torch.Tensor):
        return None
    return torch.autograd.grad(total, leaves, allow_unused=True, create_graph=True)
def plain(derivatives):
    return derivatives and [None if each is None else each.detach().contiguous() for each in derivatives]
"""


@functools.cache
def _entries() -> list[tuple[str, Any]]:
    """The operators whose function has the same name in both libraries.

    Polynomials of a degree that is no number, and positions that nobody checks, give whatever comes out.
    """
    from tests.conformance.entries import entries

    found = []
    for each in entries():
        try:
            functools.reduce(getattr, each.info.name.split("."), pytorch)
        except AttributeError:
            continue
        is_open = each.info.name in _OPEN or "_polynomial_" in each.info.name or "_unsafe_masked" in each.info.name
        if each.dtypes and not is_open:
            found.append((each.info.name, each))
    return found


@functools.cache
def _samples(place: int, dtype: Any) -> list[Any]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = itertools.islice(_entries()[place][1].samples(dtype), 24)
        return [(each.input, *each.args, each.kwargs) for each in found]


class _Unwritten(Exception):
    """An argument that has no text."""


class _Call(Writer):
    def write(self) -> Program:
        while True:
            place = self.random.randrange(len(_entries()))
            name, entry = _entries()[place]
            samples = _samples(place, self.pick((entry.main_dtype, entry.main_dtype, self.pick(entry.dtypes))))
            if not samples:
                continue
            *args, kwargs = self.pick(samples)
            self.lines = []
            self._tensors: list[str] = []
            try:
                texts = [self.argument(each) for each in args]
                words = [f"{key}={self.argument(each)}" for key, each in kwargs.items() if not self.chance(0.05)]
            except _Unwritten:
                continue
            self.call(name, texts, words)
            return self.program()

    def argument(self, value: Any) -> str:
        """The text of an argument, changed now and then."""
        if isinstance(value, pytorch.Tensor):
            return self.tensor(value)
        if isinstance(value, bool):
            return repr(value != self.chance(0.05))
        if isinstance(value, int):
            return repr(
                value if self.chance(0.94) else self.pick((value + 1, value - 1, -value, 0, 1, 2, -1, value * 3))
            )
        if isinstance(value, float):
            return self.float(value if self.chance(0.9) else self.pick(_NUMBERS))
        if value is None or isinstance(value, (str, complex)):
            return repr(value)
        if isinstance(value, (pytorch.dtype, pytorch.memory_format, pytorch.layout)):
            return str(value)
        if type(value) in (list, tuple):
            parts = "".join(f"{self.argument(each)}, " for each in value)
            return f"[{parts}]" if type(value) is list else f"({parts})"
        raise _Unwritten

    def float(self, value: Any) -> str:
        return repr(value) if math.isfinite(value) else f"float('{value}')"

    def tensor(self, value: Any) -> str:
        """Lines that make a tensor, and its name."""
        if value.layout is not pytorch.strided or value.numel() > _LARGEST or type(value) is not pytorch.Tensor:
            raise _Unwritten
        name = self.new("x")
        elements = value.detach().resolve_conj().resolve_neg().flatten().tolist()
        text = ", ".join(self.element(each) for each in elements)
        shape = ", ".join(map(str, value.shape)) or "()"
        self.line(f"{name} = torch.tensor([{text}], dtype={value.dtype}).reshape({shape})")
        if self.chance(0.08):
            kinds = _BROKEN if value.is_floating_point() or value.is_complex() else _WHOLE
            self.line(f"{name} = {name}.to(torch.{self.pick(kinds)})")
        for chance, forms in ((0.1, _SIZES), (0.25, _LAYOUTS)):
            if self.chance(chance):
                self.line(f"{name} = {self.pick(forms).format(name)}")
        if self.chance(0.7):
            self.line(f"{name} = needs_grad({name})")
        self._tensors.append(name)
        return name

    def element(self, value: Any) -> str:
        if isinstance(value, float):
            return self.float(round(value, 3) if self.chance(0.97) else self.pick(_SPECIAL))
        if isinstance(value, complex):
            return f"complex({self.float(round(value.real, 3))}, {self.float(round(value.imag, 3))})"
        return repr(value)

    def call(self, name: str, texts: list[str], words: list[str]) -> None:
        """The function that makes the call, its calls, and what is looked at afterwards."""
        self.lines[:0] = _HELPERS.splitlines()
        given = ", ".join(self._tensors)
        everything = ", ".join((*texts, *words))
        form, last = f"torch.{name}({everything})", name.rpartition(".")[2]
        if texts and texts[0] in self._tensors and self.chance(0.3):
            first, rest = texts[0], ", ".join((*texts[1:], *words))
            form = self.pick(
                (f"{first}.{last}({rest})", f"({first} * 1).{last}_({rest})", f"torch.{name}({everything}, out=out)")
            )
            if form.endswith("out=out)"):
                self.line(f"out = {self.pick(_OUTS).format(first)}")
        self.line(f"def function({given}):")
        self.line(f"result = {form}", 1)
        doubled = "result * 2 if isinstance(result, torch.Tensor) else result"
        self.line(f"return {'result' if self.chance(0.7) else doubled}", 1)
        depth = 0
        if self.chance(0.3):
            self.line("function = compile(function)\nfor turn in range(4):")
            depth = 1
        state = self.pick(_STATES)
        if state:
            self.line(state, depth)
        inner = depth + bool(state)
        self.line(f"torch.manual_seed(1)\nresult = function({given})\nsee(result)", inner)
        self.line(f"leaves = [each for each in [{given}] if each.requires_grad]", depth)
        self.line(self.pick(_ENDS), depth)


def write(seed: int) -> Program:
    """The program of this seed, always the same."""
    return _Call(seed).write()


_REFUSALS = ("RuntimeError", "TypeError", "ValueError", "IndexError", "NotImplementedError")
_ONLY_PYTORCH = (
    "Use .reshape(...) instead",
    "tolist() shouldn't be called on a tensor with unallocated storage",
    "functions with out=... arguments don't support automatic differentiation",
    "the derivative for '",
    "not implemented for '",
)
"""Refusals that come from how a library computes: of views within, of results that nobody filled, of `out=` there, of
second derivatives and dtypes that one of them has."""


def judge(text: Program) -> Failure | None:
    """Where runs of a program disagree. Which of several faults of a call is found first is open."""
    found = program.judge(text)
    if found is None:
        return None
    if found.about == "stride" and any("expand(" in line for line in text):
        return None  # expanded dimensions may stand anywhere
    if not found.about.startswith("raises"):
        return found
    kinds = found.about.split()[1:4:2]
    if all(each in _REFUSALS for each in kinds) or any(phrase in found.detail for phrase in _ONLY_PYTORCH):
        return None
    return found
