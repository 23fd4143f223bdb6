"""Saved tensors: pack and unpack hooks by context and by saved tensor, `save_on_cpu`, disabling, lifetime, errors."""

from __future__ import annotations

import os
import tempfile
import threading
import uuid
from typing import Any

import pytest

import flambeau
from tests.support.differential import differential, outcome


def _leaf(T: Any, *values: float) -> Any:
    return T.tensor(list(values), requires_grad=True)


def _note(log: list[Any], entry: Any, result: Any) -> Any:
    """Write `entry` into the log and pass `result` on."""
    log.append(entry)
    return result


@differential
def test_hooks_see_each_saved_tensor(T: Any) -> Any:
    log: list[Any] = []

    def pack(tensor: Any) -> Any:
        log.append(("pack", tensor.tolist()))
        return tensor

    def unpack(packed: Any) -> Any:
        log.append(("unpack", packed.tolist()))
        return packed

    x, y = _leaf(T, 1.0, 2.0), _leaf(T, 3.0, 4.0)
    with T.autograd.graph.saved_tensors_hooks(pack, unpack):
        z = x * y
    z.sum().backward()
    return log, x.grad, y.grad


@differential
def test_packed_value_may_be_anything(T: Any) -> Any:
    store: dict[str, Any] = {}

    def pack(tensor: Any) -> str:
        key = f"saved{len(store)}"
        store[key] = tensor.tolist()
        return key

    def unpack(key: str) -> Any:
        return T.tensor(store[key])

    x = _leaf(T, 0.5, 1.5)
    with T.autograd.graph.saved_tensors_hooks(pack, unpack):
        y = x.exp() * x.sin()
    y.sum().backward()
    return sorted(store.items()), x.grad


@differential
def test_hooks_may_change_the_result(T: Any) -> Any:
    x = _leaf(T, 2.0)
    with T.autograd.graph.saved_tensors_hooks(lambda tensor: tensor * 4, lambda packed: packed * 10):
        y = x**2
    y.backward()
    return x.grad


@differential
def test_hooks_apply_outside_their_block_too(T: Any) -> Any:
    log: list[str] = []
    x = _leaf(T, 2.0)
    with T.autograd.graph.saved_tensors_hooks(lambda t: _note(log, "pack", t), lambda t: _note(log, "unpack", t)):
        inside = x.exp()
    outside = inside.sin()
    after_forward = list(log)
    outside.backward()
    return after_forward, log


@differential
def test_innermost_hooks_win(T: Any) -> Any:
    log: list[str] = []
    hooks = T.autograd.graph.saved_tensors_hooks
    x = _leaf(T, 2.0)

    def pair(name: str) -> Any:
        return hooks(lambda t: _note(log, f"pack {name}", t), lambda t: _note(log, f"unpack {name}", t))

    with pair("outer"):
        a = x.exp()
        with pair("inner"):
            b = a.sin()
        c = b.exp()
    c.backward()
    return log, x.grad


@differential
def test_unpack_runs_at_each_read(T: Any) -> Any:
    count: list[Any] = []
    x = _leaf(T, 2.0)
    with T.autograd.graph.saved_tensors_hooks(lambda t: t, lambda t: _note(count, 1, t)):
        y = x.exp()
    _ = y.grad_fn._saved_result
    _ = y.grad_fn._saved_result
    y.backward(retain_graph=True)
    y.backward()
    return len(count)


@differential
def test_hooks_cover_custom_functions(T: Any) -> Any:
    log: list[Any] = []

    class Square(T.autograd.Function):  # type: ignore[misc]
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            (x,) = ctx.saved_tensors
            return grad * 2 * x

    x = _leaf(T, 3.0)
    with T.autograd.graph.saved_tensors_hooks(lambda t: _note(log, t.item(), t.tolist()), lambda p: T.tensor(p)):
        y = Square.apply(x)
    y.backward()
    return log, x.grad


