"""How recorded calls are written: as calls of PyTorch's operators."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from typing import Any

from .._core.device import device, memory_format
from .._core.tensor import Tensor
from .._dispatch.public.explain import forms_of
from .._dispatch.public.operator_forms import forms_of_functional
from .._dispatch.public.registry import function_named
from ._recording import Recording, TracedInt, plain_of

Rule = Callable[[Recording, tuple[Any, ...], dict[str, Any], Any], None]

SIZED = frozenset({"view", "reshape", "expand", "repeat", "permute", "new_zeros", "new_ones", "new_empty"})
_MADE = frozenset({"zeros", "ones", "rand", "randn", "empty"})
CASTS = {"float": 6, "double": 7, "half": 5, "bfloat16": 15, "int": 3, "long": 4, "bool": 11, "short": 2, "char": 1}
_OPERATORS = {
    "__radd__": "add", "__rsub__": "rsub", "__rmul__": "mul", "__neg__": "neg", "__invert__": "bitwise_not",
    "__eq__": "eq", "__floordiv__": "floor_divide",
}  # fmt: skip
"""Those that are seen as operators; the others are seen as the methods that they are."""


def rule_for(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Rule | None:
    """How a call of a public function is written; None where it is written op by op."""
    name = getattr(func, "__name__", "")
    if getattr(func, "__module__", "").startswith(("flambeau.nn", "torch.nn")):  # the latter while it stands in
        return _by_form(name, args, kwargs)
    name = _OPERATORS.get(name, name)
    if name in CASTS and len(args) == 1:
        number = CASTS[name]
        return lambda recording, args, kwargs, result: recording.emit("to", (args[0], number), {}, result)
    if name == "__getitem__":
        return _item
    if name == "__setitem__" and _can_be_written(args[1]):
        return _set_item
    if name == "to":
        return _converted
    if name == "einsum" and isinstance(args[0], str):
        operands = args[1] if isinstance(args[1], (list, tuple)) else args[1:]
        return lambda recording, args, kwargs, result: recording.emit("einsum", (args[0], list(operands)), {}, result)
    if name in SIZED and args and isinstance(args[0], Tensor):
        return functools.partial(_sized, name, 1)
    if name in _MADE:
        return functools.partial(_sized, name, 0)
    if name in ("softmax", "log_softmax"):  # the op is another operator, without a dtype
        return functools.partial(_direct, name)
    if not forms_of(name) or "out" in kwargs or name in ("item", "to", "tensor", "equal"):
        return None
    return functools.partial(_direct, name)


def _direct(name: str, recording: Recording, args: tuple[Any, ...], kwargs: dict[str, Any], result: Any) -> None:
    formats = [each for each in args if isinstance(each, memory_format)]
    plain = [each for each in args if not isinstance(each, memory_format)]
    recording.emit(name, plain, {**kwargs, "memory_format": formats[0]} if formats else kwargs, result)


def _bag_rule(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Rule | None:
    bound = inspect.signature(function_named("nn.functional", "embedding_bag")).bind(*args, **kwargs)
    bound.apply_defaults()
    given = bound.arguments
    if given["offsets"] is None or given["max_norm"] is not None:
        return None
    return lambda recording, args, kwargs, result: _bag(recording, given, result)


def _bag(recording: Recording, given: dict[str, Any], result: Any) -> None:
    """`embedding_bag`: the operator gives four results, of which the function takes the first."""
    options = ("scale_grad_by_freq", "mode", "sparse", "per_sample_weights", "include_last_offset", "padding_idx")
    values = [given["weight"], given["input"], given["offsets"], *(given[each] for each in options)]
    values[4] = ("sum", "mean", "max").index(given["mode"])
    call = f"torch.embedding_bag({', '.join(map(recording.text, values))})"
    variable = recording.new_variable()
    recording.lines.append(f"{variable}, {variable}a, {variable}b, {variable}c = {call}")
    recording.bind(result, variable)


def _sized(
    name: str, first: int, recording: Recording, args: tuple[Any, ...], kwargs: dict[str, Any], result: Any
) -> None:
    """A function whose sizes may be given one by one."""
    sizes = args[first:]
    if sizes and not isinstance(sizes[0], (list, tuple)):
        if isinstance(sizes[0], int):
            args = (*args[:first], list(sizes))
    elif sizes:
        args = (*args[:first], list(sizes[0]))
    recording.emit(name, args, kwargs, result)


def _converted(recording: Recording, args: tuple[Any, ...], kwargs: dict[str, Any], result: Any) -> None:
    """`to`: the result's dtype, and its device where one was asked for."""
    wanted = [*args[1:], *kwargs.values()]
    places = [result.device] if any(isinstance(each, (device, str)) for each in wanted) else []
    recording.emit("to", (args[0], *places, result.dtype), {}, result)


