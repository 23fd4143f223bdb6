"""The table in docs/random.md says which random functions give PyTorch's numbers: it is what comparing them gives.

`python tests/test_random_table.py --write` writes the page again, on ARM. On x86-64 the table must be the same but for
what `ON_X86_INSTEAD` says.
"""

from __future__ import annotations

import doctest
import sys
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch as pytorch

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import flambeau
from tests.support.oracle import ON_X86, older_than

PAGE = Path(__file__).resolve().parents[1] / "docs" / "random.md"
START, END = "<!-- table: begin -->\n", "<!-- table: end -->\n"
INTEGERS = ("bool", "uint8", "int8", "int16", "int32", "int64")
FLOATS = ("float16", "bfloat16", "float32", "float64")
COMPLEX = ("complex64", "complex128")
DTYPES = (*INTEGERS, *FLOATS, *COMPLEX)
SEEDS = (0, 2**40 + 7)
LENGTHS = (1, 15, 16, 17, 40, 301)

Draw = Callable[[Any, int, Any], Any]
"""From a library, a length and a dtype to a tensor or several."""


def spread(T: Any, low: float, high: float, length: int, dtype: Any) -> Any:
    """The same numbers between `low` and `high` in both libraries."""
    return T.from_numpy(np.random.RandomState(length).uniform(low, high, length)).to(dtype)


def filled(name: str, *arguments: Any) -> Draw:
    """A fill in place: of a contiguous tensor, of every other element, and of a transposed tensor."""

    def draw(T: Any, length: int, dtype: Any) -> Any:
        targets = (
            T.zeros(length, dtype=dtype),
            T.zeros(length, 2, dtype=dtype)[:, 1],
            T.zeros(length, 3, dtype=dtype).t(),
        )
        return [getattr(target, name)(*arguments) for target in targets]

    return draw


def layer(name: str, shape: tuple[int, ...], *arguments: Any, **keywords: Any) -> Draw:
    """A function of `nn.functional` on a tensor of `shape`, with the length in front."""

    def draw(T: Any, length: int, dtype: Any) -> Any:
        count = length * int(np.prod(shape, dtype=int))
        return getattr(T.nn.functional, name)(
            spread(T, -1, 1, count, dtype).reshape(length, *shape), *arguments, **keywords
        )

    return draw


