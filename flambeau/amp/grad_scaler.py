"""`GradScaler`: losses are scaled up so that small gradients survive half precision, and gradients down again."""

from __future__ import annotations

import inspect
import warnings
from collections import defaultdict
from collections.abc import Iterable
from enum import Enum
from typing import Any, cast

from .._core.dtype import float16, float32, int32
from .._core.slots import SLOTS
from .._core.tensor import Tensor
from .._dispatch.abstract.list_rules import unscale_at_once
from .._ops.create.constants import full
from .._ops.tensor.loss_scale import adapt_loss_scale
from ..autograd.grad_mode import no_grad

__all__ = ["GradScaler", "OptState"]


class OptState(Enum):
    """How far an optimizer has come since the last update of the scale."""

    READY = 0
    UNSCALED = 1
    STEPPED = 2


def _refresh_per_optimizer_state() -> dict[str, Any]:
    return {"stage": OptState.READY, "found_inf_per_device": {}}


class GradScaler:
    """Scales losses, unscales gradients, and skips the steps whose gradients overflowed.

    The scale grows by `growth_factor` after `growth_interval` steps in a row without an overflow, and shrinks by
    `backoff_factor` after each step with one.

    >>> weight = flambeau.ones(1, requires_grad=True)
    >>> optimizer = flambeau.optim.SGD([weight], lr=0.5)
    >>> scaler = flambeau.amp.GradScaler("cpu", init_scale=1024.0)
    >>> scaler.scale(weight * 0.5).backward()
    >>> scaler.step(optimizer)
    >>> scaler.update()
    >>> weight
    tensor([0.7500], requires_grad=True)

    Args:
        device (str): the type of device. Default: `"cuda"`.
        init_scale (float): the first factor of losses. Default: `65536.0`.
        growth_factor (float): by what the factor grows after `growth_interval` steps without overflow. Default: `2.0`.
        backoff_factor (float): by what it shrinks after an overflow. Default: `0.5`.
        growth_interval (int): after how many good steps it grows. Default: `2000`.
        enabled (bool): whether it does anything. Default: `True`.
    """

    def __init__(
        self,
        device: str = "cuda",
        init_scale: float = 2.0**16,
        growth_factor: float = 2.0,
        backoff_factor: float = 0.5,
        growth_interval: int = 2000,
        enabled: bool = True,
    ) -> None:
        self._device = device
        self._enabled = enabled
        if device == "cuda" and enabled and not SLOTS.cuda_is_present():
            warnings.warn("torch.cuda.amp.GradScaler is enabled, but CUDA is not available.  Disabling.", stacklevel=2)
            self._enabled = False
        if self._enabled:
            assert growth_factor > 1.0, f"The growth factor must be > 1.0, it is {growth_factor}."
            assert backoff_factor < 1.0, f"The backoff factor must be < 1.0, it is {backoff_factor}."
            self._init_scale = init_scale
            self._scale: Tensor | None = None  # a tensor, so that steps need not wait for the device
            self._growth_factor = growth_factor
            self._backoff_factor = backoff_factor
            self._growth_interval = growth_interval
            self._init_growth_tracker = 0
            self._growth_tracker: Tensor | None = None
            self._per_optimizer_states: dict[int, dict[str, Any]] = defaultdict(_refresh_per_optimizer_state)

    # ----- scale ------------------------------------------------------------------------------------------------

    def scale(self, outputs: Any) -> Any:
        """Multiply a loss, or each of a list of them, by the scale."""
        if not self._enabled:
            return outputs
        if isinstance(outputs, Tensor):
            if self._scale is None:
                self._lazy_init_scale_growth_tracker(outputs.device)
            assert self._scale is not None
            return outputs * self._scale.to(outputs.device, non_blocking=True)
        if isinstance(outputs, Iterable):
            scaled = map(self.scale, outputs)
            return type(outputs)(scaled) if isinstance(outputs, (list, tuple)) else scaled
        raise ValueError(f"outputs must be a Tensor or an iterable of Tensors, not {type(outputs).__name__}")

    def _lazy_init_scale_growth_tracker(self, dev: Any) -> None:
        assert self._growth_tracker is None, "_growth_tracker initialized before _scale"
        self._scale = full((), self._init_scale, dtype=float32, device=dev)
        self._growth_tracker = full((), self._init_growth_tracker, dtype=int32, device=dev)

    def _check_scale_growth_tracker(self, funcname: str) -> tuple[Tensor, Tensor]:
        fix = "This may indicate your script did not use scaler.scale(loss or outputs) earlier in the iteration."
        assert self._scale is not None, f"Attempted {funcname} but _scale is None.  {fix}"
        assert self._growth_tracker is not None, f"Attempted {funcname} but _growth_tracker is None.  {fix}"
        return self._scale, self._growth_tracker

    # ----- unscale ----------------------------------------------------------------------------------------------

    def unscale_(self, optimizer: Any) -> None:
        """Divide the gradients of an optimizer's parameters by the scale, to look at them or to clip them.

        `step` does it otherwise. Call it once for each optimizer and step, when the gradients are complete.
        """
        if not self._enabled:
            return
        self._check_scale_growth_tracker("unscale_")
        state = self._per_optimizer_states[id(optimizer)]
        if state["stage"] is OptState.UNSCALED:
            raise RuntimeError("unscale_() has already been called on this optimizer since the last update().")
        if state["stage"] is OptState.STEPPED:
            raise RuntimeError("unscale_() is being called after step().")
        assert self._scale is not None
        inverse = self._scale.double().reciprocal().float()
        none_found = full((), 0.0, dtype=float32, device=self._scale.device)
        state["found_inf_per_device"] = self._unscale_grads_(optimizer, inverse, none_found, False)
        state["stage"] = OptState.UNSCALED

    def _unscale_grads_(
        self, optimizer: Any, inv_scale: Tensor, found_inf: Tensor, allow_fp16: bool
    ) -> dict[Any, Tensor]:
        """Multiply all gradients by `inv_scale`; for each device 1.0 if one of them was not finite, else 0.0."""
        found: dict[Any, Tensor] = {}
        alike: dict[Any, list[Tensor]] = {}
        with no_grad():
            for group in optimizer.param_groups:
                for param in group["params"]:
                    if param.grad is None:
                        continue
                    if not allow_fp16 and param.grad.dtype is float16:
                        raise ValueError("Attempting to unscale FP16 gradients.")
                    values = _values_of(param)
                    alike.setdefault(values._kind, []).append(values)
            for gradients in alike.values():
                place = gradients[0].device
                if place not in found:
                    found[place] = found_inf.to(place, copy=True)
                inverse, seen = inv_scale.to(place), found[place]
                if not unscale_at_once(gradients, inverse, seen):
                    for values in gradients:
                        seen.logical_or_(_whole(values.isfinite().all().logical_not()))
                        values.mul_(inverse)
        return found

    # ----- step -------------------------------------------------------------------------------------------------

    def step(self, optimizer: Any, *args: Any, **kwargs: Any) -> Any:
        """Unscale the gradients, unless that was done, and call `optimizer.step` if all of them are finite.

        Returns what `optimizer.step` returns.
        """
        if not self._enabled:
            return optimizer.step(*args, **kwargs)
        if "closure" in kwargs:
            raise RuntimeError("Closure use is not currently supported if GradScaler is enabled.")
        self._check_scale_growth_tracker("step")
        state = self._per_optimizer_states[id(optimizer)]
        if state["stage"] is OptState.STEPPED:
            raise RuntimeError("step() has already been called since the last update().")
        if getattr(optimizer, "_step_supports_amp_scaling", False):
            result = self._step_of_scaling_optimizer(optimizer, state, args, kwargs)
        else:
            if state["stage"] is OptState.READY:
                self.unscale_(optimizer)
            assert len(state["found_inf_per_device"]) > 0, "No inf checks were recorded for this optimizer."
            result = self._maybe_opt_step(optimizer, state, *args, **kwargs)
        state["stage"] = OptState.STEPPED
        return result

    def _maybe_opt_step(self, optimizer: Any, optimizer_state: dict[str, Any], *args: Any, **kwargs: Any) -> Any:
        if any(found.item() for found in optimizer_state["found_inf_per_device"].values()):
            return None
        return optimizer.step(*args, **kwargs)

    def _step_of_scaling_optimizer(
        self, optimizer: Any, state: dict[str, Any], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        """The step of an optimizer that unscales and skips by itself: it is told the scale and what was found."""
        if _takes_scaler(optimizer.step):
            warnings.warn(
                "GradScaler is going to stop passing itself as a keyword argument to the passed optimizer. In the near "
                "future GradScaler registers `grad_scale: Tensor` and `found_inf: Tensor` to the passed optimizer and "
                "let the optimizer use them directly.",
                FutureWarning,
                stacklevel=3,
            )
            return optimizer.step(*args, **kwargs, grad_scaler=self)
        if state["stage"] is OptState.READY:
            self._check_inf_per_device(optimizer)
        scaler = self._get_scale_async()
        assert scaler is not None
        found = [each.to(scaler.device, non_blocking=True) for each in state["found_inf_per_device"].values()]
        unscaled = state["stage"] is OptState.UNSCALED
        optimizer.grad_scale = None if unscaled else scaler * getattr(optimizer, "grad_scale", 1)
        optimizer.found_inf = sum(found[1:], found[0])
        result = optimizer.step(*args, **kwargs)
        del optimizer.grad_scale
        del optimizer.found_inf
        return result

    # ----- update -----------------------------------------------------------------------------------------------

    def update(self, new_scale: float | Tensor | None = None) -> None:
        """Adapt the scale to what was found since the last update, or set it; call it after the steps."""
        if not self._enabled:
            return
        scale, tracker = self._check_scale_growth_tracker("update")
        if new_scale is not None:
            self._set_scale(scale, new_scale)
        else:
            found = [
                each.to(scale.device, non_blocking=True)
                for state in self._per_optimizer_states.values()
                for each in state["found_inf_per_device"].values()
            ]
            assert len(found) > 0, "No inf checks were recorded prior to update."
            numbers = self._growth_factor, self._backoff_factor, self._growth_interval
            adapt_loss_scale(scale, tracker, sum(found[1:], found[0]), *numbers)
        self._per_optimizer_states = defaultdict(_refresh_per_optimizer_state)

    def _set_scale(self, scale: Tensor, new_scale: float | Tensor) -> None:
        if isinstance(new_scale, float):
            scale.fill_(new_scale)
            return
        reason = "new_scale should be a float or a 1-element torch.cuda.FloatTensor or torch.FloatTensor with "
        assert isinstance(new_scale, Tensor), reason + f"requires_grad=False, not {type(new_scale).__name__}."
        assert new_scale.device.type == self._device, reason + f"requires_grad=False, on {self._device}."
        assert new_scale.numel() == 1, reason + f"requires_grad=False, not of shape {list(new_scale.shape)}."
        assert new_scale.requires_grad is False, reason + "requires_grad=False."
        scale.copy_(new_scale)

    # ----- settings ---------------------------------------------------------------------------------------------

    def _get_scale_async(self) -> Tensor | None:
        return self._scale

    def get_scale(self) -> float:
        """The scale; 1.0 if the scaler is disabled."""
        if not self._enabled:
            return 1.0
        scale = self._get_scale_async()
        return self._init_scale if scale is None else cast(float, scale.item())

    def get_growth_factor(self) -> float:
        """The factor by which the scale grows."""
        return self._growth_factor

    def set_growth_factor(self, new_factor: float) -> None:
        """Choose the factor by which the scale grows."""
        self._growth_factor = new_factor

    def get_backoff_factor(self) -> float:
        """The factor by which the scale shrinks."""
        return self._backoff_factor

    def set_backoff_factor(self, new_factor: float) -> None:
        """Choose the factor by which the scale shrinks."""
        self._backoff_factor = new_factor

    def get_growth_interval(self) -> int:
        """After how many steps without an overflow the scale grows."""
        return self._growth_interval

    def set_growth_interval(self, new_interval: int) -> None:
        """Choose after how many steps without an overflow the scale grows."""
        self._growth_interval = new_interval

    def _get_growth_tracker(self) -> int:
        """How many steps without an overflow there were in a row."""
        if not self._enabled:
            return 0
        return self._init_growth_tracker if self._growth_tracker is None else cast(int, self._growth_tracker.item())

    def is_enabled(self) -> bool:
        """Whether the scaler does anything."""
        return self._enabled

    # ----- state ------------------------------------------------------------------------------------------------

    def state_dict(self) -> dict[str, Any]:
        """What a later run needs to go on; empty if the scaler is disabled. Call it after `update`."""
        if not self._enabled:
            return {}
        return {
            "scale": self.get_scale(),
            "growth_factor": self._growth_factor,
            "backoff_factor": self._backoff_factor,
            "growth_interval": self._growth_interval,
            "_growth_tracker": self._get_growth_tracker(),
        }

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take on the state of another scaler; a disabled scaler ignores it."""
        if not self._enabled:
            return
        if len(state_dict) == 0:
            raise RuntimeError(
                "The source state dict is empty, possibly because it was saved from a disabled instance of GradScaler."
            )
        self._init_scale = cast(float, state_dict["scale"])
        if self._scale is not None:
            self._scale.fill_(state_dict["scale"])
        self._growth_factor = cast(float, state_dict["growth_factor"])
        self._backoff_factor = cast(float, state_dict["backoff_factor"])
        self._growth_interval = cast(int, state_dict["growth_interval"])
        self._init_growth_tracker = cast(int, state_dict["_growth_tracker"])
        if self._growth_tracker is not None:
            self._growth_tracker.fill_(state_dict["_growth_tracker"])

    def __getstate__(self) -> dict[str, Any]:
        state = vars(self).copy()
        if self._enabled:
            assert len(self._per_optimizer_states) == 0, (
                "A GradScaler instance may only be pickled at the beginning of an iteration, or at the end after "
                "scaler.update()."
            )
            state["_init_scale"] = self.get_scale()
            state["_init_growth_tracker"] = self._get_growth_tracker()
            state["_scale"] = state["_growth_tracker"] = None
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)

    def _check_inf_per_device(self, optimizer: Any) -> dict[Any, Tensor]:
        scale, _ = self._check_scale_growth_tracker("_check_inf_per_device")
        one = full((), 1.0, dtype=float32, device=scale.device)
        none_found = full((), 0.0, dtype=float32, device=scale.device)
        found = self._unscale_grads_(optimizer, one, none_found, True)
        self._per_optimizer_states[id(optimizer)]["found_inf_per_device"] = found
        return found

    def _found_inf_per_device(self, optimizer: Any) -> dict[Any, Tensor]:
        return cast("dict[Any, Tensor]", self._per_optimizer_states[id(optimizer)]["found_inf_per_device"])


def _takes_scaler(step: Any) -> bool:
    """Whether a function has a parameter `grad_scaler`: its signature costs more than all else that a step asks."""
    code = getattr(inspect.unwrap(getattr(step, "__func__", step)), "__code__", None)
    if code is None:
        return "grad_scaler" in inspect.signature(step).parameters
    return "grad_scaler" in code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]


def _whole(answer: Any) -> Tensor:
    """What all processes agree on, where each has a part of the gradients."""
    found: Tensor = answer.full_tensor() if hasattr(answer, "full_tensor") else answer
    return found


def _values_of(param: Any) -> Any:
    """The elements of a parameter's gradient; of a sparse one in half precision its duplicates are added first."""
    gradient = param.grad
    if not gradient.is_sparse:
        return gradient
    if gradient.dtype is float16:
        gradient = param.grad = gradient.coalesce()
    return gradient._values()
