"""Writing where several elements are one memory location, or where what is read is being written.

Every in-place method is called on an expanded tensor, and ops that write where an operand or `out=` overlaps what they
read: both libraries must refuse, warn or accept alike.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch as pytorch

import flambeau

Case = tuple[str, Callable[[], Any]]

OVERLAP = ("more than one element of the written-to tensor", "some elements of the input tensor and the written-to")


def outcome(action: Callable[[], Any]) -> tuple[str, list[str]]:
    """'done', 'refused' (because of the overlap) or 'error', and the beginnings of the warnings about it."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            action()
            result = "done"
        except Exception as error:
            result = "refused" if any(phrase in str(error) for phrase in OVERLAP) else "error"
    given = {str(each.message) for each in caught}
    return result, sorted(each.partition(" is deprecated")[0] for each in given if "on expanded tensors" in each)


def _arguments(T: Any) -> list[tuple[Any, ...]]:
    """Arguments of which some fit any method of a 2 x 2 tensor."""
    index, mask, values = T.tensor([0, 1]), T.tensor([[True, False], [False, True]]), T.ones(2, 2)
    places = T.zeros(2, 2, dtype=T.int64)
    return [
        (), (2,), (values,), (values, values), (0.0, 1.0), (0, index, values), (0, index, 1.0), (0, places, values),
        (0, places, 1.0), (index, T.ones(2)), (mask, 1.0), (mask, values), (0,), (0.5,), ((index,), values[0]),
        (values, 0.5), (T.ones(2), T.ones(2)), (0, index, values, "amax"), (0, places, values, "sum"), ([4],),
    ]  # fmt: skip


METHODS = sorted(
    name
    for name in dir(pytorch.Tensor)
    if name.endswith("_") and not name.startswith("_") and not name.endswith("__") and hasattr(flambeau.Tensor, name)
)

STRICTER = {
    "conj_physical_ of real numbers changes nothing": ["conj_physical_"],
    "nan_to_num_ of integers changes nothing": ["nan_to_num_"],
    "PyTorch writes the triangles in an order that it does not tell": ["tril_", "triu_"],
}
"""Methods that Flambeau refuses on expanded tensors, and PyTorch does not."""


def _method_outcomes(T: Any, name: str, dtype: str, expanded: bool) -> list[tuple[str, list[str]]]:
    found = []
    for given in _arguments(T):
        target = T.ones(1, 2).to(getattr(T, dtype)).expand(2, 2)
        target = target if expanded else target.clone()
        arguments = tuple(
            each.to(target.dtype) if isinstance(each, T.Tensor) and each.dtype is T.float32 else each for each in given
        )
        T.manual_seed(0)
        found.append(outcome(lambda target=target, arguments=arguments: getattr(target, name)(*arguments)))
    return found


@pytest.mark.parametrize("name", METHODS)
def test_methods_on_expanded_tensors(name: str) -> None:
    differ = []
    for dtype in ("float32", "int64"):
        plain, in_pytorch = (_method_outcomes(pytorch, name, dtype, expanded) for expanded in (False, True))
        ours, in_flambeau = (_method_outcomes(flambeau, name, dtype, expanded) for expanded in (False, True))
        for position, (here, there) in enumerate(zip(in_pytorch, in_flambeau, strict=True)):
            works = plain[position][0] == ours[position][0] == "done"
            if works and here != there:
                differ.append((dtype, _arguments(pytorch)[position], here, there))
    if any(name in names for names in STRICTER.values()):
        assert differ, "it no longer differs: take it off the list"
        assert all((here, there) == (("done", []), ("refused", [])) for _, _, here, there in differ)
    else:
        assert not differ


