"""`Optimizer`: parameter groups, per-parameter state, hooks, and the state dictionary that PyTorch can load too."""

from __future__ import annotations

import functools
import warnings
from collections import OrderedDict, defaultdict
from collections.abc import Callable, Iterable, Mapping
from copy import deepcopy
from itertools import chain
from typing import Any, ClassVar, TypeAlias, TypeVar, cast, overload

from .._core.dtype import dtype, float32, float64, get_default_dtype
from .._core.hooks import RemovableHandle
from .._core.tensor import Tensor
from .._core.text.memory_errors import out_of_memory
from .._dispatch.interpreter import RUN_OUTSIDE, runner_outside
from ..autograd.grad_mode import enable_grad, no_grad, set_grad_enabled
from ._options import kept, run_on

__all__ = ["Optimizer", "register_optimizer_step_post_hook", "register_optimizer_step_pre_hook"]

Group = dict[str, Any]
StateDict = dict[str, Any]
ParamsT = Iterable[Tensor] | Iterable[Group] | Iterable[tuple[str, Tensor]]
Closure = Callable[[], Any]
Loss = TypeVar("Loss")
Hooks = OrderedDict[int, Callable[..., Any]]
Step = TypeVar("Step", bound=Callable[..., Any])

_global_optimizer_pre_hooks: Hooks = OrderedDict()
_global_optimizer_post_hooks: Hooks = OrderedDict()


class _RequiredParameter:
    """Stands in `defaults` for an option that every parameter group must give."""

    def __repr__(self) -> str:
        return "<required parameter>"


required = _RequiredParameter()


def register_optimizer_step_pre_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Call `hook(optimizer, args, kwargs)` before each step of every optimizer; it may return other arguments."""
    return RemovableHandle(_global_optimizer_pre_hooks, hook)


def register_optimizer_step_post_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Call `hook(optimizer, args, kwargs)` after each step of every optimizer."""
    return RemovableHandle(_global_optimizer_post_hooks, hook)