@differential
def test_pack_is_called_without_recording(T: Any) -> Any:
    modes: list[Any] = []
    x = _leaf(T, 2.0)
    with T.autograd.graph.saved_tensors_hooks(lambda t: _note(modes, T.is_grad_enabled(), t * 1), lambda t: t):
        y = (x * 2).exp()
    y.backward()
    return modes, x.grad


@differential
def test_pack_errors_propagate(T: Any) -> Any:
    def fail(tensor: Any) -> None:
        raise ValueError("cannot pack")

    x = _leaf(T, 2.0)

    def run() -> None:
        with T.autograd.graph.saved_tensors_hooks(fail, lambda t: t):
            x.exp()

    after = x.exp()
    after.backward()
    return outcome(run, "cannot pack"), x.grad


@differential
def test_unpack_errors_propagate(T: Any) -> Any:
    def fail(packed: Any) -> None:
        raise ValueError("cannot unpack")

    x = _leaf(T, 2.0)
    with T.autograd.graph.saved_tensors_hooks(lambda t: t, fail):
        y = x.exp()
    with T.autograd.graph.saved_tensors_hooks(lambda t: t, lambda t: 3):
        z = x.exp()
    return outcome(y.backward, "cannot unpack"), outcome(z.backward, "unpack_hook")[:2]


@differential
def test_pack_must_not_change_its_input(T: Any) -> Any:
    x = _leaf(T, 2.0)

    def run() -> None:
        with T.autograd.graph.saved_tensors_hooks(lambda t: t.add_(1), lambda t: t):
            (x * 1).exp()

    return outcome(run, "A saved tensor pack hook is modifying its input in place")


@differential
def test_hooks_with_double_backward(T: Any) -> Any:
    x = T.tensor([0.5, 1.5], dtype=T.float64, requires_grad=True)
    with T.autograd.graph.saved_tensors_hooks(lambda t: t.detach().clone(), lambda t: t):
        y = (x**3).sum()
        (first,) = T.autograd.grad(y, x, create_graph=True)
    return first.detach(), first.requires_grad


@differential
def test_packed_tensor_returned_as_is_keeps_history(T: Any) -> Any:
    x = T.tensor([0.5, 1.5], dtype=T.float64, requires_grad=True)
    with T.autograd.graph.saved_tensors_hooks(lambda t: t, lambda t: t):
        y = (x**3).sum()
        (first,) = T.autograd.grad(y, x, create_graph=True)
        (second,) = T.autograd.grad(first.sum(), x)
    return first.detach(), second


@differential
def test_hooks_are_thread_local(T: Any) -> Any:
    log: list[str] = []
    x = _leaf(T, 2.0)
    with T.autograd.graph.saved_tensors_hooks(lambda t: _note(log, "pack", t), lambda t: t):
        thread = threading.Thread(target=lambda: x.exp())
        thread.start()
        thread.join()
        in_thread = len(log)
        x.exp()
    return in_thread, len(log)


@differential
def test_version_check_with_hooks(T: Any) -> Any:
    x = _leaf(T, 2.0)
    with T.autograd.graph.saved_tensors_hooks(lambda t: t.clone(), lambda t: t):
        y = x * 1
        z = y * y
    y.add_(1)  # the packed copy is what backward reads
    return outcome(z.backward), x.grad


@differential
def test_register_hooks_on_one_saved_tensor(T: Any) -> Any:
    log: list[str] = []
    x, y = _leaf(T, 2.0), _leaf(T, 3.0)
    z = x * y
    z.grad_fn._raw_saved_self.register_hooks(
        lambda t: _note(log, "pack", t * 1), lambda t: _note(log, "unpack", t * 10)
    )
    packed = list(log)
    z.backward()
    return packed, log, x.grad, y.grad


@differential
def test_register_hooks_twice(T: Any) -> Any:
    z = _leaf(T, 2.0).exp()
    raw = z.grad_fn._raw_saved_result
    raw.register_hooks(lambda t: t, lambda t: t)
    return outcome(lambda: raw.register_hooks(lambda t: t, lambda t: t), "hook")


