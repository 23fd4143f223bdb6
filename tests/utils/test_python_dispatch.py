"""`__torch_dispatch__` in modes and in classes of tensors, beside PyTorch's."""

from __future__ import annotations

import functools
import gc
import importlib
import itertools
import json
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch as pytorch

import flambeau
from flambeau._core.modes import THREAD
from flambeau._dispatch.op import OPS
from flambeau._dispatch.public.overloads import forms_of
from flambeau._dispatch.public.registry import load_all
from flambeau.utils._python_dispatch import TorchDispatchMode
from flambeau.utils._pytree import tree_leaves
from tests.conformance.checks import translated
from tests.conformance.entries import UNINITIALISED, Entry
from tests.support.differential import differential

BOOKKEEPING = ("aten.detach.default", "aten.ones_like.default", "aten.new_ones.default", "aten.ones.default")
"""Operators around a backward pass that only one of the two libraries runs."""


def tools(T: Any) -> tuple[Any, Any]:
    """The modules with modes and with `tree_map` that belong to `T`."""
    name = T.__name__
    return (
        importlib.import_module(f"{name}.utils._python_dispatch"),
        importlib.import_module(f"{name}.utils._pytree").tree_map,
    )


def logging_mode(T: Any, log: list[Any]) -> Any:
    class Log(tools(T)[0].TorchDispatchMode):  # type: ignore[misc]
        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            log.append((str(func), len(args), [each.__name__ for each in types]))
            return func(*args, **(kwargs or {}))

    return Log()


def heard(log: list[Any]) -> list[Any]:
    return [each for each in log if each[0] not in BOOKKEEPING]


@differential
def test_mode_sees_the_operators_of_a_program(T: Any) -> Any:
    x = T.arange(6.0).reshape(2, 3)
    w = T.ones(3, 2, requires_grad=True)
    log: list[Any] = []
    with logging_mode(T, log):
        y = (x @ w + 1).relu().exp().sum(0, keepdim=True)
        z = T.cat([y, y * 2, y - x[:, :2].mean()]).clamp(0, 50).view(-1).t().softmax(-1)
        picked = T.where(z > 0.5, z, 1 / z)
    return heard(log), picked


@differential
def test_mode_sees_backward_passes(T: Any) -> Any:
    x = T.arange(6.0).reshape(2, 3)
    w = T.ones(3, 2, requires_grad=True)
    log: list[Any] = []
    loss = (x @ w).tanh().sum()
    with logging_mode(T, log):
        loss.backward()
    return heard(log), w.grad


@differential
def test_modes_nest_and_stop(T: Any) -> Any:
    outer: list[Any] = []
    inner: list[Any] = []
    x = T.ones(3)
    modes = tools(T)[0]
    with logging_mode(T, outer):
        x.exp()
        with logging_mode(T, inner):
            x.sin()
            with modes._disable_current_modes():
                x.cos()
        x.abs()
    x.tan()
    return outer, inner, modes._get_current_dispatch_mode() is None


@differential
def test_mode_replaces_results(T: Any) -> Any:
    class Doubling(tools(T)[0].TorchDispatchMode):  # type: ignore[misc]
        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            result = func(*args, **(kwargs or {}))
            return result * 2 if func is T.ops.aten.mul.Tensor else result

    x = T.tensor([1.0, 2.0], requires_grad=True)
    with Doubling():
        y = x * 3
    (gradient,) = T.autograd.grad(y.sum(), x)
    return y, gradient


def logging_tensor(T: Any, log: list[Any]) -> Any:
    tree_map = tools(T)[1]

    class LoggingTensor(T.Tensor):  # type: ignore[misc]
        @staticmethod
        def __new__(cls: Any, elem: Any) -> Any:
            made = T.Tensor._make_wrapper_subclass(
                cls, elem.size(), strides=elem.stride(), dtype=elem.dtype, device=elem.device,
                requires_grad=elem.requires_grad,
            )  # fmt: skip
            made.elem = elem.detach()
            return made

        @classmethod
        def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            log.append((str(func), len(args), [each.__name__ for each in types]))
            bare_args, bare_kwargs = tree_map(
                lambda value: value.elem if isinstance(value, cls) else value, (args, kwargs or {})
            )
            return tree_map(
                lambda value: cls(value) if isinstance(value, T.Tensor) else value, func(*bare_args, **bare_kwargs)
            )

    return LoggingTensor


