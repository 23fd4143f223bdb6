"""Public functions that an exported program holds as one operator, though they run several ops or none.

PyTorch writes down the call that the program made, `aten.linear`, and takes it apart only when it is asked to. A
function that is not listed is written down as the ops that it runs.
"""

from __future__ import annotations

import ast
import functools
import inspect
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from .._core.device import contiguous_format, device
from .._core.process.defaults import get_default_device
from .._core.tensor import Tensor
from .._dispatch.public.overloads import overload_named
from .._dispatch.public.overrides import FunctionMode
from .._dispatch.public.registry import function_named
from ..fx._aten_calls import OperatorCall, WholeCall
from ..onnx._tracing import Trace

_OF_FUNCTIONAL = (
    "linear.default(input, weight, bias=None)",
    "dropout.default(input, p, training)",
    "alpha_dropout.default(input, p, training)",
    "feature_alpha_dropout.default(input, p, training)",
    "dropout1d -> feature_dropout.default(input, p, training)",
    "dropout2d -> feature_dropout.default(input, p, training)",
    "dropout3d -> feature_dropout.default(input, p, training)",
    "batch_norm.default(input, weight, bias, running_mean!, running_var!, training, momentum, eps, False)",
    "instance_norm.default(input, weight, bias, running_mean!, running_var!, use_input_stats, momentum, eps, False)",
    "max_pool1d.default(input, kernel_size[1], stride[1]=[], padding[1]=0, dilation[1]=1, ceil_mode=False)",
    "max_pool2d.default(input, kernel_size[2], stride[2]=[], padding[2]=0, dilation[2]=1, ceil_mode=False)",
    "max_pool3d.default(input, kernel_size[3], stride[3]=[], padding[3]=0, dilation[3]=1, ceil_mode=False)",
    "adaptive_avg_pool1d.default(input, output_size[1])",
    "adaptive_avg_pool2d.default(input, output_size[2])",
    "adaptive_avg_pool3d.default(input, output_size[3])",
    "softmax.int(input, dim, dtype=None)",
    "log_softmax.int(input, dim, dtype=None)",
    "pad.default(input, pad, mode='constant', value=None)",
    (
        "cross_entropy -> cross_entropy_loss.default(input, target, weight=None, reduction=1, ignore_index=-100, "
        "label_smoothing=0.0)"
    ),
    "nll_loss -> nll_loss_nd.default(input, target, weight=None, reduction=1, ignore_index=-100)",
)
_OF_TORCH = (
    "conv1d.default(input, weight, bias=None, stride[1]=1, padding[1]=0, dilation[1]=1, groups=1)",
    "conv2d.default(input, weight, bias=None, stride[2]=1, padding[2]=0, dilation[2]=1, groups=1)",
    "conv3d.default(input, weight, bias=None, stride[3]=1, padding[3]=0, dilation[3]=1, groups=1)",
    (
        "conv_transpose1d.default(input, weight, bias=None, stride[1]=1, padding[1]=0, output_padding[1]=0, groups=1, "
        "dilation[1]=1)"
    ),
    (
        "conv_transpose2d.input(input, weight, bias=None, stride[2]=1, padding[2]=0, output_padding[2]=0, groups=1, "
        "dilation[2]=1)"
    ),
    (
        "conv_transpose3d.input(input, weight, bias=None, stride[3]=1, padding[3]=0, output_padding[3]=0, groups=1, "
        "dilation[3]=1)"
    ),
    "flatten.using_ints(input, start_dim=0, end_dim=-1)",
    "unflatten.int(input, dim, sizes)",
    "softmax.int(input, dim, dtype=None)",
    "log_softmax.int(input, dim, dtype=None)",
    "chunk.default(input, chunks, dim=0)",
)
"""`function -> operator.overload(arguments)`; the function has the operator's name where none is said.

Arguments are parameters of the function, with PyTorch's defaults: what has its default's value is left out at the end.
`!`: the operator changes it. `[2]`: one number stands for two.
"""