def _with_overlap(T: Any) -> Iterator[Case]:
    """Ops that read one part of a tensor and write another."""
    places = {
        "shifted": (slice(0, 6), slice(1, 7)),
        "same": (slice(0, 6), slice(0, 6)),
        "apart": (slice(0, 6), slice(6, 12)),
        "interleaved": (slice(0, 12, 2), slice(1, 12, 2)),
        "partly": (slice(0, 12, 2), slice(0, 6)),
    }
    order = T.arange(6)
    all_true = T.ones(6, dtype=T.bool)
    integers = T.zeros(6, dtype=T.int64)
    floats: dict[str, Callable[[Any, Any], Any]] = {
        "add_": lambda a, b: a.add_(b),
        "copy_": lambda a, b: a.copy_(b),
        "addcmul_": lambda a, b: a.addcmul_(b, b),
        "lerp_": lambda a, b: a.lerp_(b, 0.5),
        "clamp_": lambda a, b: a.clamp_(b),
        "fill_": lambda a, b: a.fill_(b[0]),
        "index_add_": lambda a, b: a.index_add_(0, order, b),
        "index_copy_": lambda a, b: a.index_copy_(0, order, b),
        "index_reduce_": lambda a, b: a.index_reduce_(0, order, b, "amax"),
        "index_put_": lambda a, b: a.index_put_((order,), b),
        "put_": lambda a, b: a.put_(order, b),
        "scatter_": lambda a, b: a.scatter_(0, order, b),
        "scatter_add_": lambda a, b: a.scatter_add_(0, order, b),
        "scatter_reduce_": lambda a, b: a.scatter_reduce_(0, order, b, "amax"),
        "masked_scatter_": lambda a, b: a.masked_scatter_(all_true, b),
        "setitem": lambda a, b: a.__setitem__(slice(None), b),
        "setitem by index": lambda a, b: a.__setitem__(order, b),
        "cumsum_": lambda a, b: a.cumsum_(0),
        "add out": lambda a, b: T.add(b, 1, out=a),
        "sum out": lambda a, b: T.sum(b.reshape(6, 1), 1, out=a),
        "gather out": lambda a, b: T.gather(b, 0, order, out=a),
        "index_select out": lambda a, b: T.index_select(b, 0, order, out=a),
        "where out": lambda a, b: T.where(b > 0, a, b, out=a),
        "cat out": lambda a, b: T.cat([b], out=a),
        "take out": lambda a, b: T.take(b, order, out=a),
        "masked_select out": lambda a, b: T.masked_select(b, all_true, out=a),
        "cumsum out": lambda a, b: T.cumsum(b, 0, out=a),
        "addmv_": lambda a, b: a.addmv_(T.ones(6, 6), b),
    }
    indices: dict[str, Callable[[Any, Any], Any]] = {
        "index_add_ index": lambda a, b: a.index_add_(0, b, integers),
        "index_copy_ index": lambda a, b: a.index_copy_(0, b, integers),
        "index_fill_ index": lambda a, b: a.index_fill_(0, b, 0),
        "index_put_ index": lambda a, b: a.index_put_((b,), integers),
        "put_ index": lambda a, b: a.put_(b, integers),
        "scatter_ index": lambda a, b: a.scatter_(0, b, integers),
        "scatter_ index and number": lambda a, b: a.scatter_(0, b, 0),
        "scatter_add_ index": lambda a, b: a.scatter_add_(0, b, integers),
    }
    masks: dict[str, Callable[[Any, Any], Any]] = {"masked_fill_ mask": lambda a, b: a.masked_fill_(b, True)}
    for place, (written, read) in places.items():
        for dtype, ops in ((T.float32, floats), (T.int64, indices), (T.bool, masks)):
            for name, op in ops.items():
                memory = T.zeros(12, dtype=dtype)
                yield f"{place}: {name}", lambda op=op, m=memory, w=written, r=read: op(m[w], m[r])


def _on_expanded(T: Any) -> Iterator[Case]:
    """Assignments and functions, beside the methods, that write to an expanded tensor."""
    first = T.tensor([0])

    def expanded() -> Any:
        return T.zeros(1).expand(6)

    yield "setitem of one", lambda: expanded().__setitem__(0, 1.0)
    yield "setitem of all", lambda: expanded().__setitem__(slice(None), 1.0)
    yield "setitem by mask", lambda: expanded().__setitem__(T.ones(6, dtype=T.bool), 1.0)
    yield "setitem by index", lambda: expanded().__setitem__(first, 1.0)
    yield "setitem of a tensor", lambda: expanded().__setitem__(first, T.ones(1))
    yield "accumulating index_put_", lambda: expanded().index_put_((first,), T.ones(()), accumulate=True)
    yield "accumulating put_", lambda: expanded().put_(first, T.ones(1), accumulate=True)
    yield "iadd", lambda: expanded().__iadd__(1)
    yield "add out", lambda: T.add(T.ones(6), 1, out=expanded())
    yield "cumsum out", lambda: T.cumsum(T.ones(6), 0, out=expanded())
    yield "cat out", lambda: T.cat([T.ones(6)], out=expanded())
    yield "sum out", lambda: T.sum(T.ones(6, 2), -1, out=expanded())
    yield "zeros out", lambda: T.zeros(6, out=expanded())
    yield "dropout_", lambda: T.dropout_(expanded(), 0.5, True)
    yield "relu", lambda: T.nn.functional.relu(expanded(), inplace=True)
    yield "_foreach_add_", lambda: T._foreach_add_([expanded()], 1)


KNOWN = {
    "PyTorch multiplies with what it overwrites": ["shifted: addmv_"],
    "computed first and stored then: the result is right": [
        "same: masked_select out", "same: take out", "shifted: cumsum out",
    ],
    "the sums of PyTorch do not look at out=": ["sum out", "zeros out"],
}  # fmt: skip


@pytest.mark.parametrize("cases", [_with_overlap, _on_expanded])
def test_other_writes(cases: Callable[[Any], Iterator[Case]]) -> None:
    known = {name for names in KNOWN.values() for name in names}
    seen, differ = set(), {}
    for (name, here), (_, there) in zip(cases(pytorch), cases(flambeau), strict=True):
        seen.add(name)
        in_pytorch, in_flambeau = outcome(here), outcome(there)
        if in_pytorch != in_flambeau:
            differ[name] = (in_pytorch, in_flambeau)
    assert {name: found for name, found in differ.items() if name not in known} == {}
    assert known & seen == set(differ), "the list of exceptions has one that no longer differs"