def _item(recording: Recording, args: tuple[Any, ...], kwargs: dict[str, Any], result: Any) -> None:
    """A subscript: one view after another, then the elements that tensors choose."""
    text, chosen = _part(recording, *args)
    if chosen:
        text = f"torch.index({text}, {chosen})"
    variable = recording.new_variable()
    recording.lines.append(f"{variable} = {text}")
    recording.bind(result, variable)


def _can_be_written(key: Any) -> bool:
    keys = key if isinstance(key, tuple) else (key,)
    return all(
        str(each.dtype) != "torch.uint8"
        if isinstance(each, Tensor)
        else each is None or each is Ellipsis or isinstance(each, slice) or type(each) in (int, TracedInt)
        for each in keys
    )


def _set_item(recording: Recording, args: tuple[Any, ...], kwargs: dict[str, Any], result: Any) -> None:
    """A subscript that is written to: what a tensor chooses follows from the tensor in each call."""
    target, key, value = args
    text, chosen = _part(recording, target, key)
    if not chosen and not isinstance(value, Tensor):
        call = f"torch.fill_({text}, {recording.text(value)})"
    else:
        made = value if isinstance(value, Tensor) else plain_of(target).new_tensor(plain_of(value))
        given = recording.text(made)
        if made.dtype is not target.dtype:
            given = f"torch.to({given}, {recording.text(target.dtype)})"
        call = f"torch.index_put_({text}, {chosen}, {given})" if chosen else f"torch.copy_({text}, {given})"
    recording.lines.append(f"{recording.new_variable()}x = {call}")


def _part(recording: Recording, value: Any, key: Any) -> tuple[str, str]:
    """The view that numbers and slices of a subscript take, and the tensors of it as a list of positions, or ""."""
    keys = list(key) if isinstance(key, tuple) else [key]
    text, dim = recording.text(value), 0
    chosen: list[str] = []
    rank = value.dim()
    covered = sum(_dimensions(each) for each in keys)
    for each in keys:
        if each is Ellipsis:
            dim += rank - covered
        elif each is None:
            text = f"torch.unsqueeze({text}, {dim})"
            dim += 1
        elif isinstance(each, slice):
            if each != slice(None):
                low, high, step = (recording.text(part) for part in (each.start, each.stop, each.step))
                text = f"torch.slice({text}, {dim}, {low}, {high}, {'1' if step == 'None' else step})"
            dim += 1
        elif isinstance(each, int) and not isinstance(each, bool):
            text = f"torch.select({text}, {dim}, {recording.text(each)})"
        elif isinstance(each, Tensor):
            chosen += ["None"] * (dim - len(chosen)) + [recording.text(each)]
            dim += _dimensions(each)
        else:
            raise NotImplementedError(f"jit.trace cannot write down a subscript by {type(each).__name__}")
    return text, f"annotate(List[Optional[Tensor]], [{', '.join(chosen)}])" if chosen else ""


def _dimensions(key: Any) -> int:
    """How many dimensions part of a subscript takes."""
    if isinstance(key, Tensor) and str(key.dtype) == "torch.bool":
        return int(key.dim())
    return int(key is not None and key is not Ellipsis)


def _by_form(name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Rule | None:
    form = forms_of_functional().get(name)
    if form is None:
        return _bag_rule(args, kwargs) if name == "embedding_bag" else None
    given = form.given(args, kwargs)
    if form.another(given) or ("output_size" in given and None in _listed(given["output_size"])):
        return None
    given["cudnn_enabled"] = True
    values = [each.as_given(given[each.name]) for each in form.arguments if not each.by_name]
    by_name = {each.name: given[each.name] for each in form.arguments if each.by_name}
    operator = form.operator_for(given.get("inplace"))
    return lambda recording, args, kwargs, result: recording.emit(operator, values, by_name, result)


def _listed(value: Any) -> Sequence[Any]:
    return value if isinstance(value, (list, tuple)) else (value,)