@differential
def test_register_hooks_with_wrong_arguments(T: Any) -> Any:
    raw = _leaf(T, 2.0).exp().grad_fn._raw_saved_result
    return outcome(lambda: raw.register_hooks(lambda t: t))[:2], outcome(lambda: raw.register_hooks(3, 4))[:2]


@differential
def test_register_hooks_after_free(T: Any) -> Any:
    z = _leaf(T, 2.0).exp()
    raw = z.grad_fn._raw_saved_result
    z.backward()
    return outcome(
        lambda: raw.register_hooks(lambda t: t, lambda t: t),
        "Calling register_hooks on a saved tensor after it has been freed",
    )


@differential
def test_register_hooks_pack_changes_input(T: Any) -> Any:
    x = _leaf(T, 2.0) * 1
    raw = (x * x).grad_fn._raw_saved_self
    return outcome(lambda: raw.register_hooks(lambda t: t.add_(1), lambda t: t), "modifying its input in place")


@differential
def test_saved_tensors_in_files(T: Any) -> Any:
    """Each saved tensor lives in a file for as long as the object that names it."""
    with tempfile.TemporaryDirectory() as folder:

        class SelfDeletingTempFile:
            def __init__(self) -> None:
                self.name = os.path.join(folder, str(uuid.uuid4()))

            def __del__(self) -> None:
                os.remove(self.name)

        def pack(tensor: Any) -> Any:
            file = SelfDeletingTempFile()
            tensor.detach().numpy().tofile(file.name)
            return file, tuple(tensor.shape)

        def unpack(packed: Any) -> Any:
            file, shape = packed
            size = os.path.getsize(file.name) // 4
            with open(file.name, "rb") as stream:
                return T.frombuffer(bytearray(stream.read()), dtype=T.float32, count=size).reshape(shape)

        x = T.tensor([[0.5, 1.5], [2.5, 3.5]], requires_grad=True)
        with T.autograd.graph.saved_tensors_hooks(pack, unpack):
            y = (x * x * 0.1).exp().sum()
        during = len(os.listdir(folder))
        y.backward(retain_graph=True)
        still = len(os.listdir(folder))
        del y
        return during, still, len(os.listdir(folder)), x.grad


@pytest.mark.parametrize("pin_memory", [False])
@differential
def test_save_on_cpu(T: Any, pin_memory: bool) -> Any:
    x = _leaf(T, 1.0, 2.0)
    with T.autograd.graph.save_on_cpu(pin_memory=pin_memory):
        y = (x * x).exp()
    saved = y.grad_fn._saved_result
    same_memory = saved.data_ptr() == y.data_ptr()
    y.sum().backward()
    return saved.device, same_memory, x.grad


@differential
def test_disable_saved_tensors_hooks(T: Any) -> Any:
    graph = T.autograd.graph
    x = _leaf(T, 1.0)

    def use_inside() -> None:
        with graph.disable_saved_tensors_hooks("not here, please"), graph.saved_tensors_hooks(lambda t: t, lambda t: t):
            pass

    def disable_inside() -> None:
        with graph.saved_tensors_hooks(lambda t: t, lambda t: t), graph.disable_saved_tensors_hooks("not here, please"):
            pass

    first, second = outcome(use_inside, "not here, please"), outcome(disable_inside, "not here, please")
    with graph.disable_saved_tensors_hooks("message"):
        y = x.exp()
    y.backward()
    with graph.saved_tensors_hooks(lambda t: t, lambda t: t):  # enabled again
        x.exp().backward()
    return first, second, x.grad


@differential
def test_disabling_nests(T: Any) -> Any:
    graph = T.autograd.graph

    def inner_message() -> None:
        with (
            graph.disable_saved_tensors_hooks("outer"),
            graph.disable_saved_tensors_hooks("inner"),
            graph.saved_tensors_hooks(lambda t: t, lambda t: t),
        ):
            pass

    def outer_message() -> None:
        with graph.disable_saved_tensors_hooks("outer"):
            with graph.disable_saved_tensors_hooks("inner"):
                pass
            with graph.saved_tensors_hooks(lambda t: t, lambda t: t):
                pass

    return outcome(inner_message, "inner"), outcome(outer_message, "outer")


