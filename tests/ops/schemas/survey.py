"""Makes the recorded calls under both libraries and compares results and changed arguments."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import torch as pytorch
import torch.ao.quantization.fx._decomposed  # (registers its operators)

import flambeau
import flambeau.ao.quantization.fx._decomposed  # (registers its operators)
from tests.conformance.compare import differences
from tests.conformance.translate import Missing, translate
from tests.conformance.undetermined import settled

from .calls import from_text, name_in, overload

_UNINITIALISED = ("empty", "new_empty", "_empty", "resize", "_resize")
"""Operators whose results hold whatever the memory held: their values are not compared."""

_IN_DATABASE = {"linalg_eig": "linalg.eig", "linalg_eigh": "linalg.eigh", "_linalg_eigh": "linalg.eigh"}
"""Operators that leave the signs of vectors open, by their names in the operator database."""


class Outcome(NamedTuple):
    """What a call gave here: `same`, `other` (another result, without a word), `error`, or `unclear`, and why."""

    operator: str
    kind: str
    reason: str = ""


def survey(lines: Iterable[str]) -> Iterator[Outcome]:
    """The outcomes of calls."""
    for line in lines:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                yield _outcome(line)
            except Exception as error:  # of what translates and compares: some layouts are beyond it
                yield Outcome(name_in(line), "unclear", f"{type(error).__name__}: {error}".partition("\n")[0][:160])


def _outcome(line: str) -> Outcome:
    name = name_in(line)
    call = from_text(line)
    memory: dict[int, Any] = {}
    try:
        ours = translate((call.args, call.kwargs), memory)
    except Missing as error:
        return Outcome(name, "error", f"Missing: {error}")
    ours = (ours[0], {word: _own_memory(each) for word, each in ours[1].items()})
    pytorch.manual_seed(0)
    try:
        expected = overload(name)(*call.args, **call.kwargs)
    except Exception as error:
        return Outcome(name, "unclear", f"PyTorch: {error}".partition("\n")[0][:160])
    space, _, rest = name.partition("::")
    operator, _, which = rest.partition(".")
    flambeau.manual_seed(0)
    try:
        found = getattr(getattr(getattr(flambeau.ops, space), operator), which or "default")
        actual = found(*ours[0], **ours[1])
    except Exception as error:
        return Outcome(name, "error", f"{type(error).__name__}: {error}".partition("\n")[0][:160])
    if operator.startswith(_UNINITIALISED):
        expected, actual = _emptied(expected), _emptied(actual)
    database_name = _IN_DATABASE.get(operator)
    if database_name is not None and not which.endswith(("out", "eigvals", "eigenvalues")):
        expected = settled(database_name, expected, call.args, call.kwargs)
        actual = settled(database_name, actual, *ours)
    wrong = next(iter(differences(_listed((expected, _tensors(call))), _listed((actual, _tensors(ours))))), None)
    return Outcome(name, "same") if wrong is None else Outcome(name, "other", wrong[:160])


def _tensors(arguments: Any) -> list[Any]:
    """The tensors among arguments, which a call may have changed."""
    if isinstance(arguments, (list, tuple)):
        return [found for each in arguments for found in _tensors(each)]
    if isinstance(arguments, dict):
        return _tensors(list(arguments.values()))
    return [arguments] if isinstance(arguments, (pytorch.Tensor, flambeau.Tensor)) else []


def _own_memory(value: Any) -> Any:
    """A place for results, in memory that can be given another size."""
    if isinstance(value, list):
        return [_own_memory(each) for each in value]
    is_plain = isinstance(value, flambeau.Tensor) and value.layout is flambeau.strided and value.is_contiguous()
    return value.clone() if is_plain else value


def _emptied(value: Any) -> Any:
    return (str(value.dtype), tuple(value.shape), tuple(value.stride())) if hasattr(value, "stride") else value


def _listed(value: Any) -> Any:
    """Containers as lists; formats, of which both libraries have their own, as text."""
    if isinstance(value, (list, tuple)):
        return [_listed(each) for each in value]
    if isinstance(value, dict):
        return {key: _listed(each) for key, each in value.items()}
    return str(value) if isinstance(value, (pytorch.memory_format, flambeau.memory_format)) else value
