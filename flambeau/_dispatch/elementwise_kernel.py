"""Elementwise ops of one tensor and numbers, as one block.

    @elementwise(
        "nn.functional.softsign_scaled",
        rule=FLOATING,
        autocast=FULL,
        self=lambda grad, self, scale: grad * scale / (scale + self.abs()) ** 2,
    )
    def softsign_scaled(self: Array, scale: float = 1.0) -> Array:
        '''`input / (scale + |input|)`.'''
        return self / (scale + np.abs(self))

The decorated function is the kernel: its first parameter is the tensor, the others are numbers or texts with their
defaults. From the block come the op and its derivatives, the public function, the method, the in-place form and `out=`,
half precision computed in float32, generated kernels, `vmap`, DTensor, compiled segments and autocast. Where there are
no numbers, `unary` (`elementwise.py`) is the shorter way to run.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from .._core.process.caller import GENERATED
from .._core.tensor import Tensor
from .arguments.autocast_rules import Autocast
from .arguments.precision import as_floating, in_single, refuse
from .compiled_body import pointwise, pointwise_at_any_size
from .dispatch import Primitive, primitive
from .elementwise import FLOATING, SAME, node_name
from .op import Formula, Kernel
from .public.protocol import Writer
from .public.registry import public

_DTYPE_RULES = (SAME, FLOATING)


def elementwise(
    *aliases: str,
    node: str | None = None,
    rule: str = SAME,
    refuses: tuple[int, ...] = (),
    at_any_size: bool = False,
    function: bool = True,
    method: bool = True,
    inplace: bool = True,
    out: bool | Writer = True,
    autocast: Autocast | None = None,
    **formulas: Formula,
) -> Callable[[Kernel], Callable[..., Tensor]]:
    """Make an op and its public functions of a kernel of one array and numbers.

    `rule`: SAME, or FLOATING for integers that become the default dtype first. `refuses`: the categories of dtypes for
    which there is an error. `at_any_size`: of few elements too the generated kernel is quicker than NumPy. `function`,
    `method`, `inplace`, `out`, `autocast` and the further names are those of `public`.
    """
    if rule not in _DTYPE_RULES:
        raise TypeError(f"elementwise(rule={rule!r}): the result has the dtype of the tensor: one of {_DTYPE_RULES}")

    def decorate(kernel: Kernel) -> Callable[..., Tensor]:
        name = kernel.__name__.removeprefix("_")
        marked = (pointwise_at_any_size if at_any_size else pointwise)(in_single(kernel))
        recorded = node or (node_name(name) if formulas else None)
        make: Any = primitive  # its keywords are the names of tensors, beside a few of its own
        op: Primitive[..., Tensor] = make(recorded, op_name=name, **formulas)(marked)
        body = _body(kernel, op, name, rule, refuses)
        return public(*aliases, function=function, method=method, inplace=inplace, out=out, autocast=autocast)(body)

    return decorate


def _body(
    kernel: Kernel, op: Primitive[..., Tensor], name: str, rule: str, refuses: tuple[int, ...]
) -> Callable[..., Tensor]:
    """The function behind the public ones: it has the kernel's parameters, with `input` for the array."""
    first, *numbers = inspect.signature(kernel).parameters.values()
    if first.annotation != "Array" or any("Array" in str(each.annotation) for each in numbers):
        raise TypeError(f"{name}: the first parameter of an elementwise kernel, and no other, is an `Array`")
    listed = [inspect.Parameter("input", first.kind, annotation="Tensor"), *numbers]
    lines = [f"refuse({name!r}, input, *refuses)"] if refuses else []
    given = "as_floating(input)" if rule == FLOATING else "input"
    passed = "".join(f", {each.name}" for each in numbers)
    source = "\n    ".join(
        [f"def {name}(input{''.join(_spelled(each) for each in numbers)}):", *lines, f"return op({given}{passed})\n"]
    )
    defaults = {f"_{each.name}": each.default for each in numbers}
    called = {"op": op, "refuse": refuse, "refuses": refuses, "as_floating": as_floating}
    scope: dict[str, Any] = {**kernel.__globals__, "Tensor": Tensor, **called, **defaults}  # what annotations name, too
    exec(compile(source, f"{GENERATED}body {name}>", "exec"), scope)
    made: Callable[..., Tensor] = scope[name]
    made.__doc__, made.__module__ = kernel.__doc__, kernel.__module__
    made.__annotations__ = {each.name: each.annotation for each in listed} | {"return": "Tensor"}
    return made


def _spelled(parameter: inspect.Parameter) -> str:
    default = "" if parameter.default is parameter.empty else f"=_{parameter.name}"
    return f", {parameter.name}{default}"
