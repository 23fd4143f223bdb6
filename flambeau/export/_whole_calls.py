"""Public functions that an exported program holds as one operator, though they run several ops or none.

PyTorch writes down the call that the program made and takes it apart only when it is asked to. A function that has no
form here or in `_dispatch/public/operator_forms.py` is written down as the ops that it runs.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from .._core.device import contiguous_format, device
from .._core.process.defaults import get_default_device
from .._core.tensor import Tensor
from .._dispatch.public.operator_forms import OperatorForm, forms_of_functional, forms_of_linalg, forms_of_torch
from .._dispatch.public.overloads import overload_named
from .._dispatch.public.overrides import FunctionMode, original_of
from .._dispatch.public.registry import function_named
from ..compiler.capture.operators import OperatorCall, WholeCall
from ..compiler.capture.trace import Trace


class _Whole:
    """Calls of a public function as calls of its operator."""

    def __init__(self, form: OperatorForm) -> None:
        self.form = form

    def __call__(self, *args: Any, **kwargs: Any) -> OperatorCall | None:
        form = self.form
        given = form.given(args, kwargs)
        if form.another(given):
            return None
        given["cudnn_enabled"] = False
        values = [(each, each.as_given(given[each.name])) for each in form.arguments]
        named = {each.name: value for each, value in values if each.by_name and not each.is_left_out(value)}
        plain = [(each, value) for each, value in values if not each.by_name]
        while plain and plain[-1][0].is_left_out(plain[-1][1]):
            plain.pop()
        overload = "padding" if isinstance(given.get("padding"), str) else form.overload
        return _aten(form.operator_for(given.get("inplace")), overload, *[value for _, value in plain], **named)


def _aten(name: str, overload: str, *args: Any, **kwargs: Any) -> OperatorCall:
    return OperatorCall(overload_named("aten", name, overload), args, kwargs)


def _reshape(input: Tensor, *shape: Any) -> OperatorCall:
    sizes = shape[0] if len(shape) == 1 and isinstance(shape[0], (tuple, list)) else shape
    return _aten("reshape", "default", input, list(sizes))


def _einsum(equation: Any, *operands: Any) -> OperatorCall | None:
    if not isinstance(equation, str):
        return None
    tensors = operands[0] if len(operands) == 1 and isinstance(operands[0], (tuple, list)) else operands
    return _aten("einsum", "default", equation, list(tensors))


def _arange(*bounds: Any, **options: Any) -> OperatorCall | None:
    given = {name: value for name, value in options.items() if value is not None and value is not False}
    if not given.keys() <= {"dtype", "device"}:
        return None
    given["device"] = device(given.get("device") or get_default_device())
    return _aten("arange", ("default", "start", "start_step")[len(bounds) - 1], *bounds, **given)


def _where(condition: Any, input: Any = None, other: Any = None, *, out: Any = None) -> OperatorCall | None:
    if input is None or other is None or out is not None:
        return None
    names = {(True, True): "self", (True, False): "ScalarOther", (False, True): "ScalarSelf", (False, False): "Scalar"}
    return _aten("where", names[isinstance(input, Tensor), isinstance(other, Tensor)], condition, input, other)


def _contiguous(input: Tensor, memory_format: Any = contiguous_format) -> OperatorCall | None:
    if input.is_contiguous(memory_format=memory_format):
        return None  # nothing happens
    options = {} if memory_format is contiguous_format else {"memory_format": memory_format}
    return _aten("contiguous", "default", input, **options)


def _histogram(
    input: Tensor, bins: Any, *, range: Any = None, weight: Any = None, density: bool = False, out: Any = None
) -> OperatorCall | None:
    if out is not None:
        return None
    options = {"range": range, "weight": weight, "density": density or None}
    named = {name: value for name, value in options.items() if value is not None}
    return _aten("histogram", "bins_tensor" if isinstance(bins, Tensor) else "bin_ct", input, bins, **named)


def _kinds(*values: Any, number: str) -> str:
    """The overload for tensors in some places: `Tensor_Scalar`."""
    return "_".join(["Tensor" if isinstance(each, Tensor) else number for each in values])


def _normal(mean: Any, std: Any = 1.0, size: Any = None, *, out: Any = None, **options: Any) -> OperatorCall | None:
    if size is not None or out is not None:
        return None
    spread = (std,) if isinstance(std, Tensor) or std != 1 else ()
    return _aten("normal", _kinds(mean, std, number="float"), mean, *spread)


def _spaced(name: str) -> Callable[..., OperatorCall | None]:
    def call(start: Any, end: Any, steps: int, *base: Any, **options: Any) -> OperatorCall | None:
        given = {name: value for name, value in options.items() if value is not None and value is not False}
        if not given.keys() <= {"dtype", "device"}:
            return None
        given["device"] = device(given.get("device") or get_default_device())
        overload = _kinds(start, end, number="Scalar").replace("Scalar_Scalar", "default")
        return _aten(name, overload, start, end, steps, *base, **given)

    return call


def _tensor_split(input: Tensor, indices_or_sections: Any, dim: int = 0) -> OperatorCall | None:
    if not isinstance(indices_or_sections, Tensor):
        return None
    return _aten("tensor_split", "tensor_indices_or_sections", input, indices_or_sections, *([dim] if dim else []))


def _variance_call(name: str) -> Callable[..., OperatorCall | None]:
    def call(
        input: Tensor, dim: Any = None, unbiased: Any = None, keepdim: bool = False, *, correction: Any = None,
        out: Any = None,
    ) -> OperatorCall | None:  # fmt: skip
        if type(dim) not in (int, tuple, list) or correction is not None or out is not None:
            return None
        dims = [dim] if isinstance(dim, int) else list(dim)
        return _aten(
            name,
            "dim",
            input,
            dims,
            *((unbiased is not False, True) if keepdim else () if unbiased is not False else (False,)),
        )

    return call


_RECURRENT = ("lstm", "gru", "rnn_tanh", "rnn_relu")


def _recurrent(name: str) -> Callable[..., OperatorCall]:
    def call(input: Tensor, *args: Any) -> OperatorCall:
        is_packed = isinstance(args[1], Tensor) or (isinstance(args[0], Tensor) and args[0].ndim == 1)
        values = [list(each) if isinstance(each, tuple) else each for each in args]
        return _aten(name, "data" if is_packed else "input", input, *values)

    return call


_MODES = {
    ("nearest", 3): "upsample_nearest1d", ("nearest", 4): "upsample_nearest2d", ("nearest", 5): "upsample_nearest3d",
    ("linear", 3): "upsample_linear1d", ("bilinear", 4): "upsample_bilinear2d",
    ("trilinear", 5): "upsample_trilinear3d", ("bicubic", 4): "upsample_bicubic2d",
}  # fmt: skip


def _interpolate(
    input: Tensor, size: Any = None, scale_factor: Any = None, mode: str = "nearest", align_corners: Any = None,
    recompute_scale_factor: Any = None, antialias: bool = False,
) -> OperatorCall | None:  # fmt: skip
    name = _MODES.get((mode, input.ndim))
    if name is None or recompute_scale_factor or antialias:
        return None
    count = input.ndim - 2
    sizes = [size] * count if isinstance(size, int) else size if size is None else list(size)
    factors = [float(scale_factor)] * count if isinstance(scale_factor, (int, float)) else scale_factor
    corners = () if mode == "nearest" else (bool(align_corners),)
    return _aten(name, "vec", input, sizes, *corners, factors if factors is None else list(factors))


@functools.cache
def _forms() -> dict[Any, Callable[..., OperatorCall | None]]:
    """The forms of calls, by the function that stands behind those of namespaces and methods."""
    forms: dict[Any, Callable[..., OperatorCall | None]] = {
        function_named("", "arange"): _arange,
        function_named("", "reshape"): _reshape,
        function_named("", "einsum"): _einsum,
        function_named("", "histogram"): _histogram,
        function_named("", "normal"): _normal,
        function_named("", "tensor_split"): _tensor_split,
        function_named("", "where"): _where,
        function_named("nn.functional", "interpolate"): _interpolate,
        Tensor.contiguous: _contiguous,
        **{function_named("", name): _variance_call(name) for name in ("std", "var")},
        **{function_named("", name): _spaced(name) for name in ("linspace", "logspace")},
        **{function_named("", name): _recurrent(name) for name in _RECURRENT},
    }
    for form in (*forms_of_functional().values(), *forms_of_torch().values(), *forms_of_linalg().values()):
        forms[form.function] = _Whole(form)
    return {original_of(function): form for function, form in forms.items()}


@functools.cache
def _written_in_python() -> frozenset[Any]:
    """Functions that PyTorch's programs see inside of: Python code that calls others."""
    return frozenset((function_named("nn.functional", "multi_head_attention_forward"),))


