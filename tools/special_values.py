"""Elementwise functions and their two derivatives at special numbers, beside PyTorch: writes docs/special-values.md.

    python tools/special_values.py                     # everything; writes the page and tools/special_values.json
    python tools/special_values.py pow elu             # some functions: what differs, printed only
    python tools/special_values.py --here              # float32 on another processor: adds its list to these files

The numbers are NaN, the infinities, both zeros, denormal numbers, the smallest and the largest ones, and ordinary ones
where functions have their seams. Each function runs on few elements, as NumPy computes them, and on many, as generated
code does. PyTorch's own results differ here and there between a single element and many, which it computes as vectors:
either of the two is right. `tools/special_values.json` lists what differs from both, with reasons;
the test of this tool lets it only shrink.
"""

from __future__ import annotations

import datetime
import importlib
import itertools
import json
import math
import pkgutil
import platform
import sys
import textwrap
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

import flambeau

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "special-values.md"
KNOWN = Path(__file__).with_suffix(".json")

FLOATS = ("float16", "bfloat16", "float32", "float64")
COMPLEX = ("complex64", "complex128")
INTEGERS = ("uint8", "int32", "int64")
DTYPES = (*FLOATS, *COMPLEX, *INTEGERS)
SIZES = {"few": 1, "many": 4096}
"""The least number of elements: NumPy's kernels run on few, generated ones on many."""
ORDERS = ("value", "first derivative", "second derivative")

Call = Callable[..., Any]
"""From a library and operands to a tensor."""


@dataclass(frozen=True)
class Function:
    call: Call
    operands: int


def _named(name: str, operands: int) -> Function:
    """The function that PyTorch calls so, wherever it is."""

    def call(T: Any, *given: Any) -> Any:
        for place, own in ((T, name), (T.special, name.removeprefix("special_")), (T.nn.functional, name)):
            if hasattr(place, own):
                return getattr(place, own)(*given)
        raise AttributeError(name)

    return Function(call, operands)


def _activation(name: str, **options: Any) -> Function:
    return Function(lambda T, x: getattr(T.nn.functional, name)(x, **options), 1)


