"""What is compared for an entry of the operator database. A check yields one outcome for each sample.

An outcome is None where Flambeau does as PyTorch does, otherwise a line that says what differs. Where PyTorch raises an
error for a sample, Flambeau must raise one of that type.
"""

from __future__ import annotations

import functools
import itertools
import re
import warnings
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

import torch as pytorch

import flambeau

from .compare import differences, sharing, strides_differ, tensors_in
from .entries import UNINITIALISED, Entry
from .translate import Missing, tensor, translate
from .undetermined import settled

Outcome = str | None
Check = Callable[[Entry, pytorch.dtype], Iterator[Outcome]]
Item = TypeVar("Item")
SEED = 7


class Same(Exception):
    """Both libraries refuse the sample in the same way, or PyTorch fails at it: nothing is left to compare."""


def arguments(sample: Any) -> tuple[tuple[Any, ...], dict[str, Any]]:
    return (sample.input, *sample.args), sample.kwargs


def translated(sample: Any) -> tuple[tuple[Any, ...], dict[str, Any]]:
    memory: dict[int, Any] = {}
    args, kwargs = arguments(sample)
    return translate(args, memory), translate(kwargs, memory)


def text(error: BaseException) -> str:
    return f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"[:300]


def _is_a(error: BaseException, name: str) -> bool:
    return any(base.__name__ == name for base in type(error).__mro__)


_ITS_OWN = ("INTERNAL ASSERT", "MKL FFT error")
"""What PyTorch says where it fails itself: nobody relies on such an error."""


def both(in_pytorch: Callable[[], Any], in_flambeau: Callable[[], Any]) -> tuple[Any, Any]:
    """The two results; AssertionError where only one raises, `Same` where both do."""
    refused: Exception | None = None
    expected = None
    pytorch.manual_seed(SEED)
    try:
        expected = in_pytorch()
    except Exception as error:
        if any(phrase in str(error) for phrase in _ITS_OWN):
            raise Same from None
        refused = error
    flambeau.manual_seed(SEED)
    try:
        actual = in_flambeau()
    except Missing:
        raise
    except Exception as error:
        if refused is None:
            raise AssertionError(f"raises {text(error)}") from error
        if not _is_a(error, type(refused).__name__):
            raise AssertionError(f"raises {text(error)}, not {text(refused)}") from error
        raise Same from None
    if refused is not None:
        raise AssertionError(f"does not raise {text(refused)}")
    return expected, actual


def report(sample: Any, compare: Callable[..., Iterator[str]], *details: Any) -> Outcome:
    """The outcome of one sample: the first difference that `compare` finds, if any."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = next(compare(*details), None)
    except Same:
        return None
    except AssertionError as difference:
        found = str(difference)
    return None if found is None else f"{found} [{_summary(sample)}]"


def _summary(sample: Any) -> str:
    try:
        text = str(sample.summary())
    except Exception:
        text = "sample"
    return " ".join(text.split())[:240]


_WIDER = {
    pytorch.float16: pytorch.float64,
    pytorch.bfloat16: pytorch.float64,
    pytorch.float32: pytorch.float64,
    pytorch.complex32: pytorch.complex128,
    pytorch.complex64: pytorch.complex128,
}


def _unlike(
    entry: Entry, dtype: pytorch.dtype, sample: Any, expected: Any, actual: Any, theirs: Callable[..., Any]
) -> Iterator[str]:
    """Where results differ. A number that differs from PyTorch's is right too where it is nearer to the exact one."""
    tolerance = entry.tolerance(dtype)
    found = next(differences(expected, actual, tolerance), None)
    if found is None:
        return
    try:
        args, kwargs = arguments(sample.transform(functools.partial(_widened, tested=dtype)))
        exact = settled(entry.info.name, theirs(*args, **kwargs), args, kwargs)
    except Exception:
        yield found
        return
    yield from differences(expected, actual, tolerance, exact=exact)


def _widened(value: Any, tested: pytorch.dtype) -> Any:
    if isinstance(value, pytorch.Tensor):
        # Integers too, where it is their turn: functions that turn them into floats have rounding of their own.
        wider = pytorch.float64 if value.dtype is tested else value.dtype
        return value.detach().to(_WIDER.get(value.dtype, wider))
    return _WIDER.get(value, value) if isinstance(value, pytorch.dtype) else value