@differential
def test_wrapper_runs_its_operators(T: Any) -> Any:
    log: list[Any] = []
    wrapper = logging_tensor(T, log)
    x = wrapper(T.arange(6.0).reshape(2, 3).requires_grad_())
    loss = ((x * 2 + 1).relu() @ T.ones(3, 2)).sum()
    loss.backward()
    kinds = [type(each).__name__ for each in (loss, x.grad)]
    return heard(log), kinds, loss.elem, x.grad.elem, x.shape, x.stride(), x.dtype, loss.requires_grad


@differential
def test_wrapper_accumulates_gradients(T: Any) -> Any:
    wrapper = logging_tensor(T, [])
    x = wrapper(T.tensor([1.0, 2.0]).requires_grad_())
    for _ in range(3):
        (x * x).sum().backward()
    return x.grad.elem, type(x.grad).__name__


@differential
def test_wrapper_in_lists_views_and_new_tensors(T: Any) -> Any:
    log: list[Any] = []
    wrapper = logging_tensor(T, log)
    x = wrapper(T.arange(4.0))
    results = [T.cat([x, T.ones(2)]), x.view(2, 2), x[1:], T.zeros_like(x), x.unbind(0)[0], x.max()]
    return heard(log), [type(each).__name__ for each in results], [each.elem for each in results]


@differential
def test_wrapper_of_a_wrapper(T: Any) -> Any:
    first: list[Any] = []
    second: list[Any] = []
    inner, outer = logging_tensor(T, first), logging_tensor(T, second)
    x = outer(inner(T.ones(2)))
    return (x + 1).elem.elem, first, second


@differential
def test_wrapper_under_a_mode(T: Any) -> Any:
    log: list[Any] = []
    own: list[Any] = []
    x = logging_tensor(T, own)(T.ones(2))
    with logging_mode(T, log):
        y = x * 2
    return log, own, y.elem


def two_tensors(T: Any) -> Any:
    modes, tree_map = tools(T)

    class TwoTensor(T.Tensor):  # type: ignore[misc]
        @staticmethod
        def __new__(cls: Any, a: Any, b: Any) -> Any:
            made = T.Tensor._make_wrapper_subclass(cls, a.shape, dtype=a.dtype, requires_grad=a.requires_grad)
            made.a, made.b = a, b
            return made

        def __tensor_flatten__(self) -> Any:
            return ["a", "b"], None

        @staticmethod
        def __tensor_unflatten__(inner: Any, context: Any, size: Any, stride: Any) -> Any:
            return TwoTensor(inner["a"], inner["b"])

        @classmethod
        def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            halves = [
                func(*tree_map(lambda x, name=name: getattr(x, name) if isinstance(x, TwoTensor) else x, args),
                     **(kwargs or {}))
                for name in "ab"
            ]  # fmt: skip
            out = TwoTensor(*halves) if isinstance(halves[0], T.Tensor) else halves[0]
            return modes.return_and_correct_aliasing(func, args, kwargs or {}, out)

    return TwoTensor


@differential
def test_two_tensors_in_one(T: Any) -> Any:
    modes = tools(T)[0]
    cls = two_tensors(T)
    x = cls(T.tensor([1.0, 2.0]), T.tensor([3.0, 4.0]))
    y = (x * 2).exp()
    y.add_(1)
    moved = modes.transform_subclass(y, lambda name, inner: inner + (1 if name == "a" else 0))
    return y.a, y.b, moved.a, moved.b, modes.is_traceable_wrapper_subclass(x), modes.is_traceable_wrapper_subclass(y.a)