@differential
def test_saved_leaf_input_that_lost_requires_grad(T: Any) -> Any:
    x, y = _leaf(T, 2.0), _leaf(T, 3.0)
    z = x * y
    x.requires_grad_(False)
    z.backward()
    return x.grad, y.grad


@differential
def test_saved_tensors_of_a_custom_function_are_read_only_through_context(T: Any) -> Any:
    class Keep(T.autograd.Function):  # type: ignore[misc]
        @staticmethod
        def forward(ctx: Any, x: Any, y: Any) -> Any:
            ctx.save_for_backward(x, y)
            return x + y

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            return grad, grad

    x, y = _leaf(T, 1.0), _leaf(T, 2.0)
    z = Keep.apply(x, y)
    saved = z.grad_fn.saved_tensors
    return saved[0] is x, saved[1] is y, len(z.grad_fn._raw_saved_tensors)


@differential
def test_save_for_backward_twice_keeps_the_last(T: Any) -> Any:
    class Keep(T.autograd.Function):  # type: ignore[misc]
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x)
            ctx.save_for_backward(x * 2, x * 3)
            return x * 1

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            return grad * sum(saved.item() for saved in ctx.saved_tensors)

    x = _leaf(T, 1.0)
    Keep.apply(x).backward()
    return x.grad


@differential
def test_allow_mutation_on_saved_tensors(T: Any) -> Any:
    with T.autograd.graph.allow_mutation_on_saved_tensors():
        x = T.ones(2, requires_grad=True)
        y = x.clone()
        z = (y**2).sum()
        y.mul_(10)
        z.backward()
    return x.grad


@differential
def test_mutation_is_allowed_inside_one_context_alone(T: Any) -> Any:
    allow = T.autograd.graph.allow_mutation_on_saved_tensors

    def nested() -> None:
        with allow(), allow():
            pass

    x = T.ones(2, requires_grad=True)
    with allow():
        kept = x.clone()
        total = (kept**2).sum()
        kept.mul_(3)
    outside = outcome(lambda: total.backward(), "Trying to backward outside of the")
    with allow():
        other = outcome(lambda: total.backward(), "Trying to backward outside of the")
    return outcome(nested, "cannot be nested"), outside, other, x.grad


UNARY = ["exp", "sin", "sqrt", "tanh", "sigmoid", "log1p", "reciprocal"]
BINARY = ["mul", "div", "hypot", "atan2", "pow", "logaddexp"]


@pytest.mark.parametrize("name", BINARY)
@differential
def test_what_no_asked_gradient_needs_is_checked_too(T: Any, name: str) -> Any:
    """`grad` of one input: what was saved for the other is unpacked all the same."""
    a, b = _leaf(T, 1.0, 2.0), _leaf(T, 3.0, 4.0)
    reports = []
    for changed in range(2):
        for asked in range(2):
            operands = a * 1, b * 1
            result = getattr(T, name)(*operands)
            operands[changed].add_(1)
            reports.append(outcome(lambda: T.autograd.grad(result.sum(), [(a, b)[asked]]), "modified by an inplace"))  # noqa: B023
    return reports


@differential
def test_hooks_unpack_what_no_asked_gradient_needs(T: Any) -> Any:
    log: list[Any] = []
    a, b = _leaf(T, 1.0, 2.0), _leaf(T, 3.0, 4.0)
    with T.autograd.graph.saved_tensors_hooks(lambda x: x.tolist(), lambda x: _note(log, x, T.tensor(x))):
        result = a * b
    return T.autograd.grad(result.sum(), [a]), sorted(log)


