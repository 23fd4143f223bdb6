"""Attention in one kernel and its derivative in one or two, by cuDNN or generated. None: products and a softmax."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from ...._core.arrays.quick import name_of
from ...._core.geometry.layout import preserved_strides
from ...._core.process.reproducibility import REPRODUCIBILITY
from ..arrays.array import DeviceArray, empty, form_of, of_form
from ..cudnn import frontend as cudnn
from ..cudnn.descriptors import Refused
from ..runtime.plans import of_level
from . import attention_kernels

_HALVES = frozenset(("float16", "bfloat16"))
_MOST_WIDTH, _WIDTH_STEP = 128, 8
_QUERY, _KEY, _VALUE, _OUTPUT, _SUMS, _GRAD, _MASK = range(1, 8)
_OF_QUERY, _OF_KEY, _OF_VALUE = range(8, 11)
_KEPT = 11
_FORWARD = _QUERY, _KEY, _VALUE, _OUTPUT, _SUMS
_BACKWARD = _QUERY, _KEY, _VALUE, _OUTPUT, _SUMS, _GRAD, _OF_QUERY, _OF_KEY, _OF_VALUE
_LOWEST = -math.inf

_plans: dict[Any, attention_kernels.Plan | None] = of_level({})
_calls: dict[Any, tuple[attention_kernels.Plan, tuple[Any, ...]]] = of_level({})
"""For calls that needed no copy: the plan, and the forms of the results."""
_SINGLE = np.dtype(np.float32)


def attention(
    query: DeviceArray, key: DeviceArray, value: DeviceArray, dropout_p: float, is_causal: bool, attn_mask: Any,
    scale: float | None,
) -> tuple[DeviceArray, DeviceArray] | None:  # fmt: skip
    """The result, in the memory order of the query, and the logarithms of the sums of exponentials."""
    return None if dropout_p else _forward(query, key, value, _Options(is_causal, scale), attn_mask, None)


def dropped_attention(
    query: DeviceArray, key: DeviceArray, value: DeviceArray, kept: DeviceArray, dropout_p: float, is_causal: bool,
    attn_mask: Any, scale: float | None,
) -> tuple[DeviceArray, DeviceArray] | None:  # fmt: skip
    """Attention with dropout, where `kept` says which weights stay, and the logarithms of the sums of exponentials."""
    return _forward(query, key, value, _Options(is_causal, scale, dropout_p), attn_mask, kept)


def attention_gradients(
    grads: list[Any], needed: tuple[bool, ...], query: DeviceArray, key: DeviceArray, value: DeviceArray,
    dropout_p: float, is_causal: bool, attn_mask: Any, scale: float | None, output: DeviceArray, logsumexp: DeviceArray,
) -> list[Any] | None:  # fmt: skip
    """The gradients of query, key and value."""
    if dropout_p:
        return None
    return _backward(grads, query, key, value, _Options(is_causal, scale), attn_mask, None, output, logsumexp)


def dropped_attention_gradients(
    grads: list[Any], needed: tuple[bool, ...], query: DeviceArray, key: DeviceArray, value: DeviceArray,
    kept: DeviceArray, dropout_p: float, is_causal: bool, attn_mask: Any, scale: float | None, output: DeviceArray,
    logsumexp: DeviceArray,
) -> list[Any] | None:  # fmt: skip
    """The gradients of query, key and value, where `kept` says which weights dropout keeps."""
    options = _Options(is_causal, scale, dropout_p)
    return _backward(grads, query, key, value, options, attn_mask, kept, output, logsumexp)


def runs_dropped_attention(query: DeviceArray, key: DeviceArray) -> bool:
    """Whether weights may be dropped within the op: only generated kernels do that."""
    return _serves(query, key, True)


class _Options(NamedTuple):
    """What a call says beside arrays."""

    is_causal: bool
    scale: float | None
    dropout: float = 0.0


def _forward(
    query: DeviceArray, key: DeviceArray, value: DeviceArray, options: _Options, attn_mask: Any, kept: Any
) -> tuple[DeviceArray, DeviceArray] | None:
    given, numbers = _given(_FORWARD, (query, key, value), attn_mask, kept)
    call = _call("forward", given, options, attn_mask is None)
    if (found := _calls.get(call)) is not None:
        plan, (form, of_sums) = found
        output, sums = of_form(form), of_form(of_sums)
        first, further = given[:3], given[3:]
        plan(dict(zip(numbers, [each.pointer for each in (*first, output, sums, *further)])))  # noqa: B905  (as many)
        return output, sums
    if not _serves(query, key, kept is not None):
        return None
    query, key, value = (_rows_dense(each) for each in given[:3])
    output = _like(query)
    sums = empty((*query.shape[:3], 1), _SINGLE)
    mask = None if attn_mask is None else _as_bias(attn_mask, query.dtype)
    arrays = {_QUERY: query, _KEY: key, _VALUE: value, _OUTPUT: output, _SUMS: sums}
    ran = _run("forward", arrays, mask, kept, options)
    if ran is None:
        return None
    shown = sums.reshape(sums.shape[:3])
    if mask is not None and isinstance(ran, cudnn.Plan):
        _clear_hidden_rows(output, shown)
    else:
        used = [each for each in (query, key, value, mask, kept) if each is not None]
        _remember(call, ran, given, used, (output.form, form_of(shown.shape, _SINGLE)))
    return output, shown


def _clear_hidden_rows(output: Any, sums: Any) -> None:
    """Rows without any key that may be seen are zero, not 0 / 0."""
    hidden = np.isnan(sums)
    np.copyto(output, 0, where=hidden[..., None])
    np.copyto(sums, _LOWEST, where=hidden)


def _backward(
    grads: list[Any], query: DeviceArray, key: DeviceArray, value: DeviceArray, options: _Options, attn_mask: Any,
    kept: Any, output: DeviceArray, logsumexp: DeviceArray,
) -> list[Any] | None:  # fmt: skip
    grad, of_sums = grads
    if grad is None or of_sums is not None:
        return None
    given, numbers = _given(_BACKWARD, (query, key, value, output, logsumexp, grad), attn_mask, kept)
    call = _call("backward", given, options, attn_mask is None)
    if (call_found := _calls.get(call)) is not None:
        plan, forms = call_found
        found = [of_form(form) for form in forms]
        plan(dict(zip(numbers, [each.pointer for each in (*given[:6], *found, *given[6:])])))  # noqa: B905  (as many)
        return found
    if not _serves(query, key, kept is not None):
        return None
    query, key, value, output, grad = (_rows_dense(each) for each in (query, key, value, output, grad))
    mask = None if attn_mask is None else _as_bias(attn_mask, query.dtype)
    sums: Any = logsumexp
    if mask is not None and kept is None and _asks_library():
        sums = np.where(sums == _LOWEST, np.float32(0), sums)
    sums = (sums if sums.form.flags.c_contiguous else sums.copy()).reshape((*query.shape[:3], 1))
    found = [_like(each) for each in (query, key, value)]
    arrays = {
        _QUERY: query, _KEY: key, _VALUE: value, _OUTPUT: output, _SUMS: sums, _GRAD: grad,
        **dict(zip((_OF_QUERY, _OF_KEY, _OF_VALUE), found, strict=True)),
    }  # fmt: skip
    ran = _run("backward", arrays, mask, kept, options)
    if ran is None:
        return None
    of_rows = logsumexp if sums.pointer == logsumexp.pointer else sums
    used = [each for each in (query, key, value, output, of_rows, grad, mask, kept) if each is not None]
    _remember(call, ran, given, used, tuple([each.form for each in found]))
    return found


def _given(
    numbers: tuple[int, ...], arrays: tuple[DeviceArray, ...], mask: Any, kept: Any
) -> tuple[tuple[DeviceArray, ...], tuple[int, ...]]:
    """The arrays of a call, and the numbers of these and of what it makes."""
    if mask is not None:
        arrays, numbers = (*arrays, mask), (*numbers, _MASK)
    return (arrays, numbers) if kept is None else ((*arrays, kept), (*numbers, _KEPT))


def _call(product: str, given: tuple[DeviceArray, ...], options: _Options, without_mask: bool) -> Any:
    """What tells a call from others."""
    layout: list[Any] = [product, options, without_mask]
    together = 0
    for each in given:
        layout.append(each.layout)
        together |= each.pointer
    layout.append(together & 15)
    return tuple(layout)


def _remember(
    call: Any,
    plan: attention_kernels.Plan,
    given: tuple[DeviceArray, ...],
    used: Sequence[DeviceArray],
    forms: tuple[Any, ...],
) -> None:
    if all(one is other for one, other in zip(given, used, strict=True)):
        _calls[call] = plan, forms


def _serves(query: DeviceArray, key: DeviceArray, drops: bool) -> bool:
    if drops and REPRODUCIBILITY.product is not None:  # masks follow the places of samples in a batch
        return False
    shape = query.form.shape
    return bool(
        name_of(query.form.dtype) in _HALVES and len(shape) == 4 and shape[3] <= _MOST_WIDTH
        and shape[3] % _WIDTH_STEP == 0 and query.form.size and key.form.size
        and ((not drops and _asks_library()) or attention_kernels.serves(shape[3]))
    )  # fmt: skip


def _asks_library() -> bool:
    """Whether cuDNN is asked first: not where results must not depend on the batch, since its plans do."""
    return REPRODUCIBILITY.level is None and cudnn.library() is not None


def _factor(scale: float | None, query: DeviceArray) -> float:
    return 1 / math.sqrt(query.shape[3]) if scale is None else scale


def _rows_dense(array: DeviceArray) -> DeviceArray:
    """An array whose rows are without gaps and begin where the library can read them."""
    steps, item = array.form.strides, array.form.itemsize
    aligned = not any(step % (_WIDTH_STEP * item) for step in (array.pointer, *steps[:3]))
    return array if steps[3] == item and min(steps) > 0 and aligned else array.copy()


def _like(array: DeviceArray) -> DeviceArray:
    """A new array with the memory order of another one."""
    item = array.form.itemsize
    strides = preserved_strides(array.form.shape, tuple([step // item for step in array.form.strides]))
    return empty(array.form.shape, array.form.dtype, tuple([step * item for step in strides]))


def _as_bias(mask: DeviceArray, dtype: Any) -> DeviceArray:
    given = mask.astype(dtype, copy=False)
    given = given.reshape((1,) * (4 - given.ndim) + given.shape)
    return given if given.form.flags.c_contiguous else given.copy()


def _run(
    product: str, arrays: dict[int, DeviceArray], mask: Any, kept: Any, options: _Options
) -> attention_kernels.Plan | None:
    """Compute by a plan of whoever has one; None: nobody has."""
    for number, each in ((_MASK, mask), (_KEPT, kept)):
        if each is not None:
            arrays = {**arrays, number: each}
    laid_out = tuple([(number, each.form.shape, each.form.strides) for number, each in arrays.items()])
    name, scale = name_of(arrays[_QUERY].form.dtype), _factor(options.scale, arrays[_QUERY])
    key = product, name, laid_out, options
    try:
        plan = _plans[key]
    except KeyError:
        plan = None if kept is not None else _planned(product, name, arrays, laid_out, options.is_causal, scale)
        if plan is None and attention_kernels.serves(arrays[_QUERY].form.shape[3]):
            write = attention_kernels.forward if product == "forward" else attention_kernels.backward
            call = attention_kernels.Call(options.is_causal, scale, mask is not None, options.dropout)
            plan = write(name, [each.form for each in arrays.values()], call)
        _plans[key] = plan
    if plan is not None:
        plan({number: each.pointer for number, each in arrays.items()})
    return plan


def _planned(
    product: str, name: str, arrays: dict[int, DeviceArray], laid_out: tuple[Any, ...], causal: bool, scale: float
) -> cudnn.Plan | None:  # fmt: skip
    """The library's plan; None: it is not there, or refuses."""
    if not _asks_library():
        return None

    def describe(graph: Any) -> None:
        single = cudnn.library().data_type.FLOAT
        given = (_QUERY, _KEY, _VALUE, _MASK) if product == "forward" else range(_OF_QUERY)
        tensors = {number: _tensor(graph, number, each) for number, each in arrays.items() if number in given}
        options: dict[str, Any] = {"attn_scale": scale, "bias": tensors.get(_MASK)}
        if causal:
            options["diagonal_band_right_bound"] = 0
        operands = [tensors[each] for each in (_QUERY, _KEY, _VALUE)]
        if product == "forward":
            output, sums = graph.sdpa(*operands, generate_stats=True, **options)
            results = {_OUTPUT: output, _SUMS: sums}
        else:
            operands += [tensors[each] for each in (_OUTPUT, _GRAD, _SUMS)]
            found = graph.sdpa_backward(*operands, **options)
            results = dict(zip((_OF_QUERY, _OF_KEY, _OF_VALUE), found, strict=True))
        for number, each in results.items():
            array = arrays[number]
            each.set_output(True).set_uid(number).set_dim(list(array.shape)).set_stride(_steps(array))
            if number == _SUMS:
                each._set_data_type(single)

    try:
        return cudnn.Plan(name, describe, product, laid_out, causal, scale)
    except Refused:
        return None


def _steps(array: DeviceArray) -> list[int]:
    return [step // array.form.itemsize for step in array.form.strides]


def _tensor(graph: Any, number: int, array: DeviceArray) -> Any:
    kind = getattr(cudnn.library().data_type, cudnn.TYPES[name_of(array.form.dtype)])
    return graph._make_tensor(dim=list(array.shape), stride=_steps(array), data_type=kind, uid=number)