class Optimizer:
    """What all optimizers share. A subclass defines `step`.

    `params` are tensors, pairs of a name and a tensor, or dictionaries that describe groups of them with options of
    their own; `defaults` are the options of groups that do not say otherwise.

    Args:
        params (iterable of Tensors or dicts): the parameters to optimise, or dicts of parameter groups with options of
            their own.
        defaults (dict): the options of groups that do not name them.

    Raises:
        ValueError: there are no parameters.

    Example:
        >>> class Descent(torch.optim.Optimizer):
        ...     def __init__(self, params, lr):
        ...         super().__init__(params, {"lr": lr})
        ...     @torch.no_grad()
        ...     def step(self, closure=None):
        ...         for group in self.param_groups:
        ...             for param in group["params"]:
        ...                 param -= group["lr"] * param.grad
        >>> weight = torch.tensor([4.0], requires_grad=True)
        >>> optimizer = Descent([weight], lr=0.25)
        >>> (weight**2).sum().backward()
        >>> optimizer.step()
        >>> weight
        tensor([2.], requires_grad=True)
    """

    _HOOKS = (
        "step_pre",
        "step_post",
        "state_dict_pre",
        "state_dict_post",
        "load_state_dict_pre",
        "load_state_dict_post",
    )
    OptimizerPreHook: TypeAlias = Callable[[Any, tuple[Any, ...], dict[str, Any]], Any]
    OptimizerPostHook: TypeAlias = Callable[[Any, tuple[Any, ...], dict[str, Any]], None]
    _optimizer_step_pre_hooks: Hooks
    _optimizer_step_post_hooks: Hooks
    _optimizer_state_dict_pre_hooks: Hooks
    _optimizer_state_dict_post_hooks: Hooks
    _optimizer_load_state_dict_pre_hooks: Hooks
    _optimizer_load_state_dict_post_hooks: Hooks
    _can_prepare_step = False
    """Whether nothing but the learning rate and the step count changes the rule of this class, subclasses apart."""
    state: defaultdict[Any, Any]
    param_groups: list[Group]

    def __init__(self, params: ParamsT, defaults: dict[str, Any]) -> None:
        self.defaults = defaults
        self._prepare_hooks()
        if isinstance(params, Tensor):
            raise TypeError(
                "params argument given to the optimizer should be an iterable of Tensors or dicts, but got "
                f"{type(params).__name__}. One tensor goes in a list: [tensor]"
            )
        self.state = defaultdict(dict)
        self.param_groups = []
        groups: list[Any] = list(params)
        if not groups:
            raise ValueError("optimizer got an empty parameter list")
        if not isinstance(groups[0], dict):
            groups = [{"params": groups}]
        for group in groups:
            self.add_param_group(group)

    def _prepare_hooks(self) -> None:
        for name in self._HOOKS:
            vars(self).setdefault(f"_optimizer_{name}_hooks", OrderedDict())
        self._patch_step_function()

    def _patch_step_function(self) -> None:
        """Make the class's `step` heed hooks; subclasses write it without a thought of them."""
        cls: Any = type(self)
        if not getattr(cls.step, "hooked", False):
            cls.step = self.profile_hook_step(cls.step)
            cls.step.hooked = True

    @staticmethod
    def profile_hook_step(func: Step) -> Step:
        """`func`, a `step`, with the hooks around it."""

        @functools.wraps(func)
        def step(*args: Any, **kwargs: Any) -> Any:
            self: Optimizer = args[0]
            if (run := runner_outside()) is not None:
                return run(step, args, kwargs)
            if _global_optimizer_pre_hooks or self._optimizer_step_pre_hooks:
                before = chain(_global_optimizer_pre_hooks.values(), self._optimizer_step_pre_hooks.values())
                for hook in list(before):
                    changed = hook(self, args, kwargs)
                    if changed is None:
                        continue
                    if not (isinstance(changed, tuple) and len(changed) == 2):
                        raise RuntimeError(
                            f"{func} must return None or a tuple of (new_args, new_kwargs), but got {changed}: that "
                            "is what a step pre-hook may return"
                        )
                    args, kwargs = changed
            try:
                result = func(*args, **kwargs)
            except MemoryError as error:
                raise out_of_memory(error) from None
            if self._optimizer_step_post_hooks or _global_optimizer_post_hooks:
                after = chain(self._optimizer_step_post_hooks.values(), _global_optimizer_post_hooks.values())
                for hook in list(after):
                    hook(self, args, kwargs)
            return result

        if func is GroupOptimizer.step:
            vars(step)["prepare"] = functools.partial(_prepared, step)
        return cast(Step, step)

    def _has_no_step_hooks(self) -> bool:
        """Whether nobody wants to hear of steps."""
        own = self._optimizer_step_pre_hooks or self._optimizer_step_post_hooks
        return not (own or _global_optimizer_pre_hooks or _global_optimizer_post_hooks)

    def __getstate__(self) -> dict[str, Any]:
        return {"defaults": self.defaults, "state": self.state, "param_groups": self.param_groups}

    def __setstate__(self, state: Mapping[str, Any]) -> None:
        vars(self).update(state)
        self._prepare_hooks()
        self.defaults.setdefault("differentiable", False)

    def __repr__(self) -> str:
        groups = []
        for number, group in enumerate(self.param_groups):
            options = [f"    {key}: {group[key]}\n" for key in sorted(group) if key != "params"]
            groups.append(f"\nParameter Group {number}\n{''.join(options)}")
        return f"{type(self).__name__} ({''.join(groups)})"

    # ----- hooks ------------------------------------------------------------------------------------------------

    def register_step_pre_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Call `hook(optimizer, args, kwargs)` before each step; it may return other `(args, kwargs)`."""
        return RemovableHandle(self._optimizer_step_pre_hooks, hook)

    def register_step_post_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Call `hook(optimizer, args, kwargs)` after each step."""
        return RemovableHandle(self._optimizer_step_post_hooks, hook)

    def register_state_dict_pre_hook(self, hook: Callable[..., Any], prepend: bool = False) -> RemovableHandle:
        """Call `hook(optimizer)` before `state_dict` collects."""
        return RemovableHandle(self._optimizer_state_dict_pre_hooks, hook, prepend=prepend)

    def register_state_dict_post_hook(self, hook: Callable[..., Any], prepend: bool = False) -> RemovableHandle:
        """Call `hook(optimizer, state_dict)` with what `state_dict` is about to return; it may return another."""
        return RemovableHandle(self._optimizer_state_dict_post_hooks, hook, prepend=prepend)

    def register_load_state_dict_pre_hook(self, hook: Callable[..., Any], prepend: bool = False) -> RemovableHandle:
        """Call `hook(optimizer, state_dict)` with a shallow copy of what is to be loaded; it may return another."""
        return RemovableHandle(self._optimizer_load_state_dict_pre_hooks, hook, prepend=prepend)

    def register_load_state_dict_post_hook(self, hook: Callable[..., Any], prepend: bool = False) -> RemovableHandle:
        """Call `hook(optimizer)` after `load_state_dict`."""
        return RemovableHandle(self._optimizer_load_state_dict_post_hooks, hook, prepend=prepend)

    # ----- the state dictionary ---------------------------------------------------------------------------------

    def state_dict(self) -> StateDict:
        """The state and the options of all groups; numbers stand for the parameters."""
        for hook in self._optimizer_state_dict_pre_hooks.values():
            hook(self)
        numbers: dict[int, int] = {}
        for position, param in enumerate(chain.from_iterable(group["params"] for group in self.param_groups)):
            numbers.setdefault(id(param), position)
        groups = []
        for group in self.param_groups:
            packed = {key: value for key, value in group.items() if key != "params"}
            packed["params"] = [numbers[id(param)] for param in group["params"]]
            groups.append(packed)
        state = {numbers[id(key)] if isinstance(key, Tensor) else key: value for key, value in self.state.items()}
        result: StateDict = {"state": state, "param_groups": groups}
        for hook in self._optimizer_state_dict_post_hooks.values():
            changed = hook(self, result)
            if changed is not None:
                result = changed
        return result

    def load_state_dict(self, state_dict: StateDict) -> None:
        """Take on the state and the options of `state_dict`; its groups must be as large as those here."""
        state_dict = state_dict.copy()
        for hook in self._optimizer_load_state_dict_pre_hooks.values():
            changed = hook(self, state_dict)
            if changed is not None:
                state_dict = changed
        saved: list[Group] = deepcopy(state_dict["param_groups"])
        self._check_sizes(saved)
        owners: dict[Any, tuple[Tensor, Group]] = {}
        for group, loaded in zip(self.param_groups, saved, strict=True):
            for number, param in zip(loaded["params"], group["params"], strict=True):
                owners[number] = param, loaded
        state: defaultdict[Any, Any] = defaultdict(dict)
        for key, value in state_dict["state"].items():
            if key in owners:
                param, group = owners[key]
                state[param] = _fitted(value, param, bool(group.get("capturable") or group.get("fused")))
            else:
                state[key] = value
        for group, loaded in zip(self.param_groups, saved, strict=True):
            loaded["params"] = group["params"]
            if "param_names" in group:
                loaded.setdefault("param_names", group["param_names"])
        self.__setstate__({"state": state, "param_groups": saved})
        for hook in self._optimizer_load_state_dict_post_hooks.values():
            hook(self)

    def _check_sizes(self, saved: list[Group]) -> None:
        if len(saved) != len(self.param_groups):
            raise ValueError(
                "loaded state dict has a different number of parameter groups: "
                f"{len(saved)}, and the optimizer has {len(self.param_groups)}"
            )
        for number, (group, loaded) in enumerate(zip(self.param_groups, saved, strict=True)):
            if len(loaded["params"]) != len(group["params"]):
                raise ValueError(
                    "loaded state dict contains a parameter group that doesn't match the size of optimizer's group: "
                    f"group {number} has {len(loaded['params'])} parameters there and {len(group['params'])} here"
                )

    # ----- parameters -------------------------------------------------------------------------------------------

    def add_param_group(self, param_group: Group) -> None:
        """Optimize further parameters: those of `param_group["params"]`, with the options beside them."""
        if not isinstance(param_group, dict):
            raise TypeError(f"param_group must be a dict, but got {type(param_group)}")
        given = param_group["params"]
        if isinstance(given, set):
            raise TypeError(
                "optimizer parameters need to be organized in ordered collections: a set has another order in every "
                "run, and a state dictionary would not fit. Use a list"
            )
        items = [given] if isinstance(given, Tensor) else list(given)
        params = [item[1] if isinstance(item, tuple) else item for item in items]
        names = [item[0] for item in items if isinstance(item, tuple)]
        if names and len(names) != len(items):
            raise ValueError("all optimizer params should be with/without names. Some param names are missing")
        param_group["params"] = params
        if names:
            param_group["param_names"] = names
        for position, param in enumerate(params):
            if not isinstance(param, Tensor):
                raise TypeError(
                    f"optimizer can only optimize Tensors, but one of the params is {type(param).__name__} "
                    f"(number {position})"
                )
            if not self.defaults.get("differentiable") and not (param.is_leaf or param.retains_grad):
                raise ValueError(
                    f"can't optimize a non-leaf Tensor: number {position}, of shape {list(param.shape)}, is the result "
                    "of an operation"
                )
        for name, default in self.defaults.items():
            if default is required and name not in param_group:
                raise ValueError(f"parameter group didn't specify a value of required optimization parameter {name}")
            param_group.setdefault(name, default)
        self._check_new_group(param_group)
        self.param_groups.append(param_group)

    def _check_new_group(self, param_group: Group) -> None:
        here = {id(param) for param in param_group["params"]}
        if len(here) != len(param_group["params"]):
            warnings.warn(
                "optimizer contains a parameter group with duplicate parameters; in future, this will cause an error",
                stacklevel=4,
            )
        named = "param_names" in param_group
        for group in self.param_groups:
            if ("param_names" in group) != named:
                raise ValueError(
                    "all optimizer param groups should be with/without names. cannot add param group "
                    f"{'with' if named else 'without'} names to the optimizer"
                )
            if not here.isdisjoint(map(id, group["params"])):
                raise ValueError("some parameters appear in more than one parameter group")

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Forget the gradients of all parameters, or fill them with zeros."""
        if (run := runner_outside()) is not None:
            run(self.zero_grad, (set_to_none,), {})
            return
        for group in self.param_groups:
            for param in group["params"]:
                grad = param._grad
                if grad is None:
                    continue
                if set_to_none:
                    param._grad = None
                elif grad.grad_fn is not None:
                    grad.detach_().zero_()
                else:
                    grad.requires_grad_(False).zero_()

    @overload
    def step(self, closure: None = None) -> None: ...

    @overload
    def step(self, closure: Callable[[], Loss]) -> Loss: ...

    def step(self, closure: Closure | None = None) -> Any:
        """Update the parameters. `closure` computes the loss anew and returns it."""
        raise NotImplementedError


RUN_OUTSIDE.append(Optimizer)


def _prepared(step: Step, *args: Any, **kwargs: Any) -> Callable[[], Any] | None:
    """What a program may call in place of a step with these arguments; None: nothing else."""
    from ._prepared import prepared_step  # late: most optimizers never need it

    return prepared_step(step, *args, **kwargs)


def _fitted(value: Any, param: Tensor, step_follows: bool, key: Any = None) -> Any:
    """A loaded piece of state: on the device of its parameter, and floats in its dtype. Steps keep their dtype."""
    if isinstance(value, Tensor):
        if key == "step":
            return value.to(dtype=float32, device=param.device) if step_follows else value
        if param.is_floating_point():
            return value.to(dtype=param.dtype, device=param.device)
        return value.to(device=param.device)
    if isinstance(value, dict):
        return {name: _fitted(each, param, step_follows, name) for name, each in value.items()}
    if isinstance(value, Iterable):
        return type(value)(_fitted(each, param, step_follows) for each in value)  # type: ignore[call-arg]  # a list or the like
    return value


class GroupOptimizer(Optimizer):
    """An optimizer that updates one parameter group after the other; a subclass says how, in `_update`.

    Args:
        params (iterable of Tensors or dicts): the parameters to optimise, or dicts of parameter groups with options of
            their own.
        lr (float or Tensor): the learning rate: the factor of every update. Default: `0.001`.
        betas (tuple[float, float]): how much of the running averages of the gradient and of its square is kept at each
            step. Default: `(0.9, 0.999)`.
        eps (float): a small number that is added to the denominator, so that it is never zero. Default: `1e-08`.
        weight_decay (float): the factor of the L2 penalty: `weight_decay * parameter` is added to the gradient.
            Default: `0`.
        foreach (bool, optional): whether to update all parameters of a group together; both give the same numbers, and
            None chooses.
        maximize (bool): whether to climb: the gradient's sign is turned. Default: `False`.
        capturable (bool): whether the step may be recorded in a CUDA graph; its counter then lies on the device.
            Default: `False`.
        differentiable (bool): whether autograd records the step itself, for learning to optimise. Default: `False`.
        fused (bool, optional): whether one kernel does the whole update; both give the same numbers, and None chooses.

    Raises:
        ValueError: there are no parameters, or an option has no meaning, as a negative learning rate.
    """

    _ADDED_OPTIONS: ClassVar[dict[str, Any]] = {"foreach": None, "maximize": False, "differentiable": False}
    """Options that old checkpoints may lack."""

    _NUMBERS: ClassVar[tuple[str, ...]] = ("step",)
    """State that is a 0-dimensional tensor, and was a number in old checkpoints."""

    _step_supports_amp_scaling: bool

    def __setstate__(self, state: Mapping[str, Any]) -> None:
        super().__setstate__(state)
        for group in self.param_groups:
            for name, value in self._ADDED_OPTIONS.items():
                group.setdefault(name, value)
            for param in group["params"]:
                known = self.state.get(param)
                for name in self._NUMBERS:
                    if known and name in known and not isinstance(known[name], Tensor):
                        known[name] = scalar(float(known[name]), param, group)

    @overload
    def step(self, closure: None = None) -> None: ...

    @overload
    def step(self, closure: Callable[[], Loss]) -> Loss: ...

    def step(self, closure: Closure | None = None) -> Any:
        """Update the parameters that have gradients. `closure` computes the loss anew and returns it."""
        loss = None
        # Contexts that change nothing before they are entered: an interrupt in between leaves gradients on.
        with enable_grad() if self.defaults.get("differentiable") else no_grad():
            if closure is not None:
                with enable_grad():
                    loss = closure()
            for group in self.param_groups:
                self._update(group)
        return loss

    def _update(self, group: Group) -> None:
        raise NotImplementedError

    def _run(self, function: Callable[..., None], group: Group) -> None:
        """Update a group by a function of lists: parameters, gradients and the state that `_STATE` names."""
        params, grads, states = self._gather(group)
        run_on(function, group, params, grads, *kept(states, *self._STATE))

    _STATE: ClassVar[tuple[str, ...]] = ()
    """The names of a parameter's state, in the order in which the function of lists has them."""

    def _initial_state(self, param: Tensor, group: Group) -> dict[str, Any]:
        """What is kept for a parameter, before its first update: a step of zero, and zeros in the parameter's form."""
        step = {"step": scalar(0.0, param, group)} if "step" in self._STATE else {}
        return step | {name: zeros_of(param) for name in self._STATE if name != "step"}

    def _gather(self, group: Group) -> tuple[list[Tensor], list[Tensor], list[dict[str, Any]]]:
        """The parameters of a group that have gradients, those gradients, and their states."""
        params: list[Tensor] = []
        grads: list[Tensor] = []
        states: list[dict[str, Any]] = []
        every_state = self.state
        fused = group.get("fused")
        for param in group["params"]:
            grad = param.grad
            if grad is not None:
                if grad.is_sparse and not self._TAKES_SPARSE:
                    raise RuntimeError(f"{type(self).__name__} does not support sparse gradients{self._SPARSE_ADVICE}")
                if fused:
                    check_fused(param)
                state = every_state[param]
                if not state:
                    state.update(self._initial_state(param, group))
                params.append(param)
                grads.append(grad)
                states.append(state)
        return params, grads, states

    _SPARSE_ADVICE: ClassVar[str] = ""
    _TAKES_SPARSE: ClassVar[bool] = False

    def _allow_fused(self, fused: bool | None, foreach: bool | None, differentiable: bool) -> None:
        """Refuse what `fused=True` cannot be combined with."""
        if fused:
            if differentiable:
                raise RuntimeError("`fused` does not support `differentiable`")
            if foreach:
                raise RuntimeError("`fused` and `foreach` cannot be `True` together.")
            self._step_supports_amp_scaling = True