@differential
def test_quantised_weight(T: Any) -> Any:
    """A weight kept in eight bits, which becomes a float matrix when a product asks for it."""
    tree_map = tools(T)[1]

    class Quantised(T.Tensor):  # type: ignore[misc]
        __torch_function__ = T._C._disabled_torch_function_impl

        @staticmethod
        def __new__(cls: Any, numbers: Any, scale: Any) -> Any:
            made = T.Tensor._make_wrapper_subclass(cls, numbers.shape, dtype=scale.dtype)
            made.numbers, made.scale = numbers, scale
            return made

        @classmethod
        def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            if func in (T.ops.aten.t.default, T.ops.aten.detach.default):
                return cls(func(args[0].numbers), args[0].scale)
            plain = tree_map(lambda x: x.numbers.to(x.dtype) * x.scale if isinstance(x, cls) else x, args)
            return func(*plain, **(kwargs or {}))

    layer = T.nn.Linear(3, 2, bias=False)
    weight = T.tensor([[1, 2, 3], [-4, 5, -6]], dtype=T.int8)
    layer.weight = T.nn.Parameter(Quantised(weight, T.tensor(0.5)), requires_grad=False)
    return layer(T.ones(4, 3)).detach(), type(layer.weight).__name__


@differential
def test_class_that_refuses(T: Any) -> Any:
    class Refusing(T.Tensor):  # type: ignore[misc]
        @classmethod
        def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            return NotImplemented

    x = T.Tensor._make_wrapper_subclass(Refusing, (2,))
    try:
        x + 1
    except TypeError:
        return "refused"


def test_no_trace_is_left_of_tensors_that_are_gone() -> None:
    gc.collect()
    assert THREAD.modes.interpreters == ()
    x = logging_tensor(flambeau, [])(flambeau.ones(2))
    assert THREAD.modes.interpreters
    del x
    assert THREAD.modes.interpreters == ()
    assert THREAD.modes.plain


def test_mode_refuses_to_say_nothing() -> None:
    class Silent(TorchDispatchMode):
        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            return NotImplemented

    x = flambeau.ones(2)
    with Silent(), pytest.raises(TypeError, match=r"NotImplemented for aten\.exp\.default"):
        flambeau.exp(x)


# ----- the table of names -------------------------------------------------------------------------------------------


def test_every_listed_operator_is_pytorch_s() -> None:
    """Each exists there, and has as many arguments, those by name under the same names."""
    load_all()
    problems = []
    count = 0
    for op in OPS.values():
        for form in forms_of(op):
            count += 1
            overload = getattr(getattr(pytorch.ops.aten, form.name, None), form.overload, None)
            if overload is None:
                problems.append(f"{op.name}: there is no aten.{form.name}.{form.overload}")
                continue
            arguments = overload._schema.arguments
            positional = [each for each in arguments if not each.kwarg_only]
            by_name = {each.name for each in arguments}
            optional = all(each.has_default_value() for each in positional[form.positional :])
            if form.positional > len(positional) or not optional:
                problems.append(f"{op.name}: aten.{form.name}.{form.overload} takes {len(positional)} by position")
            problems += [f"{op.name}: no {each}" for each in form.names[form.positional :] if each not in by_name]
            if not form.is_complete and getattr(getattr(flambeau.ops.aten, form.name), form.overload)._body is None:
                problems.append(f"{op.name}: nothing runs aten.{form.name}.{form.overload}")
    assert not problems
    assert count > 380


