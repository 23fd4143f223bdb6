"""PyTorch's databases of modules and of optimizers in further states: `python -m tests.conformance.modules`.

A state in which a module gives what it gives without is compared with the plain call, to the bit; derivatives under
transforms, shapes of fake tensors and dtypes under autocast with PyTorch's. An optimizer's step is compiled and run on
tensors in other forms. What PyTorch refuses in a state is not compared.
"""

from __future__ import annotations

import argparse
import copy
import fnmatch
import functools
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import torch as pytorch
from torch.testing._internal.common_modules import ModuleInfo, module_db

import flambeau
from tests.nn.test_module_database import Pair, _samples
from tests.optim.both import MATRICES, NAMES, SHAPES, converted, database, parameters

from .checks import text
from .compare import Tolerance, differences, tensors_in

_CLOSE = Tolerance(1e-7, 1e-6)
_IN_16_BITS = Tolerance(1e-2, 1e-2)
"""Muon computes in bfloat16."""
_LARGEST = 200
"""Elements of a parameter of which whole matrices of derivatives are compared."""


class NotCompared(Exception):
    """PyTorch refuses the sample in this state, or there is nothing to compare."""


Found = Iterator[str | None]
"""None where a sample agrees, else what differs."""


# Modules: what they give anyway


class _Passing(flambeau.utils._python_dispatch.TorchDispatchMode):
    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return func(*args, **(kwargs or {}))


def _in_inference_mode(module: Any, args: Any, kwargs: Any) -> Any:
    with flambeau.inference_mode():
        return module(*args, **kwargs)


def _under_a_dispatch_mode(module: Any, args: Any, kwargs: Any) -> Any:
    with _Passing():
        return module(*args, **kwargs)


def _functionalized(module: Any, args: Any, kwargs: Any) -> Any:
    weights = dict(module.named_parameters()) | dict(module.named_buffers())

    def function(weights: Any, *given: Any) -> Any:
        return flambeau.func.functional_call(module, weights, given, kwargs)

    return flambeau.func.functionalize(function)(weights, *args)


def _exported(module: Any, args: Any, kwargs: Any) -> Any:
    return flambeau.export.export(module, args, kwargs).module()(*args, **kwargs)


def _compiled(module: Any, args: Any, kwargs: Any) -> Any:
    compiled = flambeau.compile(module)
    weights, before = copy.deepcopy(module.state_dict()), flambeau.get_rng_state()
    for _ in range(4):
        module.load_state_dict(weights)
        flambeau.set_rng_state(before)
        result = compiled(*args, **kwargs)
    return result


_LIKE_PLAIN: dict[str, Callable[[Any, Any, Any], Any]] = {
    "inference mode": _in_inference_mode,
    "dispatch mode": _under_a_dispatch_mode,
    "functionalize": _functionalized,
    "export": _exported,
    "compile(module)": _compiled,
}


def _bits(value: Any) -> list[str]:
    return [f"{list(each.shape)} {each.dtype} {each.detach().tolist()!r}" for each in tensors_in(value)]


def _like_plain(state: Callable[[Any, Any, Any], Any], pair: Pair) -> Iterator[str]:
    try:
        expected = pair.call_flambeau(copy.deepcopy(pair.actual))
    except Exception:
        raise NotCompared from None  # refused modules are compared elsewhere
    try:
        flambeau.manual_seed(1)
        actual = state(copy.deepcopy(pair.actual), pair.translated_args, pair.translated_kwargs)
    except Exception as error:
        if _pytorch_refuses(state, pair):
            raise NotCompared from None
        yield f"raises {text(error)}"
        return
    if _bits(expected) != _bits(actual):
        yield "other elements than the plain call"


def _pytorch_refuses(state: Callable[[Any, Any, Any], Any], pair: Pair) -> bool:
    """Whether PyTorch does not export the module either; the other states it has for all modules."""
    if state is not _exported:
        return False
    try:
        pytorch.export.export(copy.deepcopy(pair.expected), pair.args, pair.kwargs)
    except Exception:
        return True
    return False


# Modules: beside PyTorch