def check_fused(param: Tensor) -> None:
    """Refuse a parameter that `fused=True` is not for."""
    if not param.is_floating_point():
        raise RuntimeError(
            "`fused=True` requires all the params to be floating point Tensors of supported devices: ['cpu', 'cuda'] "
            f"but {param.dtype} and {param.device.type}"
        )


def scalar_dtype(fused: bool | None = None) -> dtype:
    """The dtype of steps and other numbers in the state."""
    return float64 if not fused and get_default_dtype() is float64 else float32


def scalar(value: float, param: Tensor, group: Group) -> Tensor:
    """A number of a parameter's state, as a tensor: beside the parameter if a step may not look at its value."""
    from .._ops.create.constants import tensor

    fused = group.get("fused")
    place = param.device if group.get("capturable") or fused else "cpu"
    return tensor(value, dtype=scalar_dtype(fused), device=place)


def zeros_of(param: Tensor) -> Tensor:
    """Zeros in the form of a parameter: the beginning of most averages."""
    from .._ops.create.like import zeros_like

    return zeros_like(param)


def check_lr(lr: float | Tensor, phrase: str = "Invalid learning rate: {}") -> None:
    """Refuse a learning rate that is negative, or a tensor of several."""
    if isinstance(lr, Tensor) and lr.numel() != 1:
        raise ValueError(f"Tensor lr must be 1-element, it has shape {list(lr.shape)}")
    if not lr >= 0.0:
        raise ValueError(phrase.format(lr))


