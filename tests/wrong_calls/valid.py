"""Right calls of the whole public API, to be made wrong.

Most come from PyTorch's own databases of operators, modules and optimizers; the others are written down in
`written.py`. A case knows how to make its function and arguments anew for either library.
"""

from __future__ import annotations

import ast
import functools
import itertools
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import torch as pytorch
from torch.testing._internal.common_modules import module_db
from torch.testing._internal.common_optimizers import optim_db

import flambeau
from tests.conformance.entries import Entry, entries
from tests.conformance.translate import Missing, translate

from .written import CALLS

Call = tuple[Callable[..., Any], list[Any], dict[str, Any]]
Parameter = int | str
"""The position or the keyword of an argument."""

_SAMPLES = 3


class Case:
    """A right call: `make(library)` gives the function and fresh arguments."""

    def __init__(self, name: str, make: Callable[[Any], Call]) -> None:
        self.name = name
        self.make = make

    def __repr__(self) -> str:
        return self.name

    def parameters(self) -> list[Parameter]:
        """The arguments of the call: positions and keywords, which do not change when a library renames something."""
        _, args, kwargs = self.make(pytorch)
        return [*range(len(args)), *kwargs]


def _fresh(value: Any) -> Any:
    """A copy of PyTorch's tensors in `value`: calls may write into their arguments."""
    if isinstance(value, pytorch.Tensor):
        return value.detach().clone().requires_grad_(value.requires_grad) if not value.is_sparse else value.clone()
    if isinstance(value, (list, tuple)) and not hasattr(value, "_fields"):
        return type(value)([_fresh(each) for each in value])
    if isinstance(value, dict):
        return {key: _fresh(each) for key, each in value.items()}
    return value


def _case(name: str, function: Any, args: Any, kwargs: Any) -> Case:
    def make(library: Any) -> Call:
        if library is pytorch:
            return function, list(_fresh(list(args))), _fresh(kwargs)
        return translate(function), translate(list(args)), translate(kwargs)

    return Case(name, make)


def _samples(entry: Entry) -> list[Any]:
    """The first sample, and further ones that have arguments which those before it do not have."""
    chosen: list[Any] = []
    seen: set[Parameter] = set()
    for sample in itertools.islice(entry.samples(entry.main_dtype), 24):
        given = {*range(1 + len(sample.args)), *sample.kwargs}
        if not chosen or given - seen:
            chosen.append(sample)
            seen |= given
        if len(chosen) == _SAMPLES:
            break
    return chosen


class Group:
    """A function with its right calls, which are made when they are asked for: that takes longer than to run them."""

    def __init__(self, name: str, make: Callable[[], Iterator[Case]], is_written: bool = False) -> None:
        self.name = name
        self._make = make
        self.is_written = is_written

    def cases(self) -> list[Case]:
        """Its right calls; two with the same name are told apart by a number."""
        found: dict[str, int] = {}
        result = []
        for case in self._make():
            found[case.name] = found.get(case.name, 0) + 1
            if found[case.name] > 1:
                case.name = f"{case.name}#{found[case.name]}"
            result.append(case)
        return result


def _of_operator(entry: Entry) -> Iterator[Case]:
    info = entry.info
    functions = {entry.name: info.op}
    if info.method_variant is not None:
        functions[f"Tensor.{entry.name}"] = info.method_variant
    if info.inplace_variant is not None:
        functions[f"Tensor.{entry.name} in place"] = info.inplace_variant
    samples = _samples(entry)
    for name, function in functions.items():
        try:
            translate(function)
        except Missing:
            continue
        for sample in samples:
            if name == entry.name or isinstance(sample.input, pytorch.Tensor):
                yield _case(name, function, (sample.input, *sample.args), sample.kwargs)


def _of_module(info: Any) -> Iterator[Case]:
    name = f"nn.{info.module_cls.__name__}"
    try:
        path = f"{info.module_cls.__module__}.{info.module_cls.__name__}".removeprefix("torch.")
        ours = functools.reduce(getattr, path.split("."), flambeau)
    except AttributeError:
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        inputs = info.module_inputs_func(info, "cpu", pytorch.float32, False, True)
        for number, each in enumerate(itertools.islice(inputs, 2)):
            args, kwargs = each.constructor_input.args, each.constructor_input.kwargs
            yield _constructor(name, info.module_cls, ours, args, kwargs)
            if each.forward_input is not None and number == 0:
                yield _forward(f"{name}()", info.module_cls, ours, each)


def _constructor(name: str, theirs: Any, ours: Any, args: Any, kwargs: Any) -> Case:
    def make(library: Any) -> Call:
        if library is pytorch:
            return theirs, list(_fresh(list(args))), _fresh(kwargs)
        return ours, translate(list(args)), translate(kwargs)

    return Case(name, make)


def _forward(name: str, theirs: Any, ours: Any, sample: Any) -> Case:
    built, given = sample.constructor_input, sample.forward_input

    def make(library: Any) -> Call:
        if library is pytorch:
            module = theirs(*_fresh(built.args), **_fresh(built.kwargs))
            return module, list(_fresh(list(given.args))), _fresh(given.kwargs)
        module = ours(*translate(built.args), **translate(built.kwargs))
        return module, translate(list(given.args)), translate(given.kwargs)

    return Case(name, make)


def _of_optimizer(info: Any) -> Iterator[Case]:
    name = f"optim.{info.optim_cls.__name__}"
    ours = getattr(flambeau.optim, info.optim_cls.__name__, None)
    if ours is None:
        return
    given: dict[str, Any] = {}
    for each in info.optim_inputs_func(device="cpu"):
        given.update({name: value for name, value in each.kwargs.items() if name not in given})
    parameters = [pytorch.ones(2, 3, requires_grad=True)]
    yield _constructor(name, info.optim_cls, ours, [parameters], {})
    for option, value in given.items():
        alone = {option: value} if option == "lr" else {option: value, "lr": 1e-3}
        yield _constructor(f"{name}({option})", info.optim_cls, ours, [parameters], alone)


def _of_texts(name: str, texts: list[ast.Call]) -> Iterator[Case]:
    for tree in texts:
        yield _written(name, tree)


def _written(name: str, tree: ast.Call) -> Case:
    compiled = {id(each): compile(ast.Expression(each), name, "eval") for each in (tree.func, *tree.args)}
    keywords = {each.arg: compile(ast.Expression(each.value), name, "eval") for each in tree.keywords if each.arg}

    def make(library: Any) -> Call:
        scope = {"T": library, "F": library.nn.functional}
        function = eval(compiled[id(tree.func)], scope)
        args = [eval(compiled[id(each)], scope) for each in tree.args]
        return function, args, {word: eval(code, scope) for word, code in keywords.items()}

    return Case(name, make)


def groups() -> list[Group]:
    """Everything whose calls are made wrong."""
    texts: dict[str, list[ast.Call]] = {}
    for text in CALLS:
        tree = ast.parse(text, mode="eval").body
        assert isinstance(tree, ast.Call), text
        texts.setdefault(ast.unparse(tree.func).removeprefix("T.").replace("F.", "nn.functional."), []).append(tree)
    return [
        *(Group(name, functools.partial(_of_texts, f"written {name}", trees), True) for name, trees in texts.items()),
        *(Group(each.name, functools.partial(_of_operator, each)) for each in entries() if each.dtypes),
        *(Group(f"nn.{each.module_cls.__name__}", functools.partial(_of_module, each)) for each in module_db),
        *(Group(f"optim.{each.optim_cls.__name__}", functools.partial(_of_optimizer, each)) for each in optim_db),
    ]
