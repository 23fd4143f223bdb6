"""The operator database in further states: under transforms, modes and compilers, and with other arguments.

A state in which an operator gives what it gives without (inference mode, functionalization, dispatch modes, export,
compile) is compared with the plain call; the others with PyTorch in the same state. What PyTorch refuses in a state is
not compared.
"""

from __future__ import annotations

import copy
import functools
from collections.abc import Callable, Iterator
from typing import Any

import torch as pytorch

import flambeau

from .checks import Check, Outcome, arguments, compare_values, report, text, translated
from .compare import TENSORS, tensors_in
from .entries import UNINITIALISED, Entry
from .transforms import TRANSFORMS, transformed
from .undetermined import decided_by_rounding

Call = Callable[[], Any]
State = Callable[[Any, Any, Any, Any], Any]
"""Calls an op with arguments in a library."""


# What an op gives anyway


def _inference_mode(T: Any, op: Any, args: Any, kwargs: Any) -> Any:
    with T.inference_mode():
        return op(*args, **kwargs)


def _functionalized(T: Any, op: Any, args: Any, kwargs: Any) -> Any:
    return T.func.functionalize(lambda *given: op(*given, **kwargs))(*args)


def _dispatch_mode(T: Any, op: Any, args: Any, kwargs: Any) -> Any:
    class Passing(T.utils._python_dispatch.TorchDispatchMode):  # type: ignore[misc, name-defined]
        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            return func(*args, **(kwargs or {}))

    with Passing():
        return op(*args, **kwargs)


def _module(T: Any, op: Any, kwargs: Any) -> Any:
    class Module(T.nn.Module):  # type: ignore[misc, name-defined]
        def forward(self, *given: Any) -> Any:
            return op(*given, **kwargs)

    return Module()


def _exported(T: Any, op: Any, args: Any, kwargs: Any) -> Any:
    """What was exported with other numbers: none of them is a constant of the program."""
    before = T.get_rng_state()
    try:
        others = T.utils._pytree.tree_map(lambda each: _halved(T, each), tuple(args))
        op(*others, **kwargs)
    except Exception:
        others = tuple(args)
    T.set_rng_state(before)
    return T.export.export(_module(T, op, kwargs), others).module()(*args)


def _halved(T: Any, value: Any) -> Any:
    if not isinstance(value, T.Tensor) or not (value.is_floating_point() or value.is_complex()):
        return value
    return (value.detach() * 0.5).to(value.dtype)


def _compiled_module(T: Any, op: Any, args: Any, kwargs: Any) -> Any:
    if T is pytorch:  # to start its compiler takes seconds: it may refuse what the call as it is refuses
        return op(*args, **kwargs)
    compiled = T.compile(_module(T, op, kwargs))
    before = T.get_rng_state()
    for _ in range(5):
        T.set_rng_state(before)
        result = compiled(*copy.deepcopy(args))
    return result


_LIKE_PLAIN: dict[str, State] = {
    "inference mode": _inference_mode,
    "functionalize": _functionalized,
    "dispatch mode": _dispatch_mode,
    "export": _exported,
    "compiled module": _compiled_module,
}


def _copied(value: Any) -> Any:
    """Arguments of their own: ops may change them."""
    return pytorch.utils._pytree.tree_map(lambda each: each.clone() if isinstance(each, TENSORS) else each, value)


def _like_plain(state: State, entry: Entry, sample: Any) -> Iterator[str]:
    try:
        expected = _seeded(flambeau, lambda: entry.op(*_args(sample)[0], **_args(sample)[1]))
    except Exception:
        return  # the plain call is compared with PyTorch elsewhere
    try:
        actual = _seeded(flambeau, lambda: state(flambeau, entry.op, *_args(sample)))
    except Exception as error:
        if not _pytorch_refuses(state, entry, sample):
            yield f"raises {text(error)}"
        return
    found = next(_unlike(expected, actual, entry.info.name in UNINITIALISED), None)
    if found is not None and not _pytorch_differs(state, entry, sample):
        yield found


def _args(sample: Any) -> Any:
    return translated(sample.transform(lambda each: each.clone() if isinstance(each, pytorch.Tensor) else each))


def _seeded(T: Any, call: Call) -> Any:
    T.manual_seed(7)
    return call()


def _pytorch_refuses(state: State, entry: Entry, sample: Any) -> bool:
    try:
        state(pytorch, entry.info.op, *_copied(arguments(sample)))
    except Exception:
        return True
    return False


def _pytorch_differs(state: State, entry: Entry, sample: Any) -> bool:
    """Whether PyTorch's own result is another in this state: an exported program does not seed the generator again."""
    try:
        plain = _seeded(pytorch, lambda: entry.info.op(*_copied(arguments(sample))[0], **arguments(sample)[1]))
        there = _seeded(pytorch, lambda: state(pytorch, entry.info.op, *_copied(arguments(sample))))
    except Exception:
        return False
    return [repr(each.tolist()) for each in tensors_in(plain)] != [repr(each.tolist()) for each in tensors_in(there)]


