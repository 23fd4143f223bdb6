"""Tensors in the layout `_mkldnn`: opaque ones, whose elements are seen by `to_dense()` alone.

In PyTorch they are in a form that one CPU library likes, and only the operators that the library has run on them. Here
kernels choose such forms by themselves, so the elements lie as in any tensor; the layout is the promise that nobody
looks at them, and the operators are those that PyTorch has for it.
"""

from __future__ import annotations

from typing import Any, NoReturn

from ..._core.device import LAYOUTS, layout
from ..._core.dtype import NAMES
from ..._core.subclasses import retype
from ..._core.tensor import Tensor
from ..._dispatch.dispatch import Array, primitive
from ..._dispatch.public.overrides import original_of
from ..._dispatch.public.registry import public
from ..nn.pool.adaptive_pool import adaptive_avg_pool2d
from ..nn.pool.max_pool import max_pool2d, max_pool3d
from ..nn.recurrent import gru, lstm, rnn_relu, rnn_tanh
from ..shape.named_shapes import _alias

_DTYPES = {NAMES[name] for name in ("float32", "bfloat16", "float16", "uint8", "int8")}
_CHANGES = frozenset(("add_", "copy_", "mul_", "relu_", "sigmoid_", "tanh_", "zero_"))
_OPS = _CHANGES | frozenset(
    (
        *("adaptive_avg_pool2d", "add", "avg_pool2d", "avg_pool3d", "batch_norm", "clone", "contiguous", "conv1d"),
        *("conv2d", "conv3d", "detach", "dropout", "flatten", "float", "gelu", "linear", "max_pool2d", "max_pool3d"),
        *("mul", "prelu", "relu", "reshape", "requires_grad_", "sigmoid", "softmax", "tanh", "to", "transpose"),
    )
)
"""The operators that opaque tensors have."""
_OF_TENSORS_ALONE = frozenset(("add", "add_", "copy_"))
"""Those that take no dense operand, nor a number."""