def _step(T: Any, module: Any, args: Any, kwargs: Any, compiled: bool) -> Any:
    """Gradients and weights after four steps of training."""
    optimizer = T.optim.SGD(module.parameters(), 0.01, momentum=0.9) if list(module.parameters()) else None

    def step() -> Any:
        results = [each for each in tensors_in(module(*args, **kwargs)) if each.requires_grad]
        if results:
            sum([each.pow(2).sum() for each in results]).abs().backward()
        if optimizer is not None:
            optimizer.step()
            optimizer.zero_grad()
        return [each.detach() for each in results]

    run_step = T.compile(step) if compiled else step
    leaves = [each for each in tensors_in([args, kwargs]) if each.requires_grad]
    for each in leaves:
        each.grad = None
    T.manual_seed(1)
    results = [run_step() for _ in range(4)]
    return results, [each.grad for each in leaves], [each.detach() for each in module.parameters()]


def _compiled_step(pair: Pair) -> Iterator[str]:
    given = pair.translated_args, pair.translated_kwargs
    try:
        expected = _step(flambeau, copy.deepcopy(pair.actual), *given, compiled=False)
    except Exception:
        raise NotCompared from None
    actual = _step(flambeau, copy.deepcopy(pair.actual), *given, compiled=True)
    if _bits(expected) != _bits(actual):
        yield "other elements than the plain steps"


def _scalar(T: Any, module: Any, args: Any, kwargs: Any) -> tuple[str, Callable[[Any], Any]] | None:
    """The first parameter by name, and the module's results as a function of it, added up."""
    weights = {name: each.detach() for name, each in module.named_parameters()}
    weights |= {name: each.detach() for name, each in module.named_buffers()}
    name = next((name for name, each in module.named_parameters() if 0 < each.numel() <= _LARGEST), None)
    if name is None:
        return None

    def function(weight: Any) -> Any:
        T.manual_seed(1)
        results = tensors_in(T.func.functional_call(module, weights | {name: weight}, args, kwargs))
        return sum([each.pow(2).sum() for each in results if each.is_floating_point()])

    return name, function


def _derived(transform: str) -> Callable[[Pair], Iterator[str]]:
    def of(T: Any, module: Any, args: Any, kwargs: Any) -> Any:
        found = _scalar(T, module, args, kwargs)
        if found is None:
            return None
        name, function = found
        point = dict(module.named_parameters())[name].detach()
        func = T.func
        if transform == "vmap of grad":
            return func.vmap(func.grad(function), randomness="same")(T.stack([point, point * 0.5]))
        if transform == "grad of vmap":
            several = func.vmap(function, randomness="same")
            return func.grad(lambda batch: several(batch).sum())(T.stack([point, point * 0.5]))
        if transform == "vmap of vmap":
            inner = func.vmap(func.vmap(function, randomness="same"), randomness="same")
            return inner(T.stack([point, point * 0.5])[None])
        if transform == "jvp":
            return func.jvp(function, (point,), (T.ones_like(point),))
        return getattr(func, transform)(function)(point)

    def compare(pair: Pair) -> Iterator[str]:
        try:
            expected = of(pytorch, pair.expected, pair.args, pair.kwargs)
        except Exception:
            raise NotCompared from None
        if expected is None:
            raise NotCompared
        actual = of(flambeau, pair.actual, pair.translated_args, pair.translated_kwargs)
        yield from differences(expected, actual, _CLOSE)

    return compare


def _shapes(value: Any) -> list[str]:
    return [f"{list(each.shape)} {each.dtype}" for each in tensors_in(value)]


def _in_pytorch_too(of: Callable[[Any, Any, Any, Any], Any]) -> Callable[[Pair], Iterator[str]]:
    def compare(pair: Pair) -> Iterator[str]:
        try:
            expected = of(pytorch, copy.deepcopy(pair.expected), pair.args, pair.kwargs)
        except Exception:
            raise NotCompared from None
        actual = of(flambeau, copy.deepcopy(pair.actual), pair.translated_args, pair.translated_kwargs)
        if expected != actual:
            yield f"{actual}, not {expected}"

    return compare