def _unlike(expected: Any, actual: Any, only_shapes: bool) -> Iterator[str]:
    """Where two results of Flambeau's differ, to the bit."""
    left, right = tensors_in(expected), tensors_in(actual)
    if len(left) != len(right):
        yield f"{len(right)} tensors, not {len(left)}"
    for one, other in zip(left, right, strict=False):
        if (one.shape, one.dtype) != (other.shape, other.dtype):
            yield f"{list(other.shape)} {other.dtype}, not {list(one.shape)} {one.dtype}"
        elif not only_shapes and one.layout is flambeau.strided and not _same_bits(one, other):
            yield "other elements than the plain call"


def _same_bits(one: Any, other: Any) -> bool:
    return repr(one.detach().resolve_conj().tolist()) == repr(other.detach().resolve_conj().tolist())


def like_plain(state: State, entry: Entry, dtype: pytorch.dtype) -> Iterator[Outcome]:
    for sample in entry.samples(dtype):
        yield report(sample, _like_plain, state, entry, sample)


def fake(entry: Entry, dtype: pytorch.dtype) -> Iterator[Outcome]:
    """Shapes, dtypes and strides of fake tensors, where PyTorch has them."""

    def of(T: Any, op: Any, given: Any) -> Any:
        mode = T._subclasses.FakeTensorMode()
        tree = T.utils._pytree
        args, kwargs = tree.tree_map(lambda each: mode.from_tensor(each) if isinstance(each, T.Tensor) else each, given)
        with mode:
            return op(*args, **kwargs)

    def compare_fakes(sample: Any) -> Iterator[str]:
        try:
            expected = tensors_in(of(pytorch, entry.info.op, _copied(arguments(sample))))
        except Exception:
            return
        try:
            actual = tensors_in(of(flambeau, entry.op, _args(sample)))
        except Exception as error:
            yield f"raises {text(error)}"
            return
        if len(expected) != len(actual):
            yield f"{len(actual)} tensors, not {len(expected)}"
        for left, right in zip(expected, actual, strict=False):
            told = [(list(each.shape), str(each.dtype)) for each in (left, right)]
            if told[0] != told[1]:
                yield f"{told[1]}, not {told[0]}"

    for sample in entry.samples(dtype):
        yield report(sample, compare_fakes, sample)


def autocast(entry: Entry, dtype: pytorch.dtype) -> Iterator[Outcome]:
    """The dtypes of results under autocast."""

    def of(T: Any, op: Any, given: Any) -> list[str]:
        with T.autocast("cpu", dtype=T.bfloat16):
            return [f"{list(each.shape)} {each.dtype}" for each in tensors_in(op(*given[0], **given[1]))]

    def compare_dtypes(sample: Any) -> Iterator[str]:
        try:
            expected = of(pytorch, entry.info.op, _copied(arguments(sample)))
        except Exception:
            return
        try:
            actual = of(flambeau, entry.op, _args(sample))
        except Exception as error:
            yield f"raises {text(error)}"
            return
        if expected != actual:
            yield f"{actual}, not {expected}"

    for sample in entry.samples(dtype):
        yield report(sample, compare_dtypes, sample)


# Other arguments


def _transformed(change: Callable[[Any], Any], entry: Entry, dtype: pytorch.dtype) -> Iterator[Outcome]:
    def of(value: Any) -> Any:
        usable = isinstance(value, pytorch.Tensor) and value.layout is pytorch.strided and value.dim() > 0
        return change(value.detach()) if usable and value.numel() else value

    for sample in entry.samples(dtype):
        changed = sample.transform(of)
        if any(each.layout is not pytorch.strided for each in tensors_in(arguments(changed))):
            continue
        yield report(changed, _unless_open, entry, dtype, changed)


_OF_VIEWS = "Use .reshape(...) instead"
"""What PyTorch says where it takes views of arguments that lie otherwise than it expects: where it should not."""


_ROUNDING_DECIDES = ("values differ", "does not raise", "raises _LinAlgError", "raises LinAlgError")
"""What a difference says that rounding can explain: other numbers, and whether a matrix counts as singular."""


def _unless_open(entry: Entry, dtype: pytorch.dtype, sample: Any) -> Iterator[str]:
    """Where values differ, unless PyTorch's own turn with the last bit of the arguments."""
    try:
        found = next(compare_values(entry, dtype, sample), None)
    except AssertionError as difference:
        found = str(difference)
    if found is None or (found.startswith("does not raise") and _OF_VIEWS in found):
        return
    if not any(phrase in found for phrase in _ROUNDING_DECIDES) or not decided_by_rounding(entry, sample, dtype):
        yield found


def expanded(entry: Entry, dtype: pytorch.dtype) -> Iterator[Outcome]:
    """Every row is the first one, at the same place in memory."""
    if entry.info.inplace_variant is None or not entry.name.endswith("_"):
        yield from _transformed(lambda each: each[:1].expand_as(each), entry, dtype)


def zero_size(entry: Entry, dtype: pytorch.dtype) -> Iterator[Outcome]:
    """No rows."""
    yield from _transformed(lambda each: each[:0], entry, dtype)


IN_MAIN_DTYPE: dict[str, Check] = {
    **{name: functools.partial(like_plain, state) for name, state in _LIKE_PLAIN.items()},
    "fake": fake,
    "autocast": autocast,
    "expanded": expanded,
    "zero size": zero_size,
}
IN_DOUBLE: dict[str, Check] = {name: functools.partial(transformed, each) for name, each in TRANSFORMS.items()}
