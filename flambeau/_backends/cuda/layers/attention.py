"""Attention in one kernel and its derivative in one or two, by cuDNN or generated. None: products and a softmax."""

from __future__ import annotations

import math
from typing import Any

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
_FORWARD = _QUERY, _KEY, _VALUE, _OUTPUT, _SUMS
_BACKWARD = _QUERY, _KEY, _VALUE, _OUTPUT, _SUMS, _GRAD, _OF_QUERY, _OF_KEY, _OF_VALUE
_LOWEST = -math.inf

_plans: dict[Any, attention_kernels.Plan | None] = of_level({})
_calls: dict[Any, tuple[attention_kernels.Plan, tuple[Any, ...]]] = of_level({})
"""For calls without a mask that needed no copy: the plan, and the forms of the results."""
_SINGLE = np.dtype(np.float32)


def attention(
    query: DeviceArray, key: DeviceArray, value: DeviceArray, dropout_p: float, is_causal: bool, attn_mask: Any,
    scale: float | None,
) -> tuple[DeviceArray, DeviceArray] | None:  # fmt: skip
    """The result, in the memory order of the query, and the logarithms of the sums of exponentials."""
    given = query, key, value
    call = None if attn_mask is not None or dropout_p else _call("forward", given, is_causal, scale)
    if (found := _calls.get(call)) is not None:
        plan, (form, of_sums) = found
        output, sums = of_form(form), of_form(of_sums)
        places = query.pointer, key.pointer, value.pointer, output.pointer, sums.pointer
        plan(dict(zip(_FORWARD, places)))  # noqa: B905  (as many)
        return output, sums
    if not _serves(query, key, dropout_p):
        return None
    query, key, value = (_rows_dense(each) for each in given)
    output = _like(query)
    sums = empty((*query.shape[:3], 1), _SINGLE)
    mask = None if attn_mask is None else _as_bias(attn_mask, query.dtype)
    arrays = {_QUERY: query, _KEY: key, _VALUE: value, _OUTPUT: output, _SUMS: sums}
    ran = _run("forward", arrays, mask, is_causal, _factor(scale, query))
    if ran is None:
        return None
    kept = sums.reshape(sums.shape[:3])
    _remember(call, ran, given, (query, key, value), (output.form, form_of(kept.shape, _SINGLE)))
    if mask is not None:
        _clear_hidden_rows(output, kept)
    return output, kept


def _clear_hidden_rows(output: Any, sums: Any) -> None:
    """Rows without any key that may be seen are zero, not 0 / 0."""
    hidden = np.isnan(sums)
    np.copyto(output, 0, where=hidden[..., None])
    np.copyto(sums, _LOWEST, where=hidden)


def attention_gradients(
    grads: list[Any], needed: tuple[bool, ...], query: DeviceArray, key: DeviceArray, value: DeviceArray,
    dropout_p: float, is_causal: bool, attn_mask: Any, scale: float | None, output: DeviceArray, logsumexp: DeviceArray,
) -> list[Any] | None:  # fmt: skip
    """The gradients of query, key and value."""
    grad, of_sums = grads
    if grad is None or of_sums is not None:
        return None
    given = query, key, value, output, logsumexp, grad
    call = None if attn_mask is not None or dropout_p else _call("backward", given, is_causal, scale)
    if (call_found := _calls.get(call)) is not None:
        plan, forms = call_found
        found = [of_form(form) for form in forms]
        plan(dict(zip(_BACKWARD, [each.pointer for each in (*given, *found)])))  # noqa: B905  (as many)
        return found
    if not _serves(query, key, dropout_p):
        return None
    query, key, value, output, grad = (_rows_dense(each) for each in (query, key, value, output, grad))
    mask = None if attn_mask is None else _as_bias(attn_mask, query.dtype)
    sums: Any = logsumexp
    if mask is not None:
        sums = np.where(sums == _LOWEST, np.float32(0), sums)
    sums = (sums if sums.form.flags.c_contiguous else sums.copy()).reshape((*query.shape[:3], 1))
    found = [_like(each) for each in (query, key, value)]
    arrays = {
        _QUERY: query, _KEY: key, _VALUE: value, _OUTPUT: output, _SUMS: sums, _GRAD: grad,
        **dict(zip((_OF_QUERY, _OF_KEY, _OF_VALUE), found, strict=True)),
    }  # fmt: skip
    ran = _run("backward", arrays, mask, is_causal, _factor(scale, query))
    if ran is None:
        return None
    kept = logsumexp if sums.pointer == logsumexp.pointer else sums
    _remember(call, ran, given, (query, key, value, output, kept, grad), tuple([each.form for each in found]))
    return found


def _call(product: str, given: tuple[DeviceArray, ...], causal: bool, scale: float | None) -> Any:
    """What tells a call from others."""
    layout: list[Any] = [product, causal, scale]
    together = 0
    for each in given:
        form = each.form
        layout += form.dtype, form.shape, form.strides
        together |= each.pointer
    layout.append(together & 15)
    return tuple(layout)


def _remember(
    call: Any,
    plan: attention_kernels.Plan,
    given: tuple[DeviceArray, ...],
    used: tuple[DeviceArray, ...],
    forms: tuple[Any, ...],
) -> None:
    if call is not None and all(one is other for one, other in zip(given, used, strict=True)):
        _calls[call] = plan, forms


def _serves(query: DeviceArray, key: DeviceArray, dropout_p: float) -> bool:
    shape = query.form.shape
    return bool(
        not dropout_p and name_of(query.form.dtype) in _HALVES and len(shape) == 4 and shape[3] <= _MOST_WIDTH
        and shape[3] % _WIDTH_STEP == 0 and query.form.size and key.form.size
        and (_asks_library() or attention_kernels.serves(shape[3]))
    )  # fmt: skip


def _asks_library() -> bool:
    """Whether cuDNN is asked first: not where results must not depend on the batch, since its plans do."""
    return REPRODUCIBILITY.product is None and cudnn.library() is not None


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
    product: str, arrays: dict[int, DeviceArray], mask: Any, causal: bool, scale: float
) -> attention_kernels.Plan | None:
    """Compute by a plan of whoever has one; None: nobody has."""
    if mask is not None:
        arrays = {**arrays, _MASK: mask}
    laid_out = tuple([(number, each.form.shape, each.form.strides) for number, each in arrays.items()])
    name = name_of(arrays[_QUERY].form.dtype)
    key = product, name, laid_out, causal, scale
    try:
        plan = _plans[key]
    except KeyError:
        plan = _planned(product, name, arrays, laid_out, causal, scale)
        if plan is None and attention_kernels.serves(arrays[_QUERY].form.shape[3]):
            write = attention_kernels.forward if product == "forward" else attention_kernels.backward
            plan = write(name, [each.form for each in arrays.values()], causal, scale, mask is not None)
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