def compare_values(entry: Entry, dtype: pytorch.dtype, sample: Any, op: Any = None, ours: Any = None) -> Iterator[str]:
    args, kwargs = arguments(sample)
    our_args, our_kwargs = translated(sample)
    theirs, ours = op or entry.info.op, ours or entry.op
    expected, actual = both(lambda: theirs(*args, **kwargs), lambda: ours(*our_args, **our_kwargs))
    shared, our_shared = sharing(expected, (args, kwargs)), sharing(actual, (our_args, our_kwargs))
    if shared != our_shared:
        yield f"shares memory with inputs {our_shared}, not {shared}"
    if entry.info.name in UNINITIALISED:
        expected = [each.to("meta") for each in tensors_in(expected)]
        actual = [each.to("meta") for each in tensors_in(actual)]
    expected = settled(entry.info.name, expected, args, kwargs)
    actual = settled(entry.info.name, actual, our_args, our_kwargs)
    yield from _unlike(entry, dtype, sample, expected, actual, theirs)


def values(entry: Entry, dtype: pytorch.dtype) -> Iterator[Outcome]:
    """Value, dtype, shape, and which input a result shares memory with."""
    for sample in entry.samples(dtype):
        yield report(sample, compare_values, entry, dtype, sample)


def noncontiguous(entry: Entry, dtype: pytorch.dtype) -> Iterator[Outcome]:
    """The same with inputs that lie in memory with gaps."""
    for sample in entry.samples(dtype):
        spread = _with_gaps_between(sample)
        if spread is not None:
            yield report(spread, compare_values, entry, dtype, spread)


def _with_gaps_between(sample: Any) -> Any:
    """The sample with inputs that lie in memory with gaps; None where it has a sparse one, which cannot."""
    if any(each.layout is not pytorch.strided for each in tensors_in(arguments(sample))):
        return None
    return sample.noncontiguous()


def strides(entry: Entry, dtype: pytorch.dtype) -> Iterator[Outcome]:
    """The strides of the results."""

    def compare(sample: Any) -> Iterator[str]:
        args, kwargs = arguments(sample)
        our_args, our_kwargs = translated(sample)
        expected, actual = both(lambda: entry.info.op(*args, **kwargs), lambda: entry.op(*our_args, **our_kwargs))
        for left, right in zip(tensors_in(expected), tensors_in(actual), strict=True):
            difference = strides_differ(left, right)
            if difference:
                yield difference

    for sample in entry.samples(dtype):
        yield report(sample, compare, sample)
        spread = _with_gaps_between(sample)
        if spread is not None:
            yield report(spread, compare, spread)


def method(entry: Entry, dtype: pytorch.dtype) -> Iterator[Outcome]:
    """The method of a tensor."""
    variant = entry.info.method_variant
    if variant is None:
        return
    ours = translate(variant)
    for sample in entry.samples(dtype):
        if isinstance(sample.input, pytorch.Tensor):
            yield report(sample, compare_values, entry, dtype, sample, variant, ours)


def inplace(entry: Entry, dtype: pytorch.dtype) -> Iterator[Outcome]:
    """The in-place form: what the tensor holds afterwards, and that it is what the call returns."""
    variants = [entry.info.inplace_variant, entry.info.inplace_operator_variant]
    for variant in filter(None, variants):
        ours = translate(variant)

        def compare(sample: Any, variant: Any = variant, ours: Any = ours) -> Iterator[str]:
            copied = sample.transform(lambda each: each.clone() if isinstance(each, pytorch.Tensor) else each)
            args, kwargs = arguments(copied)
            our_args, our_kwargs = translated(copied)
            expected, actual = both(lambda: variant(*args, **kwargs), lambda: ours(*our_args, **our_kwargs))
            original = sample.transform(lambda each: each.clone() if isinstance(each, pytorch.Tensor) else each)
            yield from _unlike(entry, dtype, original, expected, actual, variant)
            if expected is args[0] and actual is not our_args[0]:
                yield "does not return the tensor itself"

        for sample in entry.samples(dtype):
            if isinstance(sample.input, pytorch.Tensor) and not sample.broadcasts_input:
                yield report(sample, compare, sample)


