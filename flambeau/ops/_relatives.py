"""Operators that follow from others: in place, with `out=`, on copies, and derivatives."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from .._core.tensor import Tensor
from .._dispatch.changes.exact_out import store_exactly
from .._dispatch.public.schema import FunctionSchema
from .._dispatch.public.schemas import schemas_of
from ._bodies import Body, body_of, called_like, names_of, overload_like
from ._differentiated import gradients_of


def _storing(schema: FunctionSchema) -> Body | None:
    """`name.out` is `name`, with the results stored in the tensors given for them."""
    name, _ = names_of(schema)
    outs = [each for each in schema.arguments if each.is_out]
    functional = overload_like(schema, name, outs) if outs else None
    body = None if functional is None else body_of(functional)
    if functional is None or body is None:
        return None
    kept = [each.name for each in schema.arguments if not each.is_out]
    call, count = called_like(functional, body, kept), len(kept)
    makes_dtype = "dtype" not in kept and any(each.name == "dtype" for each in functional.arguments)

    def stored(*values: Any) -> Any:
        places = values[count:]
        results = call(*values[:count], **({"dtype": places[0].dtype} if makes_dtype else {}))
        if isinstance(places[0], (list, tuple)):
            places, results = tuple(places[0]), tuple(results)
        elif len(places) == 1:
            results = (results,)
        for each, into in zip(results, places, strict=True):
            store_exactly(each, into)
        return None if not schema.returns else places if len(places) > 1 else places[0]

    return stored


def _in_place(schema: FunctionSchema) -> Body | None:
    """`name_` is `name`, with the result stored in the first argument."""
    name, _ = names_of(schema)
    functional = overload_like(schema, name[:-1]) if name.endswith("_") and not name.endswith("__") else None
    body = None if functional is None else body_of(functional)
    if body is None:
        return None

    def change(target: Any, *values: Any) -> Any:
        result = body(target, *values)
        if isinstance(target, Tensor):
            return target.copy_(result)
        for each, into in zip(result, target, strict=True):
            into.copy_(each)
        return None

    return change


def _on_copies(schema: FunctionSchema) -> Body | None:
    """`name` is `name_` on copies, and `name_functional` is `name` on copies of what it changes, which it returns."""
    name, _ = names_of(schema)
    base = name.removesuffix("_functional")
    changing = overload_like(schema, base if base != name else f"{name}_")
    body = None if changing is None or not changing.is_mutable else body_of(changing)
    if changing is None or body is None:
        return None
    written = [number for number, each in enumerate(changing.arguments) if each.is_write]
    is_function = base != name

    def call(*values: Any) -> Any:
        copies = [_cloned(each) if number in written else each for number, each in enumerate(values)]
        result = body(*copies)
        own = (result if isinstance(result, tuple) else (result,)) if is_function else ()
        results = (*own, *(copies[number] for number in written))
        return results[0] if len(schema.returns) == 1 else results

    return call


def _cloned(value: Any) -> Any:
    if isinstance(value, (list, tuple)):
        return [_cloned(each) for each in value]
    return value.clone() if isinstance(value, Tensor) else value


def _copied_view(schema: FunctionSchema) -> Body | None:
    """`name_copy` is a copy of `name`."""
    name, _ = names_of(schema)
    view = overload_like(schema, name.removesuffix("_copy")) if name.endswith("_copy") else None
    body = None if view is None else body_of(view)
    return None if body is None else lambda *values: _cloned(body(*values))


def _private(schema: FunctionSchema) -> Body | None:
    """`_name`, `_unsafe_name` and `_name_unsafe` are `name`: they check less, or have an argument of a kernel's."""
    name, _ = names_of(schema)
    if not name.startswith("_"):
        return None
    for other in (name.removeprefix("_"), name.removeprefix("_unsafe_"), name[1:].removesuffix("_unsafe")):
        namesake = overload_like(schema, other) if other != name else None
        body = None if namesake is None else body_of(namesake)
        if namesake is not None and body is not None:
            return called_like(namesake, body, [each.name for each in schema.arguments])
    return None


# Derivatives ----------------------------------------------------------------------------------------------------------


def _derivative(schema: FunctionSchema) -> Body | None:
    """`name_backward` is the derivative of `name`: its arguments are those of `name` behind the gradient."""
    name, _ = names_of(schema)
    base = name.removesuffix("_data").removesuffix("_backward")
    if base == name:
        return None
    ours = {each.name: number for number, each in enumerate(schema.arguments)}
    sized = next((each for each in _SIZES if each in ours), None)
    for forward in _forwards(base):
        body = None
        known = ours.keys() | ({forward.arguments[0].name} if sized is not None else set())
        if all(each.name in known or each.has_default_value() for each in forward.arguments):
            body = body_of(forward)
        if body is not None:
            return _pulled_back(schema, forward, body, ours)
    return None


_SIZES = ("input_size", "input_sizes", "self_sizes", "sizes")
"""In place of the first argument, of which a linear operator's derivative needs only the shape."""


def _forwards(base: str) -> Iterator[FunctionSchema]:
    for name in (base, f"{base}_forward", f"_{base}", base.removeprefix("_")):
        yield from (each for each in schemas_of("aten", name).values() if not each.is_mutable)


def _pulled_back(schema: FunctionSchema, forward: FunctionSchema, body: Body, ours: dict[str, int]) -> Body:
    wanted = [number for number, each in enumerate(forward.arguments) if each.type_text in ("Tensor", "Tensor?")]
    wanted = wanted[: len(schema.returns)]
    mask_at = ours.get("output_mask")

    sized = next((ours[each] for each in _SIZES if each in ours), None)

    def backward(*values: Any) -> Any:
        args = [values[ours[each.name]] if each.name in ours else each.default for each in forward.arguments]
        if sized is not None:
            args[0] = values[0].new_zeros(list(values[sized]))
        asked = [number for number in wanted if isinstance(args[number], Tensor)]
        if mask_at is not None:
            asked = [number for number, is_wanted in zip(wanted, values[mask_at], strict=True) if is_wanted]
        found = gradients_of(body, args, asked, values[0])
        results = tuple(found.get(number) for number in wanted)
        return results[0] if len(schema.returns) == 1 else results

    return backward


RELATIVES: tuple[Callable[[FunctionSchema], Body | None], ...] = (
    _storing, _in_place, _on_copies, _copied_view, _derivative, _private,
)  # fmt: skip
"""Each finds what an operator runs, or gives None."""
