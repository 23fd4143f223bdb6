"""Ops on lists of tensors: `torch._foreach_add`, `torch._foreach_sqrt_`, ..., which optimizers are made of.

Each of them is the op of that name, applied to every tensor of the list. What a family of them shares is which further
operands there are: none, a number for all, a number for each, a tensor for all, a tensor for each.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Sequence
from typing import Any

from ..._core.backend import LARGE
from ..._core.dtype import FLOAT, LEGACY_NAMES, float32
from ..._core.geometry.layout import is_plain
from ..._core.modes import THREAD
from ..._core.node import Node, initialise, new_node
from ..._core.tensor import PLAIN_TYPES, Tensor
from ..._dispatch.abstract.list_rules import change_at_once, unrecorded
from ..._dispatch.arguments.promotion import is_number
from ..._dispatch.call.results import leaf
from ..._dispatch.changes.inplace import run_inplace
from ..._dispatch.public.registry import function_named, public
from ..reduce.norm import list_norms, vector_norm
from ..tensor.copy import copied
from .binary import _add

Row = tuple[tuple[Any, ...], dict[str, Any]]
"""The further arguments of one call, by position and by name."""

Plan = tuple[str, Sequence[Row]]
"""The form of the function that was called (PyTorch's word: Scalar, ScalarList, Tensor, List), a row for each one."""

_GIVEN: Any = object()
"""The default of what must be given in one of several ways."""

_NO_OPTIONS: dict[str, Any] = {}
"""One for all rows: that they are the same is then seen at once."""


# ----- arguments ----------------------------------------------------------------------------------------------------


def _check_tensors(name: str, value: Any, position: int = 1, word: str = "self") -> None:
    if type(value) not in (list, tuple) and not isinstance(value, (list, tuple)):
        raise TypeError(
            f"{name}(): argument '{word}' (position {position}) must be tuple of Tensors, not {type(value).__name__}"
        )
    if PLAIN_TYPES.issuperset(map(type, value)):
        return
    for number, each in enumerate(value):
        if not isinstance(each, Tensor):
            raise TypeError(
                f"expected Tensor as element {number} in argument {position - 1}, but got {type(each).__name__}"
            )


def _check_lists(name: str, self: Any, *others: Any) -> None:
    """Refuse lists of different lengths, and empty ones."""
    for position, each in enumerate((self, *others), 1):
        _check_tensors(name, each, position, "self" if position == 1 else f"tensor{position - 1}")
    for each in others:
        if len(each) != len(self):
            raise RuntimeError(
                f"Tensor lists must have the same number of tensors, got {len(self)} and {len(each)} ({name})"
            )
    if not self:
        raise RuntimeError(f"Tensor list must have at least one tensor. ({name})")


def _check_numbers(name: str, self: Sequence[Tensor], numbers: Sequence[Any]) -> None:
    if len(numbers) != len(self):
        raise RuntimeError(
            f"Tensor list must have same number of elements as scalar list. {name}: {len(self)} tensors, "
            f"{len(numbers)} numbers"
        )


def _form_of(name: str, operand: Any) -> str:
    """Which form of a function takes this operand."""
    if isinstance(operand, Tensor):
        return "Tensor"
    if is_number(operand):
        return "Scalar"
    if isinstance(operand, (list, tuple)):
        if operand and PLAIN_TYPES.issuperset(map(type, operand)):
            return "List"
        tensors = sum(isinstance(each, Tensor) for each in operand)
        if tensors == 0 and all(map(is_number, operand)):
            return "ScalarList"
        if tensors == 0:
            raise _no_such_form(name, operand)
        return "List"
    raise _no_such_form(name, operand)


def _no_such_form(name: str, operand: Any) -> TypeError:
    found = "nothing" if operand is _GIVEN else type(operand).__name__
    return TypeError(
        f"{name}() received an invalid combination of arguments: beside the list of tensors it takes a number, a list "
        f"of numbers or a list of tensors, not {found}"
    )


def _one_of(name: str, *ways: Any) -> Any:
    """What was given in one of several ways."""
    given = [each for each in ways if each is not _GIVEN]
    if len(given) != 1:
        raise _no_such_form(name, _GIVEN)
    return given[0]


def _operands(name: str, self: Any, operand: Any) -> tuple[str, list[Any]]:
    """The form of an operand, and its part for each tensor."""
    form = _form_of(name, operand)
    if form == "List":
        _check_lists(name, self, operand)
        return form, list(operand)
    _check_lists(name, self)
    if form == "ScalarList":
        _check_numbers(name, self, operand)
        return form, list(operand)
    return form, [operand] * len(self)


# ----- from the op of a tensor to that of a list ----------------------------------------------------------------------


class Together(Node):
    """Stands in the graph for a call on a list: gradients pass through it to the nodes of the tensors' own calls."""

    __slots__ = ()

    def apply(self, grads: list[Any]) -> Sequence[Any]:
        return grads


_NODES: dict[str, type[Together]] = {}


def _as_one(results: list[Tensor], node: str) -> tuple[Tensor, ...]:
    """The results of a call on a list. As in PyTorch they have one node, and all require gradients if one does."""
    modes = THREAD.modes
    if not modes.inference and not unrecorded(results):
        kind = _NODES.get(node)
        if kind is None:
            kind = _NODES[node] = type(node, (Together,), {"__slots__": ()})
        together = new_node(kind)
        outputs = tuple([(each._array.shape, each._kind) for each in results])
        initialise(together, tuple([each._edge() for each in results]), outputs)
        for number, each in enumerate(results):
            if each._kind.differentiable:
                each._requires_grad = True
                each._grad_fn = together
                each._output_nr = number
    return tuple(results)


def _titled(name: str) -> str:
    return name.replace("_", " ").title().replace(" ", "")


def _in_place(op: str) -> Callable[..., Tensor]:
    """The in-place form of a method; some ops have none of their own."""
    found: Callable[..., Tensor] | None = getattr(Tensor, f"{op}_", None)
    if found is not None:
        return found
    return lambda target, *args: run_inplace(getattr(Tensor, op), op, target, args, {})


def _copies(tensors: Sequence[Tensor]) -> list[Tensor]:
    copies = []
    for each in tensors:
        array = each._array
        copies.append(leaf(array.copy() if array.size < LARGE and is_plain(array) else copied(array), each._kind))
    return copies


def _publish(
    name: str, plan: Callable[..., Plan], nodes: dict[str, str], ops: dict[str, str] | None = None,
    *, inplace: bool = True, without_options: Callable[..., Tensor] | None = None,
) -> None:  # fmt: skip
    """Publish `_foreach_name` and `_foreach_name_`.

    `plan` has the signature of the functions; it checks the arguments and lays them out for each tensor. `nodes` says
    how the graph's nodes are called, and `ops` which op is applied, where that is not the one called `name`;
    `without_options` is a shorter way to that op, for those who give it none.
    """
    of_form = ops or {}
    signature = inspect.signature(plan)

    def function(self: Any, *args: Any, **kwargs: Any) -> Any:
        form, rows = plan(self, *args, **kwargs)
        # Several steps for each tensor: one kernel for all of them.
        if len(rows[0][0]) > 1 and self[0]._kind in THREAD.modes.direct and unrecorded(self):
            copies = _copies(self)
            if change_at_once(f"{of_form.get(form, name)}_", copies, rows, are_new=True):
                return tuple(copies)
        if rows[0][1]:
            op = getattr(Tensor, of_form.get(form, name))
            results = [op(each, *row, **options) for each, (row, options) in zip(self, rows, strict=True)]
        else:  # then none has options
            op = without_options or getattr(Tensor, of_form.get(form, name))
            results = list(map(op, self, *zip(*[row for row, _ in rows], strict=True)))
        return _as_one(results, f"Foreach{_titled(name)}Backward{nodes[form]}")

    def change(self: Any, *args: Any, **kwargs: Any) -> Any:
        form, rows = plan(self, *args, **kwargs)
        if change_at_once(f"{of_form.get(form, name)}_", self, rows):
            return self
        op = _in_place(of_form.get(form, name))
        for each, (row, options) in zip(self, rows, strict=True):
            op(each, *row, **options)
        return self

    for body, suffix in ((function, ""), (change, "_"))[: 2 if inplace else 1]:
        body.__name__ = body.__qualname__ = f"_foreach_{name}{suffix}"
        body.__doc__ = f"`{name}{suffix}` of each tensor of a list."
        vars(body)["__signature__"] = signature.replace(return_annotation="Any")
        public(method=False)(body)


# ----- the families -------------------------------------------------------------------------------------------------

_ALONE: Row = ((), _NO_OPTIONS)


def _unary(name: str) -> None:
    """An op of one tensor."""

    def plan(self: list[Tensor]) -> Plan:
        _check_lists(f"_foreach_{name}", self)
        return "", [_ALONE] * len(self)

    _publish(name, plan, {"": "0"})


def _refuse_tensor(name: str, operand: Tensor) -> TypeError:
    return TypeError(
        f"{name}() received an invalid combination of arguments: a tensor for all must be 0-dimensional and outside "
        f"the graph here, this one has shape {list(operand._array.shape)}"
    )


def _binary(name: str, nodes: dict[str, str], ops: dict[str, str] | None = None) -> None:
    """An op of a tensor and a second operand. Where `nodes` lists no form Tensor, a 0-d one counts as a number."""
    full = f"_foreach_{name}"

    def plan(self: list[Tensor], other: Any = _GIVEN, *, scalar: Any = _GIVEN, scalars: Any = _GIVEN) -> Plan:
        operand = _one_of(full, other, scalar, scalars)
        form, operands = _operands(full, self, operand)
        if form == "Tensor":
            form = _form_of_tensor(full, operand, "Tensor" in nodes)
        return form, [((each,), _NO_OPTIONS) for each in operands]

    _publish(name, plan, nodes, ops)


def _form_of_tensor(name: str, operand: Tensor, allowed: bool) -> str:
    ndim = operand._array.ndim
    if not allowed:
        if ndim or operand.requires_grad:
            raise _refuse_tensor(name, operand)
        return "Scalar"
    if ndim:
        raise RuntimeError(
            f"scalar tensor expected to be 0 dim but it has {ndim} dimensions and {operand._array.size} elements. "
            f"({name})"
        )
    return "Tensor"


def _sum(name: str, nodes: dict[str, str]) -> None:
    """`add` and `sub`, whose second tensors may be scaled."""
    full = f"_foreach_{name}"

    def plan(
        self: list[Tensor], other: Any = _GIVEN, *, alpha: Any = _GIVEN, scalar: Any = _GIVEN, scalars: Any = _GIVEN
    ) -> Plan:
        operand = _one_of(full, other, scalar, scalars)
        form, operands = _operands(full, self, operand)
        scaled = alpha is not _GIVEN
        if form == "Tensor":
            needed = _form_of_tensor(full, operand, "Tensor" in nodes)
            form = needed if scaled or operand.requires_grad else "Scalar"
        if scaled and form not in ("List", "Tensor"):
            raise TypeError(
                f"{full}() received an invalid combination of arguments: alpha= is for tensors, not for numbers"
            )
        options = {"alpha": alpha} if scaled else _NO_OPTIONS
        return form, [((each,), options) for each in operands]

    _publish(name, plan, nodes, without_options=_add if name == "add" else None)


def _pointwise(name: str) -> None:
    """`addcmul` and `addcdiv`: two further lists and a number, of all or of each; `value` may hold them as a tensor."""
    full = f"_foreach_{name}"

    def plan(
        self: list[Tensor], tensor1: list[Tensor], tensor2: list[Tensor], value: Any = _GIVEN, *, scalars: Any = _GIVEN
    ) -> Plan:
        _check_lists(full, self, tensor1, tensor2)
        factor = 1 if value is _GIVEN and scalars is _GIVEN else _one_of(full, value, scalars)
        if isinstance(factor, Tensor):
            factor = _unpacked(self, factor)
        form, factors = _operands(full, self, factor)
        if form not in ("Scalar", "ScalarList"):
            raise _no_such_form(full, factor)
        options = [{"value": factor}] * len(self) if form == "Scalar" else [{"value": each} for each in factors]
        return form, [(pair, each) for pair, each in zip(zip(tensor1, tensor2, strict=True), options, strict=True)]

    _publish(name, plan, {"Scalar": "0Scalar", "ScalarList": "0ScalarList"})


def _unpacked(self: Sequence[Tensor], packed: Tensor) -> list[Any]:
    shape = packed._array.shape
    if len(shape) != 1:
        raise RuntimeError(f"Expected packed scalar Tensor to be of dimension 1. Got {len(shape)} instead.")
    if shape[0] != len(self):
        raise RuntimeError(
            f"Expected length of scalars to match input of length {len(self)} but got {shape[0]} instead."
        )
    numbers: list[Any] = packed.tolist()
    return numbers


def _lerp_plan(self: list[Tensor], tensors1: list[Tensor], weight: Any = _GIVEN, *, weights: Any = _GIVEN) -> Plan:
    _check_lists("_foreach_lerp", self, tensors1)
    given = _one_of("_foreach_lerp", weight, weights)
    form, parts = _operands("_foreach_lerp", self, given)
    if form == "Tensor":
        form = _form_of_tensor("_foreach_lerp", given, allowed=False)
    return form, [((end, part), _NO_OPTIONS) for end, part in zip(tensors1, parts, strict=True)]


def _clone_plan(self: list[Tensor], *, memory_format: Any = None) -> Plan:
    _check_lists("_foreach_clone", self)
    options = {} if memory_format is None else {"memory_format": memory_format}
    return "", [((), options)] * len(self)


def _max_plan(self: list[Tensor]) -> Plan:
    _check_lists("_foreach_max", self)
    if not all(each._array.size for each in self):
        raise RuntimeError(
            "_foreach_max cannot compute the maximum of an empty tensor; max over zero elements is undefined."
        )
    return "", [_ALONE] * len(self)


def _mm_plan(self: list[Tensor], mat2: list[Tensor]) -> Plan:
    _check_tensors("_foreach_mm", self)
    _check_tensors("_foreach_mm", mat2, 2, "mat2")
    if len(self) != len(mat2):
        raise RuntimeError(
            f"_foreach_mm: self and mat2 must have the same number of tensors, got {len(self)} and {len(mat2)}"
        )
    if not self:
        raise RuntimeError("_foreach_mm requires non-empty tensor lists")
    return "", [((each,), _NO_OPTIONS) for each in mat2]


for _name in (
    "abs", "acos", "asin", "atan", "ceil", "cos", "cosh", "erf", "erfc", "exp", "expm1", "floor", "frac", "lgamma",
    "log", "log10", "log1p", "log2", "neg", "reciprocal", "round", "rsqrt", "sigmoid", "sign", "sin", "sinh", "sqrt",
    "tan", "tanh", "trunc",
):  # fmt: skip
    _unary(_name)

_NUMBERS = {"Scalar": "1Scalar", "ScalarList": "1ScalarList"}
_sum("add", {**_NUMBERS, "Tensor": "0Tensor", "List": "0List"})
_sum("sub", {**_NUMBERS, "List": "0List"})
_binary("mul", {**_NUMBERS, "Tensor": "0Tensor", "List": "0List"})
_binary("div", {**_NUMBERS, "Tensor": "0Tensor", "List": "0"})
_BOUNDS = {"Scalar": "0Scalar", "ScalarList": "0ScalarList", "List": "1List"}
_binary("clamp_min", _BOUNDS)
_binary("clamp_max", _BOUNDS)
_EXTREMES = {"Scalar": "0", "ScalarList": "1", "List": "0List"}
_binary("maximum", _EXTREMES, {"Scalar": "clamp_min", "ScalarList": "clamp_min"})
_binary("minimum", _EXTREMES, {"Scalar": "clamp_max", "ScalarList": "clamp_max"})
_pointwise("addcmul")
_pointwise("addcdiv")
_publish("lerp", _lerp_plan, {"Scalar": "0Scalar", "ScalarList": "0ScalarList", "List": "1List"})
_publish("clone", _clone_plan, {"": "0"}, inplace=False)
_publish("max", _max_plan, {"": "1"}, inplace=False)
_publish("mm", _mm_plan, {"": "0"}, inplace=False)


# ----- those that fit in no family ------------------------------------------------------------------------------------


def _pow_plan(self: list[Tensor], exponent: Any) -> Plan:
    form, exponents = _operands("_foreach_pow", self, exponent)
    if form == "Tensor":
        form = _form_of_tensor("_foreach_pow", exponent, allowed=False)
    return form, [((each,), _NO_OPTIONS) for each in exponents]


@public(method=False)
def _foreach_pow(self: Any, exponent: Any) -> Any:
    """Powers of each tensor of a list, or of one number with each of them as the exponent."""
    if is_number(self):
        _check_lists("_foreach_pow", exponent)
        power = function_named("", "pow")
        return _as_one([power(self, each) for each in exponent], "ForeachPowBackward2")
    form, rows = _pow_plan(self, exponent)
    results = [base.pow(*row) for base, (row, _) in zip(self, rows, strict=True)]
    return _as_one(
        results,
        {"Scalar": "ForeachPowBackward0Scalar", "ScalarList": "ForeachPowBackward1"}.get(form, "ForeachPowBackward0"),
    )


@public(method=False)
def _foreach_pow_(self: list[Tensor], exponent: Any) -> Any:
    """`pow_` of each tensor of a list."""
    for base, (row, _) in zip(self, _pow_plan(self, exponent)[1], strict=True):
        base.pow_(*row)
    return self


@public(method=False)
def _foreach_copy_(self: list[Tensor], src: list[Tensor], non_blocking: bool = False) -> Any:
    """Copy each tensor of one list into the tensor at its place in another."""
    _check_lists("_foreach_copy_", self, src)
    if change_at_once("copy_", self, [((source,), _NO_OPTIONS) for source in src]):
        return self
    for target, source in zip(self, src, strict=True):
        target.copy_(source, non_blocking)
    return self


@public(method=False)
def _foreach_zero_(self: list[Tensor]) -> Any:
    """Fill each tensor of a list with zeros."""
    _check_lists("_foreach_zero_", self)
    if change_at_once("zero_", self, [_ALONE] * len(self)):
        return self
    for each in self:
        each.zero_()
    return self


def _check_order(name: str, ord: Any) -> float:
    if isinstance(ord, Tensor) and ord._array.ndim == 0:
        ord = ord.item()
    if not is_number(ord):
        raise TypeError(f"{name}(): argument 'ord' (position 2) must be Number, not {type(ord).__name__}")
    number: float = ord
    return number


@public(method=False)
def _foreach_norm(self: list[Tensor], ord: Any = 2, dtype: Any = None) -> Any:
    """The `ord`-norm of the elements of each tensor of a list."""
    ord = _check_order("_foreach_norm", ord)
    _check_lists("_foreach_norm", self)
    if ord == math.inf and not all(each._array.size for each in self):
        raise RuntimeError(
            "_foreach_norm cannot compute the infinity norm on an empty tensor because the operation does not have an "
            "identity"
        )
    if ord == 2 and dtype is None and not (THREAD.modes.grad and any(each.requires_grad for each in self)):
        return tuple(list_norms(self))
    return _as_one([vector_norm(each, ord, dtype=dtype) for each in self], "ForeachNormBackward0")


@public(method=False)
def _foreach_powsum(self: list[Tensor], ord: Any = 2, dtype: Any = None) -> Any:
    """For each tensor of a list the sum of its elements' sizes to the power `ord`."""
    ord = _check_order("_foreach_powsum", ord)
    _check_lists("_foreach_powsum", self)
    return _as_one([_power_sum(each, ord, dtype) for each in self], "ForeachPowsumBackward0")


def _power_sum(tensor: Tensor, ord: float, dtype: Any) -> Tensor:
    given = tensor._kind.dtype
    if given.category < FLOAT:
        raise NotImplementedError(f'"powsum_cpu" not implemented for {LEGACY_NAMES[given]!r}')
    wide = tensor.to(dtype if dtype is not None else float32 if given.itemsize == 2 else given)
    total = (wide.abs() ** ord).sum()
    return total.to(given) if dtype is None and given.itemsize == 2 else total
