"""What autocast may do with the tensors of a call: the words of the field `autocast` in the records of functions.

    @public("nn.functional.linear", autocast=LOWER)
    @public(autocast=on(cuda=FULL))

A rule is a word, a condition, or a function that is called with the function's own body, its arguments and a caster
(`casting_calls.Caster`), and returns the result.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NoReturn

from ..._core.dtype import float32
from ..._core.modes import Ruled

LOWER, FULL, WIDEST, FULL_RESULT = "lower", "full", "widest", "full_result"
"""Rules: in the lower precision (products of matrices and what is made of them); in float32 (what needs the range or
the precision); in the widest dtype of the inputs (what only brings tensors together); with `dtype=float32` unless the
caller says otherwise (sums and their kin)."""


class FullIf:
    """In float32 if an argument is one of some values: `among` them, or else if it is none of them."""

    __slots__ = ("among", "parameter", "values")

    def __init__(self, parameter: str, values: tuple[Any, ...], among: bool) -> None:
        self.parameter = parameter
        self.values = values
        self.among = among


def lower_result(body: Any, args: Any, kwargs: Any, caster: Any) -> Any:
    """In the precision of the inputs up to the last step, which is a product of matrices."""
    return caster.in_lower(body(*args, **kwargs))


def by_state(body: Any, args: Any, kwargs: Any, caster: Any) -> Any:
    """Recurrent steps: products in the lower precision, the state in its own."""
    position = 1 if isinstance(args[1], (list, tuple)) or args[1].is_floating_point() else 2  # 2: after batch_sizes
    state = args[position]
    low, low_kwargs = caster.all_in(LOWER, args, kwargs)
    if (state[0] if isinstance(state, (list, tuple)) else state).dtype is not float32:
        return body(*low, **low_kwargs)
    rounded = *low[:position], state, *low[position + 1 :]
    back, back_kwargs = caster.all_in(FULL, rounded, low_kwargs)
    return body(*back, **back_kwargs)


def refused(body: Any, args: Any, kwargs: Any, caster: Any) -> NoReturn:
    """Not at all: the logarithms of probabilities that were rounded to half precision are of no use."""
    raise RuntimeError(
        "torch.nn.functional.binary_cross_entropy and torch.nn.BCELoss are unsafe to autocast. Use "
        "binary_cross_entropy_with_logits or BCEWithLogitsLoss on what goes into the sigmoid: they are safe."
    )


Rule = str | FullIf | Callable[[Callable[..., Any], tuple[Any, ...], dict[str, Any], Any], Any]
Autocast = Rule | Mapping[str, Rule]
"""The rule of a function: one for all types of devices, or one for each that has any."""

DEVICE_TYPES = "cpu", "cuda"
"""The types of devices for which there are rules."""

RULED: dict[str, Mapping[str, Rule]] = {}
"""The rules of all functions with some, by public name: filled as files of ops are imported."""
ELEMENTWISE_DEVICES = {"cuda"}
"""The types of devices on which some elementwise op has a rule; the file of those on CUDA may be imported late."""


def on(**rules: Rule) -> Mapping[str, Rule]:
    """Rules by type of device: `on(cuda=FULL)`."""
    return rules


def _itself(value: Any) -> Any:
    return value


in_full: Callable[[Any], Any] = Ruled({"cuda": FULL}, _itself)
"""A tensor in float32 in a thread with autocast on GPUs, else as it is: for a step in the midst of a function of which
PyTorch casts that step alone."""


def rules_of(name: str, autocast: Autocast | None) -> Mapping[str, Rule] | None:
    """The rules by type of device of the function `name`, whose record says `autocast`."""
    if autocast is None:
        return None
    rules = autocast if isinstance(autocast, Mapping) else dict.fromkeys(DEVICE_TYPES, autocast)
    RULED[name] = rules
    return rules
