"""Hooks of modules, beside PyTorch's, and the handles that take them off."""

from __future__ import annotations

import gc
import pickle
import weakref
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

import flambeau
from tests.support.differential import differential, outcome, warned


@differential
def test_forward_hooks(T: Any) -> Any:
    seen: list[Any] = []
    module = T.nn.Linear(2, 2, bias=False)
    with T.no_grad():
        module.weight.fill_(1.0)
    x = T.ones(1, 2)

    def note(word: str, result: Any = None) -> Callable[..., Any]:
        def hook(*args: Any) -> Any:
            seen.append((word, len(args), [type(each).__name__ for each in args[1:]]))
            return result

        return hook

    module.register_forward_pre_hook(note("pre"))
    module.register_forward_pre_hook(note("pre first", x * 2), prepend=True)
    module.register_forward_pre_hook(lambda m, args, kwargs: (args, {**kwargs}), with_kwargs=True)
    first = module.register_forward_hook(note("post"))
    module.register_forward_hook(note("post first"), prepend=True)
    module.register_forward_hook(note("post with", T.zeros(1)), with_kwargs=True)
    results = [module(x)]
    first.remove()
    first.remove()
    results.append(module(x))
    with module.register_forward_hook(note("in a block", T.ones(3))):
        results.append(module(x))
    renamed = T.nn.Identity()
    renamed.register_forward_pre_hook(lambda m, a, k: (k.values(), {}), with_kwargs=True)
    results.append(renamed(anything=x))
    bad = T.nn.Identity()
    bad.register_forward_pre_hook(lambda m, a, k: 3, with_kwargs=True)
    return (
        seen,
        results,
        outcome(lambda: bad(1), "forward pre-hook must return None or a tuple of (new_args, new_kwargs)"),
    )


@differential
def test_always_called_hooks(T: Any) -> Any:
    seen: list[Any] = []

    class Failing(T.nn.Module):  # type: ignore[misc, name-defined]
        def forward(self, x: Any) -> Any:
            raise ValueError("forward failed")

    def boom(*args: Any) -> Any:
        raise KeyError("hook failed")

    module = Failing()
    module.register_forward_hook(lambda m, a, r: seen.append(("plain", r)))
    module.register_forward_hook(lambda m, a, r: seen.append(("always", r)), always_call=True)
    module.register_forward_hook(lambda m, a, k, r: seen.append((k, r)), always_call=True, with_kwargs=True)
    first = outcome(lambda: module(1), "forward failed")
    module.register_forward_hook(boom, always_call=True)
    second = warned(lambda: outcome(lambda: module(x=1)), "raised an exception that was silenced as another error")
    fine = T.nn.Identity()
    fine.register_forward_hook(boom, always_call=True)
    return first, second, seen, outcome(lambda: fine(1), "hook failed")


@differential
def test_global_hooks(T: Any) -> Any:
    seen: list[Any] = []
    space = T.nn.modules.module
    model = T.nn.Sequential(T.nn.Linear(2, 2), T.nn.Tanh())
    model[1].register_forward_hook(lambda m, a, r: seen.append("own"))

    def note(word: str) -> Callable[..., None]:
        return lambda m, *rest: seen.append((word, type(m).__name__, len(rest)))

    handles = [
        space.register_module_forward_pre_hook(note("pre")),
        space.register_module_forward_hook(note("post")),
        space.register_module_forward_hook(note("post with"), with_kwargs=True),
        space.register_module_forward_hook(note("always"), always_call=True),
        space.register_module_full_backward_hook(note("backward")),
        space.register_module_full_backward_pre_hook(note("backward pre")),
    ]
    try:
        x = T.ones(1, 2, requires_grad=True)
        model(x).sum().backward()
        failed = outcome(lambda: model("text"))[0]
        mixed = outcome(
            lambda: space.register_module_backward_hook(note("no")), "Cannot use both regular backward hooks and full"
        )
    finally:
        for handle in handles:
            handle.remove()
        getattr(space, "_global_forward_hooks_with_kwargs", {}).clear()  # PyTorch's handle leaves its own there
    count = len(seen)
    model(T.ones(1, 2))
    return seen, failed, mixed, len(seen) - count


@differential
def test_full_backward_hooks(T: Any) -> Any:
    seen: list[Any] = []

    class Two(T.nn.Module):  # type: ignore[misc, name-defined]
        def forward(self, x: Any, number: Any, y: Any) -> Any:
            return x * y * number, x + y, "text"

    module = Two()
    module.register_full_backward_hook(lambda m, gi, go: seen.append(("hook", gi, go)))
    handle = module.register_full_backward_hook(lambda m, gi, go: (gi[0] * 10, None, gi[2]))
    module.register_full_backward_hook(lambda m, gi, go: seen.append(("first", gi)), prepend=True)
    module.register_full_backward_pre_hook(lambda m, go: (None if go[0] is None else go[0] * 2, go[1], None))
    x, y = T.ones(2, requires_grad=True), T.full((2,), 3.0, requires_grad=True)
    first, second, text = module(x, 2.0, y)
    name = first.grad_fn.name()
    (first.sum() + second.sum()).backward()
    gradients = x.grad.clone(), y.grad.clone()
    handle.remove()
    x.grad = None
    module(x, 2.0, T.ones(2))[1].sum().backward()
    return seen, gradients, x.grad, text, name