FUNCTIONS: dict[str, Function] = {
    "div_floor": Function(lambda T, x, y: T.div(x, y, rounding_mode="floor"), 2),
    "div_trunc": Function(lambda T, x, y: T.div(x, y, rounding_mode="trunc"), 2),
    "rsub": Function(lambda T, x, y: T.rsub(x, y), 2),
    **{
        name: _activation(name)
        for name in (
            *("relu6", "hardtanh", "leaky_relu", "elu", "celu", "selu", "gelu", "silu", "mish", "softplus"),
            *("logsigmoid", "hardsigmoid", "hardswish", "hardshrink", "softshrink", "tanhshrink", "softsign", "rrelu"),
        )
    },
    "elu, alpha=2": _activation("elu", alpha=2.0),
    "celu, alpha=-0.5": _activation("celu", alpha=-0.5),
    "gelu, tanh": _activation("gelu", approximate="tanh"),
    "softplus, beta=-2": _activation("softplus", beta=-2.0, threshold=3.0),
    "threshold": _activation("threshold", threshold=0.5, value=-3.0),
    "leaky_relu, slope=-1": _activation("leaky_relu", negative_slope=-1.0),
    "prelu": Function(lambda T, x: T.nn.functional.prelu(x, T.full((1,), 0.25, dtype=x.dtype)), 1),
    "glu": Function(lambda T, x, y: T.nn.functional.glu(T.stack((x, y)), 0)[0], 2),
    "logit": Function(lambda T, x: x.logit(), 1),
    "logit, eps": Function(lambda T, x: x.logit(0.25), 1),
    "angle": Function(lambda T, x: x.angle(), 1),
    "nan_to_num": Function(lambda T, x: x.nan_to_num(), 1),
    "nan_to_num, numbers": Function(lambda T, x: x.nan_to_num(1.0, 2.0, -3.0), 1),
    "square": Function(lambda T, x: x.square(), 1),
    "real": Function(lambda T, x: x.real, 1),
    "polygamma, 1": Function(lambda T, x: T.polygamma(1, x), 1),
    "mvlgamma, 2": Function(lambda T, x: x.mvlgamma(2), 1),
    "round, 2": Function(lambda T, x: x.round(decimals=2), 1),
    "round, -1": Function(lambda T, x: x.round(decimals=-1), 1),
    "frexp, mantissa": Function(lambda T, x: T.frexp(x)[0], 1),
    "frexp, exponent": Function(lambda T, x: T.frexp(x)[1], 1),
    "clamp, numbers": Function(lambda T, x: x.clamp(-0.5, 1.0), 1),
    "clamp, min": Function(lambda T, x: x.clamp(min=0.0), 1),
    "clamp, max": Function(lambda T, x: x.clamp(max=0.0), 1),
    "clamp, tensors": Function(lambda T, x, y: x.clamp(y, y + 1), 2),
    "clamp, min tensor": Function(lambda T, x, y: x.clamp(min=y), 2),
    "clamp, max tensor": Function(lambda T, x, y: x.clamp(max=y), 2),
    "lerp, number": Function(lambda T, x, y: x.lerp(y, 0.3), 2),
    "lerp, tensor": Function(lambda T, x, y: x.lerp(y, T.full_like(x.detach(), 0.7)), 2),
    "addcmul": Function(lambda T, x, y: T.addcmul(x, x, y, value=2), 2),
    "addcdiv": Function(lambda T, x, y: T.addcdiv(x, x, y, value=2), 2),
    "add, alpha": Function(lambda T, x, y: T.add(x, y, alpha=2), 2),
    "sub, alpha": Function(lambda T, x, y: T.sub(x, y, alpha=2), 2),
    "isclose": Function(lambda T, x, y: T.isclose(x, y, equal_nan=True), 2),
    "where": Function(lambda T, x, y: T.where(x > 0, x, y), 2),
    "complex": Function(lambda T, x, y: T.complex(x, y), 2),
    "polar": Function(lambda T, x, y: T.polar(x, y), 2),
    **{
        f"pow, {exponent}": Function(lambda T, x, exponent=exponent: x**exponent, 1)
        for exponent in (0, 1, 2, 3, -1, -2, 0.5, -0.5, 2.5, math.inf, math.nan)
    },
    **{
        f"{base} to the power": Function(lambda T, x, base=base: T.pow(base, x), 1)
        for base in (0, 1, 2, -2, 0.5, math.inf)
    },
    "number minus": Function(lambda T, x: 2 - x, 1),
    "number divided": Function(lambda T, x: 2 / x, 1),
    "mul_number": Function(lambda T, x: x * 3.5, 1),
    "div_number": Function(lambda T, x: x / 3, 1),
    "remainder_by_number": Function(lambda T, x: x % -2, 1),
    "remainder_of_number": Function(lambda T, x: T.remainder(7, x), 1),
    "fmod_by_number": Function(lambda T, x: T.fmod(x, -2), 1),
    "pow_of_number": Function(lambda T, x: T.pow(1.5, x), 1),
    "xlogy_of_number": Function(lambda T, x: T.xlogy(0, x), 1),
    "xlogy_with_number": Function(lambda T, x: T.xlogy(x, 0), 1),
    "special_xlog1py_of_number": Function(lambda T, x: T.special.xlog1py(0, x), 1),
    "special_xlog1py_with_number": Function(lambda T, x: T.special.xlog1py(x, -1), 1),
    "copysign_of_number": Function(lambda T, x: T.copysign(x, -0.0), 1),
    **{  # of a high degree PyTorch's would take for ever
        name: Function(lambda T, x, name=name: getattr(T.special, name)(x, 3), 1)
        for name in (
            *(f"{shifted}chebyshev_polynomial_{kind}" for kind in "tuvw" for shifted in ("", "shifted_")),
            *("hermite_polynomial_h", "hermite_polynomial_he", "laguerre_polynomial_l", "legendre_polynomial_p"),
        )
    },
}


def registered() -> dict[str, int]:
    """The elementwise ops that the registry knows, each with the number of its operands."""
    from flambeau._dispatch.elementwise import Elementwise
    from flambeau._dispatch.op import OPS

    folder = importlib.import_module("flambeau._ops.pointwise")
    for module in pkgutil.iter_modules(folder.__path__):
        importlib.import_module(f"{folder.__name__}.{module.name}")
    return {name: len(op.parameters) for name, op in OPS.items() if isinstance(op, Elementwise)}