def _fake(T: Any, module: Any, args: Any, kwargs: Any) -> Any:
    mode = T._subclasses.FakeTensorMode(allow_non_fake_inputs=True)
    faked = T.utils._pytree.tree_map(
        lambda each: mode.from_tensor(each) if isinstance(each, T.Tensor) else each, (args, kwargs)
    )
    with mode:
        return _shapes(module(*faked[0], **faked[1]))


def _meta(T: Any, module: Any, args: Any, kwargs: Any) -> Any:
    moved = T.utils._pytree.tree_map(
        lambda each: each.to("meta") if isinstance(each, T.Tensor) else each, (args, kwargs)
    )
    return _shapes(module.to("meta")(*moved[0], **moved[1]))


def _autocast(T: Any, module: Any, args: Any, kwargs: Any) -> Any:
    module, (args, kwargs) = (
        module.float(),
        T.utils._pytree.tree_map(
            lambda each: each.float() if isinstance(each, T.Tensor) and each.is_floating_point() else each,
            (args, kwargs),
        ),
    )
    with T.autocast("cpu", dtype=T.bfloat16):
        return _shapes(module(*args, **kwargs))


MODULE_STATES: dict[str, Callable[[Pair], Iterator[str]]] = {
    **{name: functools.partial(_like_plain, state) for name, state in _LIKE_PLAIN.items()},
    "compile(step)": _compiled_step,
    **{
        name: _derived(name)
        for name in ("jvp", "jacrev", "jacfwd", "hessian", "vmap of grad", "grad of vmap", "vmap of vmap")
    },
    "fake": _in_pytorch_too(_fake),
    "meta": _in_pytorch_too(_meta),
    "autocast": _in_pytorch_too(_autocast),
}


def examine_module(info: ModuleInfo, state: str, samples: int) -> Found:
    """What becomes of some samples of an entry in a state, in training and in evaluation."""
    for training in (True, False):
        for sample in _samples(info, pytorch.float64, training, most=samples):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                pair = Pair(info, sample, pytorch.float64, training)
                try:
                    yield next(MODULE_STATES[state](pair), None)
                except NotCompared:
                    continue
                except Exception as error:
                    yield f"raises {text(error)}"


# Optimizers


def _made(T: Any, name: str, options: dict[str, Any], params: list[Any]) -> Any:
    return getattr(T.optim, name)(params, **converted(options, T))


def _parameters(T: Any, name: str, dtype: str) -> list[Any]:
    return parameters(T, dtype, MATRICES if name in ("Muon", "SparseAdam") else SHAPES)


def _loss(T: Any, name: str, optimizer: Any, params: list[Any]) -> Any:
    """The loss of a step, and its gradients: those of rows of matrices where the optimizer takes sparse ones alone."""
    optimizer.zero_grad()
    if name == "SparseAdam":
        rows = T.tensor([0, 2, 0])
        total = sum([T.nn.functional.embedding(rows, each, sparse=True).sin().sum() for each in params])
    elif name == "LBFGS":  # a loss with one minimum: far from it, its steps would amplify every rounding
        total = sum([each.pow(2).sum() + each.pow(4).sum() for each in params])
    else:
        total = sum([(each.sin() * each).sum() for each in params])
    total.backward()
    return total


def _values(params: list[Any], optimizer: Any) -> list[str]:
    state = [each for part in optimizer.state.values() for each in part.values()]
    return _bits([params, tensors_in(state)])


def _steps(name: str, options: dict[str, Any], compiled: bool) -> list[str]:
    params = _parameters(flambeau, name, "float32")
    optimizer = _made(flambeau, name, options, params)
    kept = optimizer.step

    def loss() -> Any:
        return _loss(flambeau, name, optimizer, params)

    def step() -> Any:
        return kept(loss) if name == "LBFGS" else (loss(), kept())[0]

    run_step = flambeau.compile(step) if compiled else step
    for _ in range(6):
        run_step()
    return _values(params, optimizer)


def _optimizer_compiled(name: str, options: dict[str, Any]) -> Iterator[str]:
    if _steps(name, options, False) != _steps(name, options, True):
        yield "other elements than the plain steps"