@differential
def test_full_backward_hooks_without_inputs_in_the_graph(T: Any) -> Any:
    seen: list[Any] = []
    module = T.nn.Linear(2, 2, bias=False)
    with T.no_grad():
        module.weight.fill_(1.0)
    module.register_full_backward_hook(lambda m, gi, go: seen.append((gi, go)))
    warning = warned(lambda: module(T.ones(1, 2)).sum().backward(), "Full backward hook is firing when gradients are")
    with T.no_grad():
        quiet = module(T.ones(1, 2))
    return seen, warning, quiet, module.weight.grad


@differential
def test_misused_backward_hooks(T: Any) -> Any:
    x = T.ones(1, 2, requires_grad=True)

    def run(register: Callable[[Any], Any], value: Any = None) -> Any:
        module = T.nn.Linear(2, 2)
        register(module)
        module(x if value is None else value).sum().backward()

    def output(value: Any) -> Any:
        module = T.nn.Identity()
        module.register_full_backward_hook(lambda *args: None)
        module(value)

    full = T.nn.Identity()
    full.register_full_backward_hook(lambda *args: None)
    legacy = T.nn.Identity()
    legacy.register_backward_hook(lambda *args: None)
    in_place = T.nn.ReLU(inplace=True)
    in_place.register_full_backward_hook(lambda *args: None)
    both = "Cannot use both regular backward hooks and full backward hooks on a single Module"
    three = (1, 2, 3)
    return (
        outcome(lambda: run(lambda m: m.register_full_backward_hook(lambda *a: three)), "got 3, but expected 1"),
        outcome(lambda: run(lambda m: m.register_full_backward_pre_hook(lambda *a: three)), "got 3, but expected 1"),
        outcome(
            lambda: run(lambda m: m.register_full_backward_hook(lambda *a: (x,)), T.ones(1, 2)),
            "should always return None or None for all gradients",
        ),
        outcome(lambda: full.register_backward_hook(lambda *a: None), both),
        outcome(lambda: legacy.register_full_backward_hook(lambda *a: None), both),
        warned(lambda: output({"a": x}), "module output should be a Tensor or a tuple of Tensors but received"),
        outcome(lambda: in_place(x * 1), "is a view and is being modified inplace"),
        outcome(lambda: full(x * 1).add_(1), "is a view and is being modified inplace"),
    )


@differential
def test_legacy_backward_hooks(T: Any) -> Any:
    seen: list[Any] = []
    x = T.ones(2, requires_grad=True)

    class Given(T.nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self, function: Callable[..., Any]) -> None:
            super().__init__()
            self.function = function
            self.register_backward_hook(lambda m, gi, go: seen.append((gi, go)))

        def forward(self, *args: Any) -> Any:
            return self.function(*args)

    single = Given(lambda a: a.exp())
    single(x).sum().backward()
    return (
        seen,
        warned(lambda: single(x))[1],
        warned(lambda: single(x * 1))[1],
        warned(lambda: Given(lambda a: (a * 2, a + 1))(x), "outputs are generated by different autograd Nodes"),
        warned(lambda: Given(lambda a: a.exp() * 2)(x), "the forward contains multiple autograd Nodes"),
        warned(lambda: Given(lambda a: [a * 2])(x), "does not return a single Tensor or a tuple of Tensors"),
        warned(lambda: Given(lambda a: a[0] * 2)([x]), "does not take as input a single Tensor or a tuple of Tensors"),
        warned(lambda: Given(lambda a: {"k": a})(x))[1],
    )


def hook_for_pickles(module: Any, args: Any, result: Any) -> Any:
    return result * 2


def test_handles_and_hooks_are_pickled() -> None:
    module = flambeau.nn.Identity()
    handle = module.register_forward_hook(hook_for_pickles, always_call=True)
    loaded, loaded_handle = pickle.loads(pickle.dumps((module, handle)))
    assert loaded(3) == 6
    loaded.register_forward_hook(hook_for_pickles)
    assert loaded(3) == 12  # a new hook takes no id that is in use
    loaded_handle.remove()
    assert loaded(3) == 6
    assert not loaded._forward_hooks_always_called
    assert module(3) == 6


def test_handles_hold_no_module() -> None:
    module = flambeau.nn.Identity()
    handle = module.register_forward_hook(hook_for_pickles)
    reference = weakref.ref(module)
    del module
    gc.collect()
    assert reference() is None
    handle.remove()


def test_a_handle_made_by_hand_finds_its_dictionary() -> None:
    hooks: OrderedDict[int, Any] = OrderedDict()
    extra: OrderedDict[int, Any] = OrderedDict()
    handle = flambeau.utils.hooks.RemovableHandle(hooks, extra_dict=extra)
    hooks[handle.id] = extra[handle.id] = True
    handle.remove()
    assert not hooks
    assert not extra