FUNCTIONS = {
    **{name: _named(name, count) for name, count in registered().items() if name not in FUNCTIONS},
    **FUNCTIONS,
}


def numbers(dtype: str) -> list[Any]:
    """The special numbers of a dtype."""
    if dtype in INTEGERS:
        info = torch.iinfo(getattr(torch, dtype))
        return [0, 1, 2, 3, 7, info.max, *([-1, -2, info.min] if info.min else [])]
    info = torch.finfo(getattr(torch, dtype))
    ordinary = [0.0, 0.3, 0.5, 1.0, 2.0, 3.0, 7.5, 25.0, 100.0]
    return [
        math.nan,
        *(
            sign * each
            for each in (*ordinary, info.smallest_normal, _denormal(info), info.max, math.inf)
            for sign in (1, -1)
        ),
    ]


def _denormal(info: Any) -> float:
    return float(info.smallest_normal * info.eps)


def few_numbers(dtype: str) -> list[Any]:
    """Fewer, for pairs."""
    if dtype in INTEGERS:
        return numbers(dtype)
    info = torch.finfo(getattr(torch, dtype))
    chosen = (0.0, 0.5, 1.0, 3.0, _denormal(info), info.max, math.inf)
    return [math.nan, *(sign * each for each in chosen for sign in (1, -1))]


def points(dtype: str, operands: int) -> list[tuple[Any, ...]]:
    """The operands at which a function is tried."""
    if dtype in COMPLEX:
        real = "float32" if dtype == "complex64" else "float64"
        if operands == 1:
            info = torch.finfo(getattr(torch, real))
            parts = [math.nan, 0.0, -0.0, 0.5, -1.0, 2.0, info.smallest_normal, info.max, math.inf, -math.inf]
            return [(complex(*pair),) for pair in itertools.product(parts, repeat=2)]
        parts = [math.nan, 0.0, -0.0, 1.5, math.inf]
        values = [complex(*pair) for pair in itertools.product(parts, repeat=2)]
        return list(itertools.product(values, repeat=2))
    if operands == 1:
        return [(each,) for each in numbers(dtype)]
    return list(itertools.product(few_numbers(dtype), repeat=operands))


