"""The table of a thread with autocast: by function what casts its arguments and calls it.

A rule is a word, for which there is a function below, or itself a function of its own kind: see `autocast_rules.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from time import perf_counter_ns
from typing import Any

from ..._core.dtype import bfloat16, dtype, float16, float32, float64
from ..._core.kind import Kind, kind_of
from ..._core.modes import UNCAST, Casts, Modes, Ruled
from ..._core.slots import SLOTS
from ..._core.tensor import PLAIN_TYPES, Tensor
from ..call.results import finished
from ..op import parameter_names
from .autocast_rules import ELEMENTWISE_DEVICES, FULL, FULL_RESULT, LOWER, WIDEST, FullIf
from .casts_ahead import CastsAhead

Function = Callable[..., Any]

AS_IT_IS = "as it is"

_NUMBERS = frozenset((type(None), bool, int, float, complex, str, dtype))
"""The types of arguments that are never cast."""


class Settings:
    """What a thread has chosen."""

    def __init__(self) -> None:
        self.enabled: dict[str, dtype] = {}
        """The types of devices with autocast, and the lower precision of each."""
        self.dtypes: dict[str, dtype] = {
            "cpu": bfloat16, "cuda": float16, "hpu": bfloat16, "ipu": float16, "maia": bfloat16, "mps": float16,
            "mtia": float16, "privateuseone": float16, "xla": bfloat16, "xpu": float16,
        }  # fmt: skip
        """The types of devices that autocast knows, and the dtype of each unless one is chosen."""
        self.cache_enabled = True
        self.nesting = 0
        self.cache: dict[int, tuple[Tensor, Tensor]] = {}
        """By the identity of a weight the weight, and its cast."""
        self.ahead = CastsAhead()


class CastingCalls(Casts):
    """The table for some types of devices, each with its lower precision."""

    def __init__(self, enabled: dict[str, dtype], settings: Settings, modes: Modes) -> None:
        self._casters = {kind: Caster(kind, lower, settings, modes, self) for kind, lower in enabled.items()}
        self.elementwise = not ELEMENTWISE_DEVICES.isdisjoint(enabled)

    def __missing__(self, ruled: Ruled) -> Function:
        call = ruled.own
        for kind, caster in self._casters.items():
            rule = rule_for(kind, ruled)
            if rule is not None:
                call = caster.call(rule, call, ruled.own)
        self[ruled] = call
        return call


def rule_for(device_type: str, ruled: Ruled) -> Any:
    """The rule of a function for tensors on a type of device; None: it has none."""
    return ruled.rules.get(device_type)


def operands(*given: Any) -> Any:
    """The body of elementwise ops in the table: they take the operands that were cast, and compute by themselves."""
    return given


class _Targets(dict[Kind, Kind | None]):
    """By the kind of a tensor the kind that it is cast to, or its own; None on another type of device.

    Autocast touches tensors of real numbers, but not those of double precision.
    """

    def __init__(self, device_type: str, wanted: Any) -> None:
        self._device_type, self._wanted = device_type, wanted

    def __missing__(self, kind: Kind) -> Kind | None:
        target: Kind | None = None
        if kind.device.type == self._device_type:
            stays = kind.dtype is float64 or not kind.dtype.is_floating_point
            target = kind if stays or self._wanted in (None, kind.dtype) else kind_of(self._wanted, kind.device)
        self[kind] = target
        return target


class Caster:
    """The casts of one thread for one type of device."""

    def __init__(self, device_type: str, lower: dtype, settings: Settings, modes: Modes, table: Casts) -> None:
        self.lower = lower
        self._settings, self._modes, self._table = settings, modes, table
        precisions = {LOWER: lower, FULL: float32, AS_IT_IS: None}
        self._targets = {name: _Targets(device_type, each) for name, each in precisions.items()}

    def call(self, rule: Any, own: Function, body: Function) -> Function:
        """What runs in place of `own`, which has this rule: `body`, or what casts for another type of device."""
        if rule == WIDEST:
            return self._call_in_widest(own)
        if rule == FULL_RESULT:
            return self._call_with_dtype(own, parameter_names(body).index("dtype"))
        if type(rule) is FullIf:
            return self._call_in(self._targets[FULL], own, (parameter_names(body).index(rule.parameter), rule))
        return self._call_in(self._targets[rule], own) if rule in self._targets else self._call_by(rule, own)

    def _call_in(self, wanted: _Targets, own: Function, condition: tuple[int, FullIf] | None = None) -> Function:
        """All tensors in one precision, if a condition on the argument at a position holds.

        It is one function, which runs for every product of a network.
        """
        modes, table, settings, cache = self._modes, self._table, self._settings, self._settings.cache
        unchanged = self._targets[AS_IT_IS]

        def call(*args: Any, **kwargs: Any) -> Any:
            targets = wanted
            if condition is not None:
                position, asked = condition
                value = args[position] if len(args) > position else kwargs.get(asked.parameter)
                if (value in asked.values) is not asked.among:
                    targets = unchanged
            is_ruled = False
            cast = []
            for each in args:
                if type(each) in PLAIN_TYPES:
                    kind = each._kind
                    target = targets[kind]
                    if target is not None:
                        is_ruled = True
                        if target is not kind:
                            known = cache.get(id(each))
                            if (
                                known is not None
                                and known[1]._kind is target
                                and modes.grad
                                and settings.cache_enabled
                                and each._requires_grad
                            ):
                                each = known[1]
                            else:
                                each = self._cast(each, target)
                elif type(each) not in _NUMBERS and not (type(each) is tuple and _NUMBERS.issuperset(map(type, each))):
                    is_ruled = self._is_on(each, targets) or is_ruled
                    each = self.cast(each, targets)
                cast.append(each)
            for name, each in kwargs.items():
                if type(each) not in _NUMBERS:
                    is_ruled = self._is_on(each, targets) or is_ruled
                    kwargs[name] = self.cast(each, targets)
            if own is operands:
                return cast
            if not is_ruled:
                return own(*cast, **kwargs)
            modes.autocast = UNCAST
            try:
                return own(*cast, **kwargs)
            finally:
                modes.autocast = table

        return call

    def _call_in_widest(self, own: Function) -> Function:
        """All tensors in the widest dtype among them: what only brings tensors together."""
        modes, table, lower, full = self._modes, self._table, self._targets[LOWER], self._targets[FULL]

        def call(*args: Any, **kwargs: Any) -> Any:
            found: set[dtype] = set()
            is_ruled = False
            for each in (*args, *kwargs.values()):
                for one in each if type(each) is list or type(each) is tuple else (each,):
                    if isinstance(one, Tensor) and (target := lower[one._kind]) is not None:
                        is_ruled = True
                        if target is not one._kind or target.dtype is self.lower:
                            found.add(one._kind.dtype)
            if not is_ruled:
                return own(*args, **kwargs)
            if len(found) > 1 or not found <= {float32, self.lower}:
                targets = full if float32 in found else lower
                if others := found - {float32, self.lower}:
                    raise RuntimeError(
                        f"Unexpected floating ScalarType in at::autocast::prioritize: {others.pop()} beside autocast's "
                        f"{self.lower}"
                    )
                args = tuple([self.cast(each, targets) for each in args])
                kwargs = {name: self.cast(each, targets) for name, each in kwargs.items()}
            if own is operands:
                return args
            modes.autocast = UNCAST
            try:
                return own(*args, **kwargs)
            finally:
                modes.autocast = table

        return call

    def _call_with_dtype(self, own: Function, position: int) -> Function:
        """With `dtype=float32`, a parameter at this position, unless the caller says otherwise: sums and their kin."""
        modes, table, full = self._modes, self._table, self._targets[FULL]

        def call(*args: Any, **kwargs: Any) -> Any:
            kind = args[0]._kind if args and isinstance(args[0], Tensor) else None
            if kind is None or full[kind] is None:
                return own(*args, **kwargs)
            if full[kind] is not kind:
                if len(args) <= position:
                    if kwargs.get("dtype") is None:
                        kwargs["dtype"] = float32
                elif args[position] is None:
                    args = (*args[:position], float32, *args[position + 1 :])
            modes.autocast = UNCAST
            try:
                return own(*args, **kwargs)
            finally:
                modes.autocast = table

        return call

    def _call_by(self, rule: Any, own: Function) -> Function:
        """By a rule that is a function of the body, its arguments and this caster."""
        modes, table = self._modes, self._table

        def call(*args: Any, **kwargs: Any) -> Any:
            if not any(self._is_on(each, self._targets[LOWER]) for each in (*args, *kwargs.values())):
                return own(*args, **kwargs)
            modes.autocast = UNCAST
            try:
                return rule(own, args, kwargs, self)
            finally:
                modes.autocast = table

        return call

    def _is_on(self, value: Any, targets: _Targets) -> bool:
        if isinstance(value, Tensor):
            return targets[value._kind] is not None
        return isinstance(value, (list, tuple)) and any(self._is_on(each, targets) for each in value)

    def cast(self, value: Any, targets: _Targets) -> Any:
        """`value`, or the tensors in a list of them, in another dtype; gradients flow back through the cast."""
        if isinstance(value, Tensor):
            target = targets[value._kind]
            return value if target is None or target is value._kind else self._cast(value, target)
        if type(value) is list or type(value) is tuple:
            return type(value)([self.cast(each, targets) for each in value])
        return value

    def _cast(self, value: Tensor, target: Kind) -> Tensor:
        """A tensor in another dtype. A weight is cast once in a region: it is a leaf that needs a gradient."""
        settings, kind = self._settings, value._kind
        is_weight = (
            value._requires_grad and value._grad_fn is None and value._view is None and kind.dtype is float32
            and settings.cache_enabled
        )  # fmt: skip
        is_kept = is_weight and self._modes.grad
        known = settings.cache.get(id(value)) if is_kept else None
        if known is not None and known[1]._kind is target:
            return known[1]
        if type(value) not in PLAIN_TYPES:
            cast = value.to(target.dtype)
        elif is_weight and target.backend.costs_per_call and self._modes.is_ordinary and settings.nesting:
            made = settings.ahead.take(value, target)
            if made is None:
                cast = SLOTS.to_copy(value, target.dtype, None)
            elif self._modes.watcher is None:
                cast = finished(SLOTS.to_copy, (value, target.dtype, None), (value,), made, target)
            else:
                cast = self._watched_cast(value, made, target)
        elif kind.device.dataless or target.dtype.is_complex:
            cast = SLOTS.converted(value, target, None)
        else:
            cast = SLOTS.to_copy(value, target.dtype, None)
        if is_kept:
            settings.cache[id(value)] = value, cast
        return cast

    def _watched_cast(self, weight: Tensor, made: Any, target: Kind) -> Tensor:
        """The cast of a weight that has been made together with others, where a watcher looks on."""
        op, args, start = SLOTS.to_copy, (weight, target.dtype, None), perf_counter_ns()
        cast = finished(op, args, (weight,), made, target)
        self._modes.watcher.ran(op, args, cast, start, perf_counter_ns())
        return cast

    def all_in(self, precision: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, Any]:
        """All arguments of a call in one precision."""
        targets = self._targets[precision]
        return (
            tuple([self.cast(each, targets) for each in args]),
            {name: self.cast(each, targets) for name, each in kwargs.items()},
        )

    def in_lower(self, value: Any) -> Any:
        """A result in the lower precision."""
        return self.cast(value, self._targets[LOWER])