class MkldnnTensor(Tensor):
    """A tensor in the layout `_mkldnn`."""

    __slots__ = ()
    __module__ = "flambeau"
    _has_no_other_ops = True  # its `__torch_function__` is heeded where those of users' classes are not
    _is_plain_to_users = True
    is_mkldnn = True

    @classmethod
    def __torch_function__(
        cls, func: Any, types: tuple[type, ...], args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        return _run(func, args, kwargs or {})

    @property
    def layout(self) -> layout:
        return LAYOUTS["_mkldnn"]

    def untyped_storage(self) -> NoReturn:
        """An error: the elements are not to be seen."""
        raise NotImplementedError("Cannot access storage of OpaqueTensorImpl: use .to_dense() first")

    def data_ptr(self) -> int:
        """An error: the elements are not to be seen."""
        raise RuntimeError("Cannot access data pointer of Tensor that doesn't have storage: use .to_dense() first")

    def tolist(self) -> NoReturn:
        """An error: the elements are not to be seen."""
        raise RuntimeError("Cannot access data pointer of Tensor that doesn't have storage: use .to_dense() first")

    def numpy(self, *, force: bool = False) -> NoReturn:
        """An error: the elements are not to be seen."""
        raise TypeError("can't convert Mkldnn layout tensor to numpy. Use Tensor.to_dense() first.")

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        return memo.setdefault(id(self), _opaque(_plain(self).clone()))


def _repr(self: MkldnnTensor, *, tensor_contents: str | None = None) -> str:
    return f"{repr(_plain(self))[:-1]}, layout={self.layout})"


setattr(MkldnnTensor, "__repr__", _repr)  # noqa: B010  mypy takes the options of special methods for positional


def _plain(tensor: Any) -> Any:
    """The tensor, in the same graph, as an ordinary one; anything else unchanged."""
    if isinstance(tensor, MkldnnTensor):
        return retype(_alias(tensor), Tensor)
    return [_plain(each) for each in tensor] if isinstance(tensor, list) else tensor


def _opaque(result: Any) -> Any:
    return retype(result, MkldnnTensor) if type(result) is Tensor else result


def _run(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Run a public function with an opaque tensor among its arguments, or refuse it."""
    function = original_of(function)
    name = function.__name__.strip("_") if function.__name__.startswith("__") else function.__name__
    body = getattr(function, "__wrapped__", None)
    if body in _BODIES:
        out = kwargs.pop("out", None)
        made = body(*args, **kwargs)
        return made if out is None else out.copy_(made)
    if name == "to_dense":
        return _to_dense(_plain(args[0]))
    if name not in _OPS:
        raise NotImplementedError(
            f"Could not run 'aten::{name}' with arguments from the 'MkldnnCPU' backend: an opaque tensor has no such "
            "operator. Convert it first, with .to_dense()"
        )
    if not isinstance(args[0], MkldnnTensor):
        raise RuntimeError(f"{name}: the first operand is a dense tensor, but another one is in the layout _mkldnn")
    if name in _OF_TENSORS_ALONE and not isinstance(args[1], MkldnnTensor):
        raise RuntimeError(f"itensor_from_mkldnn expects MKL-DNN tensor input: the second operand of {name} is none")
    result = function(*map(_plain, args), **{key: _plain(value) for key, value in kwargs.items()})
    if name in ("to", "float") and result.dtype is not args[0].dtype:
        raise NotImplementedError(f"Could not run 'aten::{name}' with arguments from the 'MkldnnCPU' backend")
    return args[0] if name in _CHANGES else _opaque(result)


@primitive("ToMkldnnBackward0", self=lambda grad: _plain(grad))
def _to_opaque(self: Array) -> Array:
    return self.copy()


@primitive("ToDenseBackward0", self=lambda grad: grad.contiguous())
def _to_dense(self: Array) -> Array:
    return self.copy()


@public(function=False)
def to_mkldnn(input: Tensor, dtype: Any = None) -> Tensor:
    """The tensor in the layout `_mkldnn`: a copy that only some operators take, and `to_dense()` opens."""
    source = input if dtype is None else input.to(dtype)
    if source.dtype not in _DTYPES:
        raise RuntimeError("dense_to_mkldnn expects float, bfloat16, half, uint8, int8 tensor input")
    made: Tensor = retype(_to_opaque(source), MkldnnTensor)
    return made


def _checked(name: str, *tensors: Tensor) -> list[Any]:
    for each in tensors:
        if not isinstance(each, MkldnnTensor):
            raise NotImplementedError(
                f"Could not run 'aten::{name}' with arguments from the 'CPU' backend: it takes tensors in the layout "
                "_mkldnn, which .to_mkldnn() makes"
            )
    return [_plain(each) for each in tensors]


@public(method=False, out=True)
def mkldnn_adaptive_avg_pool2d(input: Tensor, output_size: Any) -> Tensor:
    """`adaptive_avg_pool2d` of an opaque tensor."""
    (plain,) = _checked("mkldnn_adaptive_avg_pool2d", input)
    made: Tensor = _opaque(adaptive_avg_pool2d(plain, output_size))
    return made


@public(method=False)
def mkldnn_max_pool2d(
    input: Tensor, kernel_size: Any, stride: Any = (), padding: Any = 0, dilation: Any = 1, ceil_mode: bool = False
) -> Tensor:
    """`max_pool2d` of an opaque tensor."""
    (plain,) = _checked("mkldnn_max_pool2d", input)
    made: Tensor = _opaque(max_pool2d(plain, kernel_size, stride or None, padding, dilation, ceil_mode))
    return made


@public(method=False)
def mkldnn_max_pool3d(
    input: Tensor, kernel_size: Any, stride: Any = (), padding: Any = 0, dilation: Any = 1, ceil_mode: bool = False
) -> Tensor:
    """`max_pool3d` of an opaque tensor."""
    (plain,) = _checked("mkldnn_max_pool3d", input)
    made: Tensor = _opaque(max_pool3d(plain, kernel_size, stride or None, padding, dilation, ceil_mode))
    return made


@public(method=False)
def mkldnn_linear_backward_weights(
    grad_output: Tensor, input: Tensor, weight: Tensor, bias_defined: bool
) -> tuple[Tensor, Tensor | None]:
    """The gradients of the weight and of the bias of `linear`, of opaque tensors; they themselves are dense."""
    grad, plain = _checked("mkldnn_linear_backward_weights", grad_output, input)
    grad, plain = grad.reshape(-1, grad.shape[-1]), plain.reshape(-1, plain.shape[-1])
    return grad.t().mm(plain), grad.sum(0) if bias_defined else None


_LAYERS: dict[int, Any] = {0: rnn_relu, 1: rnn_tanh, 2: lstm, 3: gru}


@public(method=False)
def mkldnn_rnn_layer(
    input: Tensor, weight0: Tensor, weight1: Tensor, weight2: Tensor, weight3: Tensor, hx_: Tensor, cx_: Tensor,
    reverse: bool, batch_sizes: Any, mode: int, hidden_size: int, num_layers: int, has_biases: bool,
    bidirectional: bool, batch_first: bool, train: bool,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:  # fmt: skip
    """One layer of a recurrent network in one direction: the output, the last state, the last cell, and memory for a
    backward pass, of which none is needed here.

    `mode` is 0 for `relu`, 1 for `tanh`, 2 for LSTM, 3 for GRU; steps come first, in the input and in the output.
    """
    steps = input.flip(0) if reverse else input
    weights = [weight0, weight1, weight2, weight3] if has_biases else [weight0, weight1]
    states = hx_.reshape(1, -1, hidden_size), cx_.reshape(1, -1, hidden_size)
    start = states if mode == 2 else states[0]
    output, *last = _LAYERS[mode](steps, start, weights, has_biases, 1, 0.0, train, False, False)
    cell = last[1] if mode == 2 else states[1]
    return output.flip(0) if reverse else output, last[0], cell, input.new_empty(0)


_BODIES = frozenset(
    getattr(each, "__wrapped__", each)
    for each in (mkldnn_adaptive_avg_pool2d, mkldnn_max_pool2d, mkldnn_max_pool3d, mkldnn_linear_backward_weights)
)
"""The bodies of public functions that take opaque tensors as they are."""