def check_betas(betas: tuple[Any, Any]) -> None:
    """Refuse decay rates outside of [0, 1)."""
    for index in range(2):
        beta = betas[index]
        if not 0.0 <= beta < 1.0:
            raise ValueError(f"Invalid beta parameter at index {index}: {beta}")


def check_not_negative(**options: float | Tensor) -> None:
    """Refuse negative options; `eps` is called epsilon in the message."""
    for name, value in options.items():
        if not value >= 0.0:
            raise ValueError(f"Invalid {'epsilon' if name == 'eps' else name} value: {value}")


def _get_value(x: Any) -> Any:
    """A step or a learning rate as a number."""
    return x.item() if isinstance(x, Tensor) else x


def _stack_if_compiling(x: Any) -> Any:
    """A list as it is: nothing is being compiled."""
    return x


def _default_to_fused_or_foreach(
    params: list[Tensor], differentiable: bool, use_fused: bool = False
) -> tuple[bool, bool]:
    """Whether a step is fused, and whether it runs over lists, by PyTorch's rule: neither, on the CPU."""
    return False, False


def _view_as_real(params: list[Tensor], *state_and_grads: list[Tensor]) -> None:
    """Replace complex tensors in these lists by views of them as pairs of real numbers."""
    from .. import view_as_real

    for number, param in enumerate(params):
        if param.is_complex():
            params[number] = view_as_real(param)
            for each in state_and_grads:
                each[number] = view_as_real(each[number])


def _use_grad_for_differentiable(func: Callable[..., Any]) -> Callable[..., Any]:
    """Let a method `step` record derivatives if the optimizer's option `differentiable` says so, and none otherwise."""
    import functools

    @functools.wraps(func)
    def wrapped(self: Any, *args: Any, **kwargs: Any) -> Any:
        with set_grad_enabled(bool(self.defaults["differentiable"])):
            return func(self, *args, **kwargs)

    return wrapped


def _get_capturable_supported_devices(supports_xla: bool = True) -> list[str]:
    """The devices whose graphs can record a step: PyTorch's list, none of which is here."""
    return ["cuda", "xpu", "hpu", *(["xla"] if supports_xla else [])]


_foreach_doc = "foreach (bool, optional): PyTorch's choice of updating many tensors at once, which is always so here"