def results(T: Any, function: Function, dtype: str, size: int, given: list[tuple[Any, ...]]) -> dict[str, list[Any]]:
    """Values and those derivatives that exist, as arrays."""
    copies = -(-size // len(given))
    kind = getattr(T, dtype)
    operands = [
        T.tensor([each[place] for each in given], dtype=kind).repeat(copies) for place in range(function.operands)
    ]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        value = function.call(T, *operands)
        found = {"value": [_array(value, len(given))]}
        if dtype in INTEGERS or not (value.is_floating_point() or value.is_complex()):
            return found
        try:
            for order in ORDERS[1:]:
                found[order] = _derivatives(T, function, operands, len(given), order)
        except (RuntimeError, NotImplementedError) as error:
            if "not implemented" not in str(error):
                raise
    return found


def _derivatives(T: Any, function: Function, operands: list[Any], count: int, order: str) -> list[Any]:
    leaves = [each.detach().requires_grad_() for each in operands]
    value = function.call(T, *leaves)
    if not value.requires_grad:
        return []
    ones = T.ones_like(value)
    first = T.autograd.grad(value, leaves, ones, create_graph=order != "first derivative", allow_unused=True)
    if order == "first derivative":
        return [_array(each, count) for each in first]
    second: list[Any] = []
    for each in first:
        if each is None or not each.requires_grad:
            second += [None] * len(leaves)
        else:
            second += T.autograd.grad(each, leaves, T.ones_like(each), retain_graph=True, allow_unused=True)
    return [_array(each, count) for each in second]


def _array(tensor: Any, count: int) -> Any:
    """The first elements; None, a gradient that does not exist, is zero."""
    if tensor is None:
        return np.zeros(count)
    tensor = tensor.detach().reshape(-1)[:count]
    if tensor.is_complex():
        return tensor.numpy().astype(np.complex128)
    return tensor.double().numpy() if tensor.is_floating_point() else tensor.numpy()


TOLERANCE = {"float64": 1e-10, "complex128": 1e-10, "float16": 4e-3, "bfloat16": 3e-2}
"""Errors of ordinary results are the matter of other tests. Other dtypes, integers among them: 1e-4."""


def same(ours: Any, theirs: Any, dtype: str, zeros: bool) -> Any:
    """Where results are equal: NaN, infinities with their signs, zeros with theirs if `zeros`, numbers nearly.

    A complex number of which either part is NaN counts as NaN.
    """
    if theirs.dtype.kind == "c" or ours.dtype.kind == "c":
        ours, theirs = ours.astype(complex), theirs.astype(complex)
        parts = same(ours.real, theirs.real, dtype, zeros) & same(ours.imag, theirs.imag, dtype, zeros)
        with np.errstate(all="ignore"):
            near = np.abs(ours - theirs) <= TOLERANCE.get(dtype, 1e-4) * np.abs(theirs)
        near &= np.isfinite(ours) & np.isfinite(theirs) & (ours.real * ours.imag != 0)
        return parts | near | (np.isnan(ours) & np.isnan(theirs))
    if theirs.dtype.kind != "f":
        return ours == theirs
    tolerance = TOLERANCE.get(dtype, 1e-4)
    least = 0.0
    if dtype not in INTEGERS:
        info = torch.finfo(getattr(torch, dtype))
        least = max(4 * _denormal(info), tolerance * info.smallest_normal)
    with np.errstate(all="ignore"):
        near = np.abs(ours - theirs) <= tolerance * np.abs(theirs) + least
        equal = (np.isnan(ours) & np.isnan(theirs)) | (ours == theirs) | (np.isfinite(theirs) & near)
        if zeros:
            equal &= (ours != 0) | (theirs != 0) | (np.signbit(ours) == np.signbit(theirs))
    return equal


@dataclass(frozen=True)
class Difference:
    """Where a function differs: `at` has the operands, with both results."""

    name: str
    dtype: str
    size: str
    order: str
    at: list[str]
    compared: int

    @property
    def key(self) -> str:
        return f"{self.name} | {self.dtype} | {self.size} | {self.order}"


def compared(name: str, dtype: str, size: str) -> Iterator[Difference]:
    """What was compared, one item for each order of derivative."""
    function = FUNCTIONS[name]
    given = points(dtype, function.operands)
    try:
        theirs = results(torch, function, dtype, SIZES[size], given)
    except (RuntimeError, NotImplementedError, TypeError, AttributeError):
        return
    try:
        ours = results(flambeau, function, dtype, SIZES[size], given)
    except Exception as error:  # what PyTorch computes must not raise
        yield Difference(name, dtype, size, "value", [f"raises {type(error).__name__}: {error}".partition("\n")[0]], 1)
        return
    alone: dict[int, dict[str, list[Any]]] = {}
    for order, expected in theirs.items():
        got = ours.get(order)
        if got is None:
            yield Difference(name, dtype, size, order, ["it does not exist"], 1)
            continue
        if len(got) != len(expected):  # no result requires a gradient: it is zero
            got = [np.zeros(len(given))] * len(expected)
        zeros = order == "value"
        at = []
        for place, (one, two) in enumerate(zip(got, expected, strict=True)):
            for index in np.flatnonzero(~same(one, two, dtype, zeros)).tolist():
                if index not in alone:
                    alone[index] = results(torch, function, dtype, 1, [given[index]])
                if same(one[index : index + 1], alone[index][order][place], dtype, zeros).all():
                    continue
                where = ", ".join(str(each) for each in given[index])
                output = f" (result {place})" if len(expected) > 1 else ""
                at.append(f"{where}: {one[index]} for {two[index]}{output}")
        yield Difference(name, dtype, size, order, at, len(given) * len(expected))


def everything(
    names: list[str], dtypes: tuple[str, ...] = DTYPES, sizes: tuple[str, ...] = tuple(SIZES)
) -> Iterator[Difference]:
    for name, dtype, size in itertools.product(names, dtypes, sizes):
        yield from compared(name, dtype, size)


TEXT = """# Special numbers

What do elementwise functions and their first two derivatives return at NaN, the infinities, both zeros,
denormal numbers and the largest numbers? The same as PyTorch, almost everywhere: {agree} of {all} results agree
({share:.2%}). The rest is listed below with reasons; mostly PyTorch returns NaN where Flambeau returns the
limit.

The comparison covers {functions} functions, with few elements (NumPy's kernels) and with many (generated
kernels). Two results agree if both are NaN, infinities of the same sign, zeros of the same sign (for values),
or nearly the same number. Where PyTorch itself gives different results for one element and for many, either
counts.

| dtype | {heads} |
| --- | --- | --- | --- |
{table}

The other results, by function, with the reason:

{reasons}

{elsewhere}

Measured on {machine} on {date}; to measure again:

    python tools/special_values.py
"""


def of_others(elsewhere: dict[str, Any]) -> str:
    """What the page says of other processors."""
    return "\n".join(
        textwrap.fill(
            f"On {machine}, float32 alone: {each['compared'] - sum(each['differences'].values())} of "
            f"{each['compared']} results agree. What is different only there: {each['reason']}",
            120,
            break_on_hyphens=False,
        )
        for machine, each in elsewhere.items()
    )


def add_this_processor() -> None:
    """Write what differs here, for float32, to the list and the page that another processor's results made."""
    known = json.loads(KNOWN.read_text())
    before = of_others(known["elsewhere"])
    found = list(everything(list(FUNCTIONS), ("float32",)))
    known["elsewhere"].setdefault(platform.machine(), {"reason": "to be found."}).update(
        compared=sum(each.compared for each in found),
        differences={each.key: len(each.at) for each in found if each.at},
    )
    KNOWN.write_text(json.dumps(known, indent=1) + "\n")
    PAGE.write_text(PAGE.read_text().replace(before, of_others(known["elsewhere"])))


def page(found: list[Difference], reasons: dict[str, list[str]], elsewhere: dict[str, Any]) -> str:
    table = []
    for dtype in DTYPES:
        cells = []
        for order in ORDERS:
            chosen = [each for each in found if each.dtype == dtype and each.order == order]
            total, different = sum(each.compared for each in chosen), sum(len(each.at) for each in chosen)
            cells.append(f"{total - different} of {total}" if total else "-")
        table.append(f"| {dtype} | {' | '.join(cells)} |")
    counts = {name: sum(len(each.at) for each in found if each.name == name) for name in FUNCTIONS}
    lines = [
        textwrap.fill(
            f"- {reason}: " + ", ".join(f"{name} ({counts[name]})" for name in names) + ".",
            119,
            subsequent_indent="  ",
            break_on_hyphens=False,
        )
        for reason, names in reasons.items()
    ]
    total, different = sum(each.compared for each in found), sum(counts.values())
    return TEXT.format(
        functions=len(FUNCTIONS),
        agree=total - different,
        all=total,
        share=(total - different) / total,
        heads=" | ".join(ORDERS),
        table="\n".join(table),
        reasons="\n".join(lines),
        elsewhere=of_others(elsewhere),
        machine=platform.machine(),
        date=f"{datetime.date.today():%d %B %Y}",
    )


def main() -> None:
    names = sys.argv[1:]
    if names == ["--here"]:
        add_this_processor()
        return
    found = []
    for each in everything(names or list(FUNCTIONS)):
        found.append(each)
        if each.at:
            print(each.key, len(each.at), "of", each.compared, "|", "; ".join(each.at[:6]), flush=True)
    if names:
        return
    known = json.loads(KNOWN.read_text())
    differing = {each.name for each in found if each.at}
    explained = {name for listed in known["reasons"].values() for name in listed}
    if differing - explained:
        print("without a reason:", *sorted(differing - explained))
    reasons = {
        reason: kept for reason, listed in known["reasons"].items() if (kept := [n for n in listed if n in differing])
    }
    differences = {each.key: len(each.at) for each in found if each.at}
    kept = {"reasons": reasons, "differences": differences, "elsewhere": known["elsewhere"]}
    KNOWN.write_text(json.dumps({"machine": platform.machine(), **kept}, indent=1) + "\n")
    PAGE.write_text(page(found, reasons, known["elsewhere"]))


if __name__ == "__main__":
    main()