class WholeCalls(FunctionMode):
    """Tells a trace of public functions that are operators, in place of the ops that they run."""

    def __init__(self, trace: Trace, forms: Mapping[Any, Callable[..., OperatorCall | None]]) -> None:
        self._trace, self._forms = trace, forms

    def __torch_function__(self, func: Any, types: Any, args: Sequence[Any] = (), kwargs: Any = None) -> Any:
        named = kwargs or {}
        if func in _written_in_python():
            with self:
                return func.__wrapped__(*args, **named)
        form = self._forms.get(original_of(func))
        call = None if form is None else form(*args, **named)
        if call is None:
            return func(*args, **named)
        writes = form.form.writes if isinstance(form, _Whole) else ()
        whole = WholeCall(call.func, tuple(call.kwargs), writes)
        return self._trace.run_whole(whole, (*call.args, *call.kwargs.values()), lambda: func(*args, **named))


class CallTrace(Trace):
    """A trace of what a program calls."""

    writes_operators_whole = True

    def __init__(self) -> None:
        super().__init__(lambda name: True)
        self._calls = WholeCalls(self, _forms())

    def __enter__(self) -> Any:
        self._calls.__enter__()
        return super().__enter__()

    def __exit__(self, *exception: object) -> None:
        super().__exit__(*exception)
        self._calls.__exit__(*exception)