def out(entry: Entry, dtype: pytorch.dtype) -> Iterator[Outcome]:
    """`out=` of the right kind, an empty one that grows, one with gaps, and one of another dtype."""
    if not entry.info.supports_out:
        return

    def compare(sample: Any, prepare: Callable[[pytorch.Tensor], pytorch.Tensor]) -> Iterator[str]:
        args, kwargs = arguments(sample)
        if "out" in kwargs:
            return
        our_args, our_kwargs = translated(sample)
        try:
            results = entry.info.op(*args, **kwargs)
        except Exception:
            return
        single = isinstance(results, pytorch.Tensor)
        if not single and not (isinstance(results, tuple) and all(map(pytorch.is_tensor, results))):
            return
        targets = tuple(prepare(each) for each in tensors_in(results))
        our_targets = tuple(tensor(each) for each in targets)
        target, our_target = (targets[0], our_targets[0]) if single else (targets, our_targets)
        expected, actual = both(
            lambda: entry.info.op(*args, **kwargs, out=target),
            lambda: entry.op(*our_args, **our_kwargs, out=our_target),
        )
        if entry.info.name in UNINITIALISED:
            return
        for left, right in zip(targets, our_targets, strict=True):
            difference = strides_differ(left, right)
            if difference:
                yield f"out {difference}"
        if expected is None:  # some operators return nothing here
            expected, actual = targets, our_targets if actual is None else actual
        if any(given is not right for given, right in zip(tensors_in(actual), our_targets, strict=True)):
            yield "does not return out"
        if prepare in (_alike, _none) and not _equal(expected, results):
            # PyTorch left `out` as it was: its result is the one without it
            expected = results.resolve_conj() if single else tuple(each.resolve_conj() for each in results)
        expected = settled(entry.info.name, expected, args, kwargs)
        actual = settled(entry.info.name, actual, our_args, our_kwargs)
        yield from _unlike(entry, dtype, sample, expected, actual, entry.info.op)

    for sample in _first(entry.samples(dtype), 12):
        for prepare in (_alike, _none, _with_gaps, _whole_numbers):
            yield report(sample, compare, sample, prepare)


def _equal(left: Any, right: Any) -> bool:
    return all(
        a.shape == b.shape and bool(((a == b) | ((a != a) & (b != b))).all())
        for a, b in zip(tensors_in(left), tensors_in(right), strict=True)
        if a.layout is pytorch.strided
    )


def _alike(result: pytorch.Tensor) -> pytorch.Tensor:
    return pytorch.ones_like(result, requires_grad=False)


def _none(result: pytorch.Tensor) -> pytorch.Tensor:
    return pytorch.empty(0, dtype=result.dtype)


def _with_gaps(result: pytorch.Tensor) -> pytorch.Tensor:
    return pytorch.ones((*result.shape, 2), dtype=result.dtype)[..., 0]


def _whole_numbers(result: pytorch.Tensor) -> pytorch.Tensor:
    return pytorch.ones(result.shape, dtype=pytorch.int64)


def meta(entry: Entry, dtype: pytorch.dtype) -> Iterator[Outcome]:
    """Shape and dtype on the meta device, where PyTorch has them."""

    def compare(sample: Any) -> Iterator[str]:
        shadow = sample.transform(lambda each: each.to("meta") if isinstance(each, pytorch.Tensor) else each)
        args, kwargs = arguments(shadow)
        if "device" in kwargs:
            kwargs = {**kwargs, "device": "meta"}
        try:
            expected = entry.info.op(*args, **kwargs)
        except Exception:
            return
        our_args, our_kwargs = translate(args), translate(kwargs)
        _, actual = both(lambda: expected, lambda: entry.op(*our_args, **our_kwargs))
        yield from differences(expected, actual)

    for sample in entry.samples(dtype):
        yield report(sample, compare, sample)


def _refused(entry: Entry, sample: Any) -> bool:
    """Whether PyTorch itself refuses it: the database is not always right."""
    args, kwargs = arguments(sample)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            entry.info.op(*args, **kwargs)
    except Exception:
        return True
    return False


_ABOUT_ITS_CODE = ("static_cast",)
"""Messages about PyTorch's own source: nobody searches for these words."""


def errors(entry: Entry, dtype: pytorch.dtype) -> Iterator[Outcome]:
    """Wrong input gives PyTorch's type of error, and the words of its message that the database looks for."""
    for wrong in entry.error_inputs():
        sample = wrong.sample_input
        if not _refused(entry, wrong.sample_input):
            continue
        name = wrong.error_type.__name__
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                args, kwargs = translated(sample)  # which may be refused already: a tensor of too many dimensions
                entry.op(*args, **kwargs)
        except Missing as missing:
            yield f"needs {missing}"
        except Exception as error:
            if not _is_a(error, name):
                yield f"raises {text(error)}, not {name} [{_summary(sample)}]"
            elif any(word in wrong.error_regex for word in _ABOUT_ITS_CODE) or re.search(wrong.error_regex, str(error)):
                yield None
            else:
                yield f"says {text(error)}, not {wrong.error_regex} [{_summary(sample)}]"[:400]
        else:
            yield f"does not raise {name}: {wrong.error_regex} [{_summary(sample)}]"[:400]


def _first(items: Iterator[Item], count: int) -> Iterator[Item]:
    return itertools.islice(items, count)