class Through(TorchDispatchMode):
    """Calls every operator with the arguments that it got."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return func(*args, **(kwargs or {}))


SAMPLED = 13
"""Every so many-th entry of the operator database; `python -m tests.utils.test_python_dispatch` takes all."""


def entries(every: int) -> list[Any]:
    from torch.testing._internal.common_methods_invocations import op_db

    chosen = [Entry(info) for info in op_db[::every] if info.name not in UNINITIALISED]
    return [each for each in chosen if each.dtypes]


def everything(entry: Any, sample: Any) -> list[Any]:
    """The results of an entry for a sample, and the gradients of its inputs."""
    args, kwargs = translated(sample)
    flambeau.manual_seed(7)
    results = [each for each in tree_leaves(entry.op(*args, **kwargs)) if isinstance(each, flambeau.Tensor)]
    leaves = [each for each in tree_leaves((args, kwargs)) if isinstance(each, flambeau.Tensor)]
    inputs = [each for each in leaves if each.requires_grad and each.is_leaf]
    sums = [each.abs().sum() for each in results if each.requires_grad]
    gradients = flambeau.autograd.grad(sums, inputs, allow_unused=True) if sums and inputs else ()
    return [each.detach() for each in (*results, *gradients) if each is not None and each.layout is flambeau.strided]


def bits(tensor: Any) -> Any:
    return tensor.shape, tensor.dtype, tensor.resolve_conj().resolve_neg().contiguous()._array.tobytes()


def compared_through_a_mode(every: int) -> tuple[int, list[str]]:
    """For how many samples results and gradients with and without a mode were compared, and where they differ."""
    compared, differing = 0, []
    for entry in entries(every):
        main = entry.main_dtype
        gradients = entry.info.supports_autograd and (main.is_floating_point or main.is_complex)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for sample in itertools.islice(entry.samples(entry.main_dtype, requires_grad=gradients), 2):
                try:
                    plain = everything(entry, sample)
                except Exception:
                    continue
                compared += 1
                try:
                    with Through():
                        watched = everything(entry, sample)
                    if [bits(each) for each in watched] != [bits(each) for each in plain]:
                        differing.append(f"{entry.name}: other bits")
                except Exception as error:
                    differing.append(f"{entry.name}: {type(error).__name__}: {error}")
    return compared, differing


def test_operators_through_a_mode_give_the_same_bits() -> None:
    compared, differing = compared_through_a_mode(SAMPLED)
    assert compared > 40
    assert differing == []


@differential
def test_complex_padding_through_a_mode(T: Any) -> Any:
    x = T.ones(2, 2, dtype=T.complex64)
    log: list[Any] = []
    with logging_mode(T, log):
        padded = T.fft.fftn(x, s=(3, 4))
    return padded, T.ops.aten.constant_pad_nd(x, [0, 1], 1j)


SEEN: dict[str, Callable[[Any, Any], Any]] = {
    "uniform_": lambda T, x: x.detach().clone().uniform_(),
    "normal_": lambda T, x: x.detach().clone().normal_(1.0, 2.0),
    "random_": lambda T, x: x.detach().clone().random_(1, 9),
    "div": lambda T, x: (T.div(x, 2.0 * x, rounding_mode="trunc"), T.div(x, 2.0 * x, rounding_mode="floor")),
    "polygamma": lambda T, x: T.polygamma(2, x),
    "nearest": lambda T, x: T.nn.functional.interpolate(x[None], scale_factor=2.0),
    "nearest-exact": lambda T, x: T.nn.functional.interpolate(x[None], size=5, mode="nearest-exact"),
    "bilinear": lambda T, x: T.nn.functional.interpolate(x[None, None], size=(5, 4), mode="bilinear"),
    "bicubic": lambda T, x: T.nn.functional.interpolate(x[None, None], size=(5, 4), mode="bicubic", align_corners=True),
    "cholesky": lambda T, x: T.linalg.cholesky_ex(T.eye(3))[0],
    "qr": lambda T, x: T.linalg.qr(x)[0],
    "svd": lambda T, x: T.linalg.svd(x)[1],
    "eigh": lambda T, x: T.linalg.eigh(x)[0],
    "lu": lambda T, x: (T.linalg.lu_factor_ex(x)[0], T.linalg.lu(x)[1]),
    "inv": lambda T, x: T.linalg.inv_ex(x)[0],
    "triangular": lambda T, x: T.linalg.solve_triangular(x, x, upper=True),
    "with logits": lambda T, x: T.nn.functional.binary_cross_entropy_with_logits(x, x.detach()),
    "block_diag": lambda T, x: T.block_diag(x, x),
    "layer_norm": lambda T, x: T.nn.functional.layer_norm(x, (3,), T.ones(3), T.ones(3)),
    "group_norm": lambda T, x: T.nn.functional.group_norm(x, 3),
    "batch_norm": lambda T, x: T.nn.functional.batch_norm(x, None, None, training=True),
    "softmax": lambda T, x: x.softmax(0),
    "log_softmax": lambda T, x: x.log_softmax(0),
    "leaky_relu": lambda T, x: T.nn.functional.leaky_relu(x),
    "conv2d": lambda T, x: T.nn.functional.conv2d(x[None, None], T.ones(2, 1, 2, 2)),
    "conv_transpose2d": lambda T, x: T.nn.functional.conv_transpose2d(x[None, None], T.ones(1, 2, 2, 2)),
    "max_pool2d": lambda T, x: T.nn.functional.max_pool2d(x[None, None], 2),
    "where": lambda T, x: T.where(x > 0.5, x, 0.0),
    "index": lambda T, x: (x[T.tensor([0, 2])], x[:, [0, 1]], x[x > 0.5]),
    "index_put": lambda T, x: T.index_put(x, (T.tensor([0, 1]),), T.ones(2, 3)),
    "all": lambda T, x: ((x > 0).all(), (x > 0).any(0), (x > 0).all(0, keepdim=True)),
    "unique": lambda T, x: (T.unique(x.detach()), T.unique_consecutive(x.detach(), dim=0)),
    "distances": lambda T, x: (T.cdist(x, x + 1), T.pdist(x), T.nn.functional.pairwise_distance(x, x + 1)),
    "linear algebra": lambda T, x: (T.linalg.cross(x, x), T.matrix_exp(x), T.linalg.lstsq(x, x)[0]),
    "searchsorted": lambda T, x: T.searchsorted(T.tensor([0.0, 1.0]), x.detach(), right=True),
    "normal": lambda T, x: (T.normal(x.detach(), x.detach().abs()), T.normal(x.detach(), 1.0)),
    "histc": lambda T, x: T.histc(x.detach(), 4, 0, 3),
}
COMMON = {
    "flambeau.constant", "aten.clone", "aten.copy_", "aten.detach", "aten.empty", "aten.empty_like", "aten.eye",
    "aten.full", "aten.lift_fresh", "aten.mul", "aten.ones", "aten.ones_like", "aten.scalar_tensor", "aten.transpose",
    "aten.unsqueeze", "aten.view", "aten.zeros",
}  # fmt: skip
"""Operators that make constants and views, which the two libraries do not make alike."""


@pytest.mark.parametrize("name", SEEN)
@differential
def test_modes_see_operators(T: Any, name: str) -> Any:
    """The operators of a call and of its gradients."""
    log: list[Any] = []
    mode = logging_mode(T, log)
    x = (T.arange(9.0).reshape(3, 3) / 9 + 2 * T.eye(3)).requires_grad_()
    with mode:
        result = SEEN[name](T, x)
    forward = {each[0] for each in log} if name != "batch_norm" else set()  # running statistics are another op here
    log.clear()
    if name in BACKWARD:
        with mode:
            result.sum().backward()
    backward = sorted(each[0] for each in log if "backward" in each[0])
    return sorted(each for each in forward if each.rpartition(".")[0] not in COMMON), backward


BACKWARD = {
    "batch_norm", "conv2d", "conv_transpose2d", "group_norm", "layer_norm", "leaky_relu", "log_softmax", "max_pool2d",
    "softmax",
}  # fmt: skip


SEEN_OTHERWISE = Path(__file__).with_name("seen_otherwise.json")
"""Entries of the operator database that a mode sees as other operators than PyTorch's; the list only shrinks."""