@pytest.mark.parametrize("name", UNARY + BINARY)
@differential
def test_views_from_which_no_gradient_leads_back(T: Any, name: str) -> Any:
    """A view made without recording requires a gradient: what it takes part in is recorded, saves and is freed."""
    x = _leaf(T, 1.0, 2.0) * 1.5
    with T.no_grad():
        view = x.view(2)
    operands = (view, T.tensor([2.0, 3.0])) if name in BINARY else (view,)
    result = getattr(T, name)(*operands)
    again = result * 1
    again.sum().backward(retain_graph=True)
    again.sum().backward()
    return result.requires_grad, outcome(lambda: again.sum().backward(), "a second time")


@pytest.mark.parametrize("changes", [False, True])
@differential
def test_hooks_of_a_view_made_without_recording(T: Any, changes: bool) -> Any:
    """What is unpacked requires gradients as the view did; a changed one, which lost its history, can be packed."""
    seen = []

    class Saving(T.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any, y: Any) -> Any:
            ctx.save_for_backward(x.mul_(2) if changes else x, None)
            return y * 2

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            seen.append(ctx.saved_tensors[0].requires_grad or changes)
            return None, grad * ctx.saved_tensors[0].detach()

    leaf = T.ones(2, 2, requires_grad=True)
    with T.no_grad():
        view = leaf.view(2, 2)
    other = T.ones(2, 2, requires_grad=True)
    with T.autograd.graph.saved_tensors_hooks(lambda each: each.clone(), lambda each: each):
        result = Saving.apply(view, other * 1)
    result.sum().backward()
    return seen, other.grad


@differential
def test_what_was_saved_where_mutation_is_allowed(T: Any) -> Any:
    def counts(context: Any) -> Any:
        return len(context.cloned), len(context.original), len(context.tid_to_weakhandle), len(context.sid_to_tid)

    with T.autograd.graph.allow_mutation_on_saved_tensors() as context:
        leaf = T.ones(2, requires_grad=True)
        x = leaf.clone()
        total = (x**2).sum() + (x * x).sum()
        before = counts(context)
        x.sin_()
        after = counts(context)
        copies = list(context.cloned.values())
        total.backward()
    return before, after, copies, leaf.grad, counts(context)


@differential
def test_pack_hooks_that_enter_contexts(T: Any) -> Any:
    """A context that the hook enters and leaves changes the modes; the hooks of the program stay."""
    graph = T.autograd.graph
    contexts = [
        *(T.no_grad, T.enable_grad, T.inference_mode, lambda: T.autocast("cpu")),
        *(lambda: graph.saved_tensors_hooks(lambda t: t, lambda t: t), T.autograd.forward_ad.dual_level),
        *(lambda: T.device("cpu"), graph.save_on_cpu),
    ]
    seen = []
    for context in contexts:
        packed = []

        def pack(tensor: Any, context: Any = context, packed: Any = packed) -> Any:
            with context():
                packed.append(list(tensor.shape))
                return tensor * 1

        x = T.ones(3, requires_grad=True)
        normed = T.nn.BatchNorm1d(2)
        with graph.saved_tensors_hooks(pack, lambda tensor: tensor):
            ((x.sin() * x.exp()).tanh() + x**3).sum().backward()
            normed(T.ones(3, 2).cumsum(0)).sin().sum().backward()
        seen.append((packed, x.grad))
    return seen


def test_pack_hooks_beside_somebody_who_looks_on() -> None:
    """With a profiler the same tensors are packed, and a checkpoint saves the same again."""
    x = flambeau.linspace(-1, 1, 5).requires_grad_()

    def run() -> list[int]:
        packed: list[int] = []

        def pack(tensor: Any) -> Any:
            packed.append(tensor.numel())
            return tensor * 1

        with flambeau.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
            flambeau.nn.functional.softsign(x).sum().backward()
        result = flambeau.utils.checkpoint.checkpoint(flambeau.nn.Softsign(), x, use_reentrant=False)
        result.sum().backward()
        return packed

    alone = run()
    with flambeau.profiler.profile():
        assert run() == alone
    assert len(alone) > 1