FUNCTIONS: dict[str, Draw] = {
    "`rand`, `rand_like`": lambda T, n, d: [T.rand(n, dtype=d), T.rand_like(T.zeros(n, 2, dtype=d).t())],
    "`randn`, `randn_like`": lambda T, n, d: [T.randn(n, dtype=d), T.randn_like(T.zeros(n, 2, dtype=d).t())],
    "`randint`, `randint_like`": lambda T, n, d: [
        T.randint(0, 100, (n,), dtype=d),
        T.randint_like(T.zeros(n, dtype=d), 3, 9),
    ],
    "`randperm`": lambda T, n, d: T.randperm(min(n, 127), dtype=d),
    "`normal(float, float)`": lambda T, n, d: T.normal(0.3, 1.7, (n,), dtype=d),
    "`normal(Tensor, float)`": lambda T, n, d: T.normal(spread(T, -1, 1, n, d), 1.7),
    "`normal(float, Tensor)`": lambda T, n, d: T.normal(0.3, spread(T, 0.1, 2, n, d)),
    "`normal(Tensor, Tensor)`": lambda T, n, d: T.normal(spread(T, -1, 1, n, d), spread(T, 0.1, 2, n, d)),
    "`bernoulli(Tensor)`": lambda T, n, d: T.bernoulli(spread(T, 0, 1, n, d)),
    "`bernoulli(Tensor, p)`": lambda T, n, d: T.bernoulli(T.zeros(n, dtype=d), 0.3),
    "`multinomial`, one sample": lambda T, n, d: T.multinomial(spread(T, 0.1, 1, n * 3, d).reshape(3, n), 1),
    "`multinomial`, several": lambda T, n, d: T.multinomial(spread(T, 0.1, 1, n + 1, d), n // 2 + 1),
    "`multinomial`, with replacement": lambda T, n, d: T.multinomial(
        spread(T, 0.1, 1, n * 3, d).reshape(3, n), 9, True
    ),
    "`poisson`": lambda T, n, d: [T.poisson(spread(T, 0, high, n, d)) for high in (3, 50, 2000)],
    "`binomial`": lambda T, n, d: [
        T.binomial(T.full((n,), count, dtype=d), spread(T, 0, 1, n, d)) for count in (5, 100, 10_000)
    ],
    "`_standard_gamma`": lambda T, n, d: [T._standard_gamma(spread(T, 0.01, high, n, d)) for high in (1, 20)],
    "`_sample_dirichlet`": lambda T, n, d: T._sample_dirichlet(spread(T, 0.1, 4, n * 10, d).reshape(n, 10)),
    "`Tensor.uniform_`": filled("uniform_", -0.3, 1.7),
    "`Tensor.normal_`": filled("normal_", 0.3, 1.7),
    "`Tensor.log_normal_`": filled("log_normal_", 0.3, 0.7),
    "`Tensor.exponential_`": filled("exponential_", 1.7),
    "`Tensor.cauchy_`": filled("cauchy_", 0.3, 1.7),
    "`Tensor.geometric_`": filled("geometric_", 0.3),
    "`Tensor.bernoulli_(p)`": filled("bernoulli_", 0.3),
    "`Tensor.bernoulli_(Tensor)`": lambda T, n, d: T.zeros(n, dtype=d).bernoulli_(spread(T, 0, 1, n, T.float32)),
    "`Tensor.random_()`": filled("random_"),
    "`Tensor.random_(to)`": filled("random_", 2),
    "`Tensor.random_(from, to)`": filled("random_", -(2**40), 2**60),
    "`Tensor.random_(-2**63, None)`": filled("random_", -(2**63), None),
    "`nn.functional.dropout`": layer("dropout", (3,), 0.3),
    "`nn.functional.alpha_dropout`": layer("alpha_dropout", (3,), 0.3, training=True),
    "`nn.functional.feature_alpha_dropout`": layer("feature_alpha_dropout", (3, 2), 0.3, training=True),
    "`nn.functional.dropout1d`": layer("dropout1d", (3, 2), 0.3),
    "`nn.functional.dropout2d`": layer("dropout2d", (3, 2, 2), 0.3),
    "`nn.functional.dropout3d`": layer("dropout3d", (3, 2, 2, 2), 0.3),
    "`nn.functional.rrelu`": layer("rrelu", (3,), training=True),
    "`nn.functional.gumbel_softmax(hard=True)`": layer("gumbel_softmax", (3,), hard=True),
    "`nn.functional.fractional_max_pool2d`": layer("fractional_max_pool2d", (2, 9, 9), 2, (5, 4)),
    "`nn.functional.fractional_max_pool3d`": layer("fractional_max_pool3d", (2, 6, 6, 6), 2, (3, 4, 3)),
}

REASONS = {
    "`multinomial`, several": "equal scores come in another order, and in two bytes many are equal",
    "`nn.functional.fractional_max_pool2d`": "the places of the windows are computed in four bytes, by PyTorch in two",
    "`nn.functional.fractional_max_pool3d`": "the places of the windows are computed in four bytes, by PyTorch in two",
}
"""Why a function does not give PyTorch's numbers, in the dtypes in which it does not."""

ON_X86_INSTEAD = {
    ("`_sample_dirichlet`", "float64"): "last place",
}
"""Cells that are others on x86-64, where PyTorch adds the numbers of a row in wider vectors."""


def observed(T: Any, draw: Draw, dtype: str, seed: int) -> Iterator[Any]:
    """The numbers of a sequence of calls, and the state of the generator at its end."""
    T.manual_seed(seed)
    for length in LENGTHS:
        drawn = draw(T, length, getattr(T, dtype))
        yield from drawn if isinstance(drawn, (list, tuple)) else (drawn,)
    yield T.get_rng_state()


def bits(tensor: Any, T: Any) -> Any:
    tensor = tensor.contiguous()
    return (tensor.view(T.int16) if tensor.dtype is T.bfloat16 else tensor).numpy()


def agreement(draw: Draw, dtype: str) -> str:
    """`yes`, `last place`, `no`, or nothing where PyTorch has no such function."""
    result = "yes"
    for seed in SEEDS:
        try:
            expected = list(observed(pytorch, draw, dtype, seed))
        except (RuntimeError, ValueError):
            return ""
        found = list(observed(flambeau, draw, dtype, seed))
        for theirs, ours in zip(expected, found, strict=True):
            assert theirs.shape == ours.shape
            assert str(theirs.dtype) == str(ours.dtype)
            if bits(theirs, pytorch).tobytes() == bits(ours, flambeau).tobytes():
                continue
            if not _within_last_place(theirs, ours):
                return "no"
            result = "last place"
    return result


def _within_last_place(theirs: Any, ours: Any) -> bool:
    if not theirs.is_floating_point():
        return False
    precision = pytorch.finfo(theirs.dtype).eps
    expected, found = theirs.double().numpy(), ours.double().numpy()
    return bool((np.abs(found - expected) <= 3 * precision * np.abs(expected)).all())


def notes() -> list[str]:
    return list(dict.fromkeys(REASONS.values()))


def _agreement(name: str, dtype: str) -> str:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about float types that do not hold every integer of a range
        return agreement(FUNCTIONS[name], dtype)


def cell(name: str, dtype: str) -> str:
    result = _agreement(name, dtype)
    if result == "no":
        assert name in REASONS, f"{name} in {dtype}: other numbers than PyTorch's, for no known reason"
        return f"no ({notes().index(REASONS[name]) + 1})"
    return result


def table() -> str:
    """The part of the page that the comparison writes."""
    lines = [f"| | {' | '.join(DTYPES)} |", "|---" * (len(DTYPES) + 1) + "|"]
    lines += [f"| {name} | {' | '.join(cell(name, dtype) for dtype in DTYPES)} |" for name in FUNCTIONS]
    reasons = [f"({number}) {reason}." for number, reason in enumerate(notes(), 1)]
    return "\n".join([*lines, "", "\n\n".join(reasons), ""])


def page_table() -> str:
    page = PAGE.read_text()
    return page[page.index(START) + len(START) : page.index(END)]


@pytest.mark.skipif(ON_X86, reason="the page's table is made on ARM")
def test_the_page_says_what_the_comparison_gives() -> None:
    with pytorch.random.fork_rng(), flambeau.random.fork_rng():
        expected = table()
    assert page_table() == expected, "docs/random.md: write it again by `python tests/test_random_table.py --write`"


@pytest.mark.skipif(not ON_X86, reason="about PyTorch on x86-64")
def test_the_page_holds_on_x86() -> None:
    rows = [row.strip("| \n").split(" | ") for row in page_table().splitlines() if row.startswith("| `")]
    on_page = {
        (name.strip(), dtype): found.strip()
        for name, *cells in rows
        for dtype, found in zip(DTYPES, cells, strict=False)
    }
    # Before 2.13 PyTorch drew numbers of two bytes in another way.
    dtypes = [each for each in DTYPES if not (older_than(2, 13) and each in ("float16", "bfloat16"))]
    with pytorch.random.fork_rng(), flambeau.random.fork_rng():
        found = {(name, dtype): _agreement(name, dtype) for name in FUNCTIONS for dtype in dtypes}
    expected = {key: ON_X86_INSTEAD.get(key, on_page.get(key, "").split(" (")[0]) for key in found}
    others = {key: each for key, each in found.items() if each != expected[key]}
    assert not others, others


def test_the_example_of_the_page() -> None:
    with flambeau.random.fork_rng():
        assert doctest.testfile(str(PAGE), module_relative=False) == doctest.TestResults(0, 5)


if __name__ == "__main__":
    text = PAGE.read_text()
    if sys.argv[1:] == ["--write"]:
        PAGE.write_text(text[: text.index(START) + len(START)] + table() + text[text.index(END) :])
    else:
        print(table())