def _operators(T: Any, call: Callable[[], Any]) -> set[str]:
    log: list[Any] = []
    with logging_mode(T, log):
        call()
    return {name for name, *_ in log if name.rpartition(".")[0] not in COMMON}


def seen_otherwise(every: int) -> tuple[list[str], list[str]]:
    """Entries that were compared, and those of which modes see other operators."""
    compared, differing = [], []
    for entry in entries(every):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            sample = next(iter(entry.samples(entry.main_dtype, requires_grad=False)))
            try:
                args, kwargs = translated(sample)
                pytorch.manual_seed(0)
                given = (sample.input, *sample.args)
                theirs = _operators(pytorch, functools.partial(entry.info.op, *given, **sample.kwargs))
                ours = _operators(flambeau, functools.partial(entry.op, *args, **kwargs))
            except Exception:  # what the operators do is for other tests
                continue
        compared.append(entry.name)
        if ours != theirs:
            differing.append(entry.name)
    return compared, differing


def test_modes_see_the_operators_of_the_database() -> None:
    compared, differing = seen_otherwise(SAMPLED)
    known = set(json.loads(SEEN_OTHERWISE.read_text()))
    assert len(compared) > 40
    assert set(differing) == known & set(compared)


if __name__ == "__main__":
    compared_samples, wrong = compared_through_a_mode(1)
    print(compared_samples, "samples through a mode", *wrong, sep="\n")
    compared, differing = seen_otherwise(1)
    SEEN_OTHERWISE.write_text(json.dumps(sorted(differing), indent=1) + "\n")
    print(len(compared) - len(differing), "of", len(compared), "entries are seen as PyTorch's operators")