def _beside_pytorch(change: Callable[[Any, Any], Any]) -> Callable[[str, dict[str, Any]], Iterator[str]]:
    """Compares three steps on parameters that are changed first, in both libraries."""

    def of(T: Any, name: str, options: dict[str, Any]) -> list[Any]:
        params = [change(T, each.detach()).requires_grad_() for each in _parameters(T, name, "float64")]
        optimizer = _made(T, name, options, params)
        for _ in range(3):
            optimizer.step(lambda: _loss(T, name, optimizer, params))
        return [each.detach().clone() for each in params]

    def compare(name: str, options: dict[str, Any]) -> Iterator[str]:
        try:
            expected = of(pytorch, name, options)
        except Exception:
            raise NotCompared from None
        yield from differences(expected, of(flambeau, name, options), _IN_16_BITS if name == "Muon" else _CLOSE)

    return compare


def _with_gaps(T: Any, each: Any) -> Any:
    return T.stack([each, each], -1)[..., 0]


def _in_a_mode(name: str, options: dict[str, Any]) -> Iterator[str]:
    expected = _steps(name, options, False)
    with _Passing():
        actual = _steps(name, options, False)
    if expected != actual:
        yield "other elements than the plain steps"


def _on_meta(name: str, options: dict[str, Any]) -> Iterator[str]:
    def of(T: Any) -> list[str]:
        params = [each.detach().to("meta").requires_grad_() for each in _parameters(T, name, "float32")]
        optimizer = _made(T, name, options, params)
        for _ in range(2):
            for each in params:
                each.grad = T.empty_like(each)
            optimizer.step()
        return _shapes([params, [each for part in optimizer.state.values() for each in part.values()]])

    try:
        expected = of(pytorch)
    except Exception:
        raise NotCompared from None
    if expected != (actual := of(flambeau)):
        yield f"{actual}, not {expected}"


OPTIMIZER_STATES: dict[str, Callable[[str, dict[str, Any]], Iterator[str]]] = {
    "compile(step)": _optimizer_compiled,
    "dispatch mode": _in_a_mode,
    "non-contiguous": _beside_pytorch(_with_gaps),
    "zero size": _beside_pytorch(lambda T, each: each[:0] if each.dim() else each),
    "meta": _on_meta,
}


def examine_optimizer(name: str, state: str) -> Found:
    """What becomes of each of an optimizer's listed options in a state."""
    for entry in database(name).optim_inputs_func(device="cpu", dtype=pytorch.float64):
        options = {**entry.kwargs}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                yield next(OPTIMIZER_STATES[state](name, options), None)
            except NotCompared:
                continue
            except Exception as error:
                yield f"raises {text(error)} ({options})"


def main() -> int:
    """Counts, state by state, and prints what differs; 1 if something does."""
    parser = argparse.ArgumentParser(prog="python -m tests.conformance.modules", description=__doc__)
    parser.add_argument("--only", default="*", help="glob of names of modules and optimizers")
    parser.add_argument("--state", default="*", help="glob of states")
    parser.add_argument("--samples", type=int, default=4, help="of a module, in training and in evaluation each")
    options = parser.parse_args()
    counts: dict[str, Counter[bool]] = {}
    ways: list[tuple[str, str, Callable[[], Found]]] = []
    for state in MODULE_STATES:
        for info in module_db:
            examined = functools.partial(examine_module, info, state, options.samples)
            ways.append((info.module_cls.__name__, f"module, {state}", examined))
    for state in OPTIMIZER_STATES:
        ways += [(name, f"optimizer, {state}", functools.partial(examine_optimizer, name, state)) for name in NAMES]
    for name, state, examine in ways:
        if fnmatch.fnmatch(name, options.only) and fnmatch.fnmatch(state.partition(", ")[2], options.state):
            for found in examine():
                counts.setdefault(state, Counter())[found is None] += 1
                if found is not None:
                    print(f"{name}, {state}: {found}", flush=True)
    for state, count in counts.items():
        print(f"{state:26} {count[True]:5} of {count.total()}")
    return int(any(count[False] for count in counts.values()))


if __name__ == "__main__":
    raise SystemExit(main())
