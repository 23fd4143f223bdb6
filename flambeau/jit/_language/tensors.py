"""Operators on tensors whose arguments differ from those of the package's functions of the same name."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any

from ..._core.device import device
from ..._core.tensor import Tensor
from .numbers_of import dtype_of_number, memory_format_of_number, number_of_dtype, words
from .prims import PRIMS

LISTS = frozenset(
    words(
        "split split_with_sizes chunk unbind tensor_split hsplit vsplit dsplit meshgrid broadcast_tensors unsafe_split "
        "unsafe_chunk unsafe_split_with_sizes nonzero_numpy size stride sizes align_tensors"
    )
)
"""Operators whose results are lists in the language."""

_REDUCTIONS = ("none", "mean", "sum")


def _functional() -> Any:
    from ...nn import functional

    return functional


def _torch() -> Any:
    import flambeau

    return flambeau


def _reduction(number: Any) -> str:
    return _REDUCTIONS[number]


def _size(value: Tensor, dim: int | None = None) -> Any:
    return list(value.shape) if dim is None else value.shape[dim]


def _stride(value: Tensor, dim: int | None = None) -> Any:
    return list(value.stride()) if dim is None else value.stride(dim)


def _to(value: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    """The five forms of `to`: by another tensor, a dtype, a device, both, or by name."""
    from .calls import by_name

    first = args[0] if args else None
    if isinstance(first, Tensor):
        names: tuple[str, ...] = ("other", "non_blocking", "copy", "memory_format")
    elif isinstance(first, device) or (len(args) > 1 and type(args[1]) is int):
        names = ("device", "dtype", "non_blocking", "copy", "memory_format")
    elif args and type(args[-1]) is bool and len(args) == 3 and first is None:
        names = ("device", "non_blocking", "copy")
    else:
        names = ("dtype", "non_blocking", "copy", "memory_format")
        if first is None and len(args) >= 2 and type(args[1]) is not bool:
            names = ("device", "dtype", "non_blocking", "copy", "memory_format")
    given = by_name({**dict(zip(names, args, strict=False)), **kwargs})
    for unused in ("pin_memory", "layout"):
        given.pop(unused, None)
    other = given.pop("other", None)
    return value.to(other, **given) if other is not None else value.to(**given)


def _convolution(
    input: Tensor, weight: Tensor, bias: Tensor | None, stride: Any, padding: Any, dilation: Any, transposed: bool,
    output_padding: Any, groups: int, *_: Any,
) -> Any:  # fmt: skip
    return _torch().convolution(input, weight, bias, stride, padding, dilation, transposed, output_padding, groups)


def _tensor(data: Any, *, dtype: Any = None, device: Any = None, requires_grad: bool = False) -> Any:
    if isinstance(data, Tensor):
        made = data.detach().clone()
        return made if dtype is None else made.to(dtype_of_number(dtype))
    wanted = None if dtype is None else dtype_of_number(dtype)
    return _torch().tensor(data, dtype=wanted, device=device, requires_grad=requires_grad)


def _as_tensor(data: Any, *, dtype: Any = None, device: Any = None) -> Any:
    return _torch().as_tensor(data, dtype=None if dtype is None else dtype_of_number(dtype), device=device)


def _index(value: Tensor, indices: Sequence[Tensor | None]) -> Tensor:
    return value[tuple([slice(None) if each is None else each for each in indices])]


def _index_put(in_place: bool) -> Callable[..., Any]:
    def put(value: Tensor, indices: Sequence[Any], values: Tensor, accumulate: bool = False, *_: Any) -> Any:
        target = value if in_place else value.clone()
        places = tuple([slice(None) if each is None else each for each in indices])
        if not accumulate:
            target[places] = values
            return target
        if all(each is not None for each in indices):
            return target.index_put_(tuple(indices), values, accumulate=True)
        rows = [
            _torch().arange(extent, device=value.device) if each is None else each
            for each, extent in zip(indices, value.shape, strict=False)
        ]
        return target.index_put_(tuple(_torch().meshgrid(*rows, indexing="ij")), values, accumulate=True)

    return put


def _slice(value: Tensor, dim: int = 0, start: Any = None, end: Any = None, step: int = 1) -> Tensor:
    places: list[Any] = [slice(None)] * value.dim()
    places[dim] = slice(start, end, step)
    return value[tuple(places)]


def _loss(name: str, order: Sequence[str]) -> Callable[..., Any]:
    """A loss whose last positional arguments are given by name to the function of `nn.functional`."""

    def compute(input: Tensor, target: Tensor, *args: Any, **kwargs: Any) -> Any:
        given = {**dict(zip(order, args, strict=False)), **kwargs}
        given["reduction"] = _reduction(given.get("reduction", 1))
        return getattr(_functional(), name)(input, target, **given)

    return compute


def _margin_loss(name: str, order: Sequence[str]) -> Callable[..., Any]:
    """A loss of three tensors."""

    def compute(first: Tensor, second: Tensor, third: Tensor, *args: Any, **kwargs: Any) -> Any:
        given = {**dict(zip(order, args, strict=False)), **kwargs}
        given["reduction"] = _reduction(given.get("reduction", 1))
        return getattr(_functional(), name)(first, second, third, **given)

    return compute


def _functional_one(name: str, order: Sequence[str] = (), **fixed: Any) -> Callable[..., Any]:
    """A function of `nn.functional` whose arguments have other positions there."""

    def compute(input: Tensor, *args: Any, **kwargs: Any) -> Any:
        given = {**dict(zip(order, args, strict=False)), **kwargs, **fixed}
        return getattr(_functional(), name)(input, **{key: value for key, value in given.items() if value is not None})

    return compute


def _kl_div(input: Tensor, target: Tensor, reduction: int = 1, *, log_target: bool = False) -> Any:
    return _functional().kl_div(input, target, reduction=_reduction(reduction), log_target=log_target)


def _softmax(name: str) -> Callable[..., Any]:
    def compute(input: Tensor, dim: int, dtype: Any = None, *_: Any) -> Any:
        wanted = dtype_of_number(dtype) if type(dtype) is int else None
        return getattr(_torch(), name)(input, dim, dtype=wanted)

    return compute


def _half_softmax(name: str) -> Callable[..., Any]:
    return lambda input, dim, half_to_float: getattr(_torch(), name)(input, dim)


def _dropout(name: str, in_place: bool = False) -> Callable[..., Any]:
    return lambda input, p, train: getattr(_functional(), name)(input, p, train, in_place)


def _upsample(mode: str, dimensions: int) -> Callable[..., Any]:
    """`upsample_nearest2d` and its like: sizes, then perhaps corners, then scales, one of the two being None."""
    aligns = mode in ("linear", "bilinear", "bicubic", "trilinear")

    def compute(input: Tensor, output_size: Any, *args: Any) -> Any:
        rest = list(args)
        options: dict[str, Any] = {"align_corners": rest.pop(0)} if aligns else {}
        scales = rest[0] if rest and isinstance(rest[0], (list, tuple)) else [each for each in rest if each is not None]
        if output_size is not None:
            options["size"] = list(output_size)
        else:
            options["scale_factor"] = list(scales)
            options["recompute_scale_factor"] = False
        return _functional().interpolate(input, mode=mode, **options)

    return compute


def _pad(mode: str) -> Callable[..., Any]:
    return lambda input, padding: _functional().pad(input, padding, mode=mode)


def _any_pad(input: Tensor, padding: Any, mode: str = "constant", value: Any = None) -> Any:
    return _functional().pad(input, padding, mode, value)


def _constant_pad(input: Tensor, padding: Any, value: Any = 0) -> Any:
    return _functional().pad(input, padding, "constant", value)


def _pool(name: str, order: Sequence[str], **fixed: Any) -> Callable[..., Any]:
    def compute(input: Tensor, kernel_size: Any, *args: Any) -> Any:
        given = dict(zip(order, args, strict=False))
        if given.get("stride") == []:
            given["stride"] = None
        return getattr(_functional(), name)(input, kernel_size, **given, **fixed)

    return compute


_MAX = ("stride", "padding", "dilation", "ceil_mode")
_AVG = ("stride", "padding", "ceil_mode", "count_include_pad", "divisor_override")


def _adaptive(name: str, **fixed: Any) -> Callable[..., Any]:
    return lambda input, size: getattr(_functional(), name)(input, size, **fixed)


def _expand(value: Tensor, size: Any, *, implicit: bool = False) -> Tensor:
    return value.expand(size)


def _contiguous(value: Tensor, *, memory_format: Any = 0) -> Tensor:
    return value.contiguous(memory_format=memory_format_of_number(memory_format))


def _is_contiguous(value: Tensor, *, memory_format: Any = 0) -> bool:
    return value.is_contiguous(memory_format=memory_format_of_number(memory_format))


def _gelu(value: Tensor, *, approximate: str = "none") -> Any:
    return _functional().gelu(value, approximate=approximate)


def _elu(in_place: bool) -> Callable[..., Any]:
    def compute(value: Tensor, alpha: float = 1, scale: float = 1, input_scale: float = 1) -> Any:
        if scale == 1 and input_scale == 1:
            return _functional().elu(value, alpha, in_place)
        raise NotImplementedError("aten::elu with scales")

    return compute


def _attention(query: Any, key: Any, value: Any, *args: Any, **kwargs: Any) -> Any:
    order = ("attn_mask", "dropout_p", "is_causal")
    given = {**dict(zip(order, args, strict=False)), **kwargs}
    return _functional().scaled_dot_product_attention(query, key, value, **given)


def _cdist(x1: Tensor, x2: Tensor, p: float = 2, compute_mode: Any = None) -> Any:
    modes = {None: "use_mm_for_euclid_dist_if_necessary", 0: "use_mm_for_euclid_dist_if_necessary",
             1: "use_mm_for_euclid_dist", 2: "donot_use_mm_for_euclid_dist"}  # fmt: skip
    return _torch().cdist(x1, x2, p, modes[compute_mode])


def _norm(value: Tensor, p: Any = 2, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Any:
    wanted = dtype if not isinstance(dtype, int) else dtype_of_number(dtype)
    return _torch().norm(value, 2 if p is None else p, dim, keepdim, dtype=wanted)


def _where(condition: Tensor, *args: Any) -> Any:
    return _torch().where(condition, *args) if args else list(_torch().where(condition))


def _embedding_bag(
    weight: Tensor, indices: Tensor, offsets: Any, scale_grad_by_freq: bool = False, mode: int = 0,
    sparse: bool = False, per_sample_weights: Any = None, include_last_offset: bool = False, padding_idx: Any = None,
) -> Any:  # fmt: skip
    result = _functional().embedding_bag(
        indices, weight, offsets, scale_grad_by_freq=scale_grad_by_freq, mode=("sum", "mean", "max")[mode],
        sparse=sparse, per_sample_weights=per_sample_weights, include_last_offset=include_last_offset,
        padding_idx=padding_idx,
    )  # fmt: skip
    return result, indices, indices, indices


def _ctc(log_probs: Any, targets: Any, inputs: Any, lengths: Any, blank: int = 0, reduction: int = 1, zero: Any = False,
         ) -> Any:  # fmt: skip
    return _functional().ctc_loss(log_probs, targets, inputs, lengths, blank, _reduction(reduction), zero)


def _batch_norm(input: Any, weight: Any, bias: Any, mean: Any, var: Any, training: Any, momentum: Any, eps: Any,
                *_: Any) -> Any:  # fmt: skip
    return _functional().batch_norm(input, mean, var, weight, bias, training, momentum, eps)


def _instance_norm(input: Any, weight: Any, bias: Any, mean: Any, var: Any, use_input_stats: Any, momentum: Any,
                   eps: Any, *_: Any) -> Any:  # fmt: skip
    return _functional().instance_norm(input, mean, var, weight, bias, use_input_stats, momentum, eps)


def _layer_norm(input: Any, shape: Any, weight: Any = None, bias: Any = None, eps: float = 1e-5, *_: Any) -> Any:
    return _functional().layer_norm(input, shape, weight, bias, eps)


def _group_norm(input: Any, groups: int, weight: Any = None, bias: Any = None, eps: float = 1e-5, *_: Any) -> Any:
    return _functional().group_norm(input, groups, weight, bias, eps)


def _set_grad_enabled(mode: bool) -> None:
    _torch().set_grad_enabled(mode)


def _packed(input: Any, lengths: Any, batch_first: bool) -> Any:
    from ...nn.utils.rnn import pack_padded_sequence

    return tuple(pack_padded_sequence(input, lengths, batch_first)[:2])


def _unpacked(data: Any, batch_sizes: Any, batch_first: bool, padding_value: Any, total_length: int) -> Any:
    from ...nn.utils.rnn import PackedSequence, pad_packed_sequence

    sequence = PackedSequence(data, batch_sizes, None, None)
    return pad_packed_sequence(sequence, batch_first, padding_value, None if total_length <= 0 else total_length)


def _wait(future: Any) -> Any:
    return future.wait()


def _alias(value: Tensor) -> Tensor:
    return value.view(value.shape)


def _old_div(a: Any, b: Any) -> Any:
    """Before version 4 of the format a quotient of integers was one."""
    if not isinstance(a, Tensor) and not isinstance(b, Tensor):
        return a / b
    kinds = [each.dtype if isinstance(each, Tensor) else type(each) for each in (a, b)]
    whole = [
        kind is int or (kind is not float and not kind.is_floating_point and not kind.is_complex) for kind in kinds
    ]
    return _torch().div(a, b, rounding_mode="trunc" if all(whole) else None)


def _old_full(size: Any, value: Any, **kwargs: Any) -> Any:
    """Before version 5 of the format, `full` of an integer had the default dtype."""
    from .calls import by_name

    given = by_name(kwargs)
    given.setdefault("dtype", _torch().get_default_dtype())
    given.pop("pin_memory", None)
    return _torch().full(size, value, **given)


def _without_grad(method: Callable[..., Any], *args: Any) -> Any:
    with _torch().no_grad():
        return method(*args)


_METHODS = words(
    "dim __iand__ __ilshift__ __ior__ __irshift__ __ixor__ cpu element_size requires_grad_ retain_grad storage_offset "
    "numel is_floating_point is_complex is_signed output_nr get_device is_inference"
)


def _method(name: str) -> Callable[..., Any]:
    """A method under its own name; it may be an attribute in Python."""

    def call(value: Tensor, *args: Any) -> Any:
        found = getattr(value, name)
        return found(*args) if callable(found) else found

    return call


def _at_least(dimensions: int) -> Callable[..., Any]:
    def call(value: Any) -> Any:
        function = getattr(_torch(), f"atleast_{dimensions}d")
        return list(function(*value)) if isinstance(value, list) else function(value)

    return call


def _meshgrid(values: Any, *, indexing: str = "ij") -> list[Tensor]:
    return list(_torch().meshgrid(*values, indexing=indexing))


_PADDINGS = ("constant", "reflect", "replicate", "circular")


def _pad_sequence(values: Any, batch_first: bool = False, padding_value: float = 0.0, padding_side: str = "right"
                  ) -> Any:  # fmt: skip
    from ...nn.utils.rnn import pad_sequence

    return pad_sequence(values, batch_first, padding_value, padding_side)


def _unique(value: Tensor, ordered: bool, inverse: bool, counts: bool) -> Any:
    empty = _torch().empty(0, dtype=_torch().int64)
    found = _torch().unique(value, ordered, True, True)
    return found[0], found[1] if inverse else empty, found[2] if counts else empty


def _unique_dim(value: Tensor, dim: int, ordered: bool = True, inverse: bool = False, counts: bool = False) -> Any:
    return tuple(_torch().unique(value, ordered, True, True, dim))


def _native_attention(*args: Any) -> Any:
    raise NotImplementedError("aten::_native_multi_head_attention: the fused layer exists in PyTorch alone")


def _encoder_layer(*args: Any) -> Any:
    raise NotImplementedError("aten::_transformer_encoder_layer_fwd: the fused layer exists in PyTorch alone")


OLDER: dict[str, tuple[int, Callable[..., Any]]] = {"div": (3, _old_div), "full": (4, _old_full)}
"""Operators that meant something else up to a version of the format."""

ADAPTED: dict[str, Callable[..., Any]] = {
    "size": _size,
    "sym_size": _size,
    "sizes": _size,
    "stride": _stride,
    "to": _to,
    "_convolution": _convolution,
    "tensor": _tensor,
    "as_tensor": _as_tensor,
    "index": _index,
    "index_put": _index_put(False),
    "index_put_": _index_put(True),
    "_index_put_impl_": _index_put(True),
    "slice": _slice,
    "softmax": _softmax("softmax"),
    "log_softmax": _softmax("log_softmax"),
    "_softmax": _half_softmax("softmax"),
    "_log_softmax": _half_softmax("log_softmax"),
    "dropout": _dropout("dropout"),
    "dropout_": _dropout("dropout", True),
    "feature_dropout": _dropout("dropout2d"),
    "feature_dropout_": _dropout("dropout2d", True),
    "alpha_dropout": _dropout("alpha_dropout"),
    "alpha_dropout_": _dropout("alpha_dropout", True),
    "feature_alpha_dropout": _dropout("feature_alpha_dropout"),
    "feature_alpha_dropout_": _dropout("feature_alpha_dropout", True),
    "kl_div": _kl_div,
    "nll_loss": _loss("nll_loss", ("weight", "reduction", "ignore_index")),
    "nll_loss2d": _loss("nll_loss", ("weight", "reduction", "ignore_index")),
    "nll_loss_nd": _loss("nll_loss", ("weight", "reduction", "ignore_index")),
    "cross_entropy_loss": _loss("cross_entropy", ("weight", "reduction", "ignore_index", "label_smoothing")),
    "binary_cross_entropy": _loss("binary_cross_entropy", ("weight", "reduction")),
    "binary_cross_entropy_with_logits": _loss(
        "binary_cross_entropy_with_logits", ("weight", "pos_weight", "reduction")
    ),
    "mse_loss": _loss("mse_loss", ("reduction",)),
    "l1_loss": _loss("l1_loss", ("reduction",)),
    "smooth_l1_loss": _loss("smooth_l1_loss", ("reduction", "beta")),
    "huber_loss": _loss("huber_loss", ("reduction", "delta")),
    "soft_margin_loss": _loss("soft_margin_loss", ("reduction",)),
    "multilabel_margin_loss": _loss("multilabel_margin_loss", ("reduction",)),
    "multi_margin_loss": _loss("multi_margin_loss", ("p", "margin", "weight", "reduction")),
    "hinge_embedding_loss": _loss("hinge_embedding_loss", ("margin", "reduction")),
    "poisson_nll_loss": lambda input, target, log_input, full, eps, reduction: _functional().poisson_nll_loss(
        input, target, log_input, full, eps=eps, reduction=_reduction(reduction)
    ),
    "margin_ranking_loss": _margin_loss("margin_ranking_loss", ("margin", "reduction")),
    "cosine_embedding_loss": _margin_loss("cosine_embedding_loss", ("margin", "reduction")),
    "triplet_margin_loss": _margin_loss("triplet_margin_loss", ("margin", "p", "eps", "swap", "reduction")),
    "ctc_loss": _ctc,
    "batch_norm": _batch_norm,
    "instance_norm": _instance_norm,
    "layer_norm": _layer_norm,
    "group_norm": _group_norm,
    "embedding_bag": _embedding_bag,
    "gelu": _gelu,
    "elu": _elu(False),
    "elu_": _elu(True),
    "hardtanh": _functional_one("hardtanh", ("min_val", "max_val")),
    "hardtanh_": _functional_one("hardtanh", ("min_val", "max_val"), inplace=True),
    "hardsigmoid": _functional_one("hardsigmoid"),
    "hardsigmoid_": _functional_one("hardsigmoid", inplace=True),
    "hardswish": _functional_one("hardswish"),
    "hardswish_": _functional_one("hardswish", inplace=True),
    "relu6": _functional_one("relu6"),
    "relu6_": _functional_one("relu6", inplace=True),
    "silu": _functional_one("silu"),
    "silu_": _functional_one("silu", inplace=True),
    "mish": _functional_one("mish"),
    "mish_": _functional_one("mish", inplace=True),
    "log_sigmoid": _functional_one("logsigmoid"),
    "leaky_relu": _functional_one("leaky_relu", ("negative_slope",)),
    "leaky_relu_": _functional_one("leaky_relu", ("negative_slope",), inplace=True),
    "softplus": _functional_one("softplus", ("beta", "threshold")),
    "softshrink": _functional_one("softshrink", ("lambd",)),
    "glu": _functional_one("glu", ("dim",)),
    "one_hot": _functional_one("one_hot", ("num_classes",)),
    "im2col": _functional_one("unfold", ("kernel_size", "dilation", "padding", "stride")),
    "col2im": _functional_one("fold", ("output_size", "kernel_size", "dilation", "padding", "stride")),
    "unfold": lambda value, *args: value.unfold(*args),
    "linear": lambda input, weight, bias=None: _functional().linear(input, weight, bias),
    "scaled_dot_product_attention": _attention,
    "cdist": _cdist,
    "norm": _norm,
    "where": _where,
    "pad": _any_pad,
    "constant_pad_nd": _constant_pad,
    "expand": _expand,
    "contiguous": _contiguous,
    "is_contiguous": _is_contiguous,
    "set_grad_enabled": _set_grad_enabled,
    "is_grad_enabled": lambda: _torch().is_grad_enabled(),
    "_pack_padded_sequence": _packed,
    "_pad_packed_sequence": _unpacked,
    "wait": _wait,
    "alias": _alias,
    "Int": lambda value: int(value.item()),
    "Float": lambda value: float(value.item()),
    "Bool": lambda value: bool(value.item()),
    "IntImplicit": lambda value: int(value.item()),
    "FloatImplicit": lambda value: float(value.item()),
    "ComplexImplicit": lambda value: complex(value.item()),
    "ScalarImplicit": lambda value: value.item(),
    "item": lambda value: value.item(),
    "_local_scalar_dense": lambda value: value.item(),
    "_shape_as_tensor": lambda value: _torch().tensor(list(value.shape)),
    "_to_copy": lambda value, **options: _to(value, copy=True, **options),
    "_unsafe_view": lambda value, size: value.view(size),
    "_reshape_alias": lambda value, size, stride: value.as_strided(size, stride),
    "_tensor_to_list": lambda value: value.tolist(),
    "_list_to_tensor": lambda values: _torch().tensor(values),
    "_no_grad_fill_": lambda value, number: _without_grad(value.fill_, number),
    "_no_grad_zero_": lambda value: _without_grad(value.zero_),
    "_no_grad_uniform_": lambda value, low, high, *_: _without_grad(value.uniform_, low, high),
    "_no_grad_normal_": lambda value, mean, std, *_: _without_grad(value.normal_, mean, std),
    "_unwrap_optional": PRIMS["unchecked_unwrap_optional"],
    "_get_tracing_state": lambda: False,
    "is_scripting": lambda: True,
    "warn": lambda message, stacklevel=2: warnings.warn(str(message), UserWarning, stacklevel=3),
    "manual_seed": lambda seed: _torch().manual_seed(seed),
    "broadcast_tensors": lambda values: list(_torch().broadcast_tensors(*values)),
    "meshgrid": _meshgrid,
    "broadcast_shapes": lambda *shapes: list(_torch().broadcast_shapes(*shapes)),
    "split": lambda value, sizes, dim=0: list(value.split(sizes, dim)),
    "copy": lambda value, source, non_blocking=False: source.to(value.dtype).expand_as(value).clone(),
    "block_diag": lambda values: _torch().block_diag(*values),
    "cartesian_prod": lambda values: _torch().cartesian_prod(*values),
    "chain_matmul": lambda values: _torch().chain_matmul(*values),
    "einsum": lambda equation, values, *, path=None: _torch().einsum(equation, values),
    "tensordot": lambda a, b, left, right: _torch().tensordot(a, b, (left, right)),
    "nonzero_numpy": lambda value: list(_torch().nonzero(value, as_tuple=True)),
    "get_autocast_dtype": lambda place: number_of_dtype(_torch().get_autocast_dtype(place)),
    "is_autocast_enabled": lambda *place: _torch().is_autocast_enabled(*place),
    "is_autocast_cpu_enabled": lambda: _torch().is_autocast_cpu_enabled(),
    "_pad_enum": lambda value, padding, mode, fill=None: _any_pad(value, padding, _PADDINGS[mode], fill),
    "_pad_circular": _pad("circular"),
    "_add_relu": lambda a, b, *, alpha=1: _torch().add(a, b, alpha=alpha).relu(),
    "_native_multi_head_attention": _native_attention,
    "_transformer_encoder_layer_fwd": _encoder_layer,
    "pad_sequence": _pad_sequence,
    "matrix_H": lambda value: value.mH,
    "_unique2": lambda value, ordered=True, inverse=False, counts=False: _unique(value, ordered, inverse, counts),
    "_unique": lambda value, ordered=True, inverse=False: _unique(value, ordered, inverse, False)[:2],
    "unique_dim": _unique_dim,
    "rrelu_with_noise": lambda value, noise, low=1 / 8, high=1 / 3, training=False, *_: _functional().rrelu(
        value, low, high, training
    ),
    "embedding_renorm_": lambda weight, indices, most, kind: _torch().embedding_renorm_(weight, indices, most, kind),
    **{f"atleast_{n}d": _at_least(n) for n in (1, 2, 3)},
    **{name: _method(name) for name in _METHODS},
    "len": len,
    "__and__": lambda a, b: a & b,
    "__or__": lambda a, b: a | b,
    "__xor__": lambda a, b: a ^ b,
    "__lshift__": lambda a, b: a << b,
    "__rshift__": lambda a, b: a >> b,
    "numpy_T": lambda value: value.T,
    "adaptive_avg_pool1d": _adaptive("adaptive_avg_pool1d"),
    "adaptive_avg_pool2d": _adaptive("adaptive_avg_pool2d"),
    "adaptive_avg_pool3d": _adaptive("adaptive_avg_pool3d"),
    **{f"adaptive_max_pool{n}d": _adaptive(f"adaptive_max_pool{n}d", return_indices=True) for n in (1, 2, 3)},
    **{f"max_pool{n}d": _pool(f"max_pool{n}d", _MAX) for n in (1, 2, 3)},
    **{f"max_pool{n}d_with_indices": _pool(f"max_pool{n}d", _MAX, return_indices=True) for n in (1, 2, 3)},
    **{f"avg_pool{n}d": _pool(f"avg_pool{n}d", _AVG) for n in (1, 2, 3)},
    **{f"reflection_pad{n}d": _pad("reflect") for n in (1, 2, 3)},
    **{f"replication_pad{n}d": _pad("replicate") for n in (1, 2, 3)},
    "upsample_nearest1d": _upsample("nearest", 1),
    "upsample_nearest2d": _upsample("nearest", 2),
    "upsample_nearest3d": _upsample("nearest", 3),
    "_upsample_nearest_exact1d": _upsample("nearest-exact", 1),
    "_upsample_nearest_exact2d": _upsample("nearest-exact", 2),
    "_upsample_nearest_exact3d": _upsample("nearest-exact", 3),
    "upsample_linear1d": _upsample("linear", 1),
    "upsample_bilinear2d": _upsample("bilinear", 2),
    "upsample_bicubic2d": _upsample("bicubic", 2),
    "upsample_trilinear3d": _upsample("trilinear", 3),
}
"""By the operator's name without `aten::`."""