_ENTRY = re.compile(r"(?:(\w+) -> )?(\w+)\.(\w+)\((.*)\)")
_PARAMETER = re.compile(r"(\w+)(!?)(?:\[(\d)\])?(?:=(.+))?")
_REDUCTIONS = {"none": 0, "mean": 1, "sum": 2}
_OTHERWISE = ("out", "return_indices", "size_average", "reduce")
"""Parameters that make a call another operator if they are given."""
_NO_DEFAULT: Any = object()


class _Argument(NamedTuple):
    """An argument of an operator: a parameter of the public function, or a constant without a name."""

    name: str
    is_written: bool
    length: int | None
    default: Any

    @classmethod
    def from_text(cls, text: str) -> _Argument:
        if text == "False":  # whether a library may do it
            return cls("", False, None, False)
        match = _PARAMETER.fullmatch(text)
        assert match is not None, text
        name, written, digit, shown = match.groups()
        length = None if digit is None else int(digit)
        default = _NO_DEFAULT if shown is None else ast.literal_eval(shown)
        return cls(name, bool(written), length, [default] * length if length and default in (0, 1) else default)

    def value(self, given: dict[str, Any]) -> Any:
        value = given.get(self.name, self.default)
        if self.name == "reduction":
            return _REDUCTIONS[value]
        if self.name == "stride" and value is None:
            return []
        if self.length is not None and isinstance(value, int):
            return [value] * self.length
        return list(value) if isinstance(value, tuple) else value

    def is_left_out(self, value: Any) -> bool:
        return bool(self.name) and type(value) is type(self.default) and value == self.default


class _Form:
    """How a call of a public function becomes a call of an operator."""

    def __init__(self, function: Callable[..., Any], operator: str, overload: str, arguments: str) -> None:
        self.operator, self.overload = operator, overload
        self.signature = inspect.signature(function)
        self.arguments = [_Argument.from_text(each) for each in re.split(r", (?![^\[]*\])", arguments)]
        self.writes = tuple([number for number, each in enumerate(self.arguments) if each.is_written])

    def __call__(self, *args: Any, **kwargs: Any) -> OperatorCall | None:
        bound = self.signature.bind(*args, **kwargs)
        bound.apply_defaults()
        given = bound.arguments
        if any(given.get(name) not in (None, False) for name in _OTHERWISE):
            return None
        values = [each.value(given) for each in self.arguments]
        while values and self.arguments[len(values) - 1].is_left_out(values[-1]):
            values.pop()
        overload = "padding" if isinstance(given.get("padding"), str) else self.overload
        return _aten(f"{self.operator}_" if given.get("inplace") else self.operator, overload, *values)


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


def _spread(name: str) -> Callable[..., OperatorCall | None]:
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
    """The forms of calls, by public function; a method is the same object."""
    forms: dict[Any, Callable[..., OperatorCall | None]] = {
        function_named("", "arange"): _arange,
        function_named("", "reshape"): _reshape,
        function_named("", "einsum"): _einsum,
        function_named("", "where"): _where,
        function_named("nn.functional", "interpolate"): _interpolate,
        Tensor.contiguous: _contiguous,
        **{function_named("", name): _spread(name) for name in ("std", "var")},
        **{function_named("", name): _recurrent(name) for name in _RECURRENT},
    }
    for space, entries in (("nn.functional", _OF_FUNCTIONAL), ("", _OF_TORCH)):
        for entry in entries:
            match = _ENTRY.fullmatch(entry)
            assert match is not None, entry
            name, operator, overload, arguments = match.groups()
            function = function_named(space, name or operator)
            forms[function] = _Form(function, operator, overload, arguments)
    return forms


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
        form = self._forms.get(func)
        call = None if form is None else form(*args, **named)
        if call is None:
            return func(*args, **named)
        writes = form.writes if isinstance(form, _Form) else ()
        whole = WholeCall(call.func, tuple(call.kwargs), writes)
        return self._trace.run_whole(whole, (*call.args, *call.kwargs.values()), lambda: func(*args, **named))


class CallTrace(Trace):
    """A trace of what a program calls."""

    def __init__(self) -> None:
        super().__init__(lambda name: True)
        self._calls = WholeCalls(self, _forms())

    def __enter__(self) -> Any:
        self._calls.__enter__()
        return super().__enter__()

    def __exit__(self, *exception: object) -> None:
        super().__exit__(*exception)
        self._calls.__exit__(*exception)
