"""Heads of keys that a model copies for the queries which share them: programs leave the copies out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import flambeau as torch
from flambeau import nn
from flambeau.compiler._compiled import Compiled

from .test_passes import bits, ops_of

Function = Callable[..., Any]
attend = nn.functional.scaled_dot_product_attention


def by_expand(x: Any, times: int = 2) -> Any:
    batch, heads, length, width = x.shape
    spread = x[:, :, None, :, :].expand(batch, heads, times, length, width)
    return spread.reshape(batch, heads * times, length, width)


def by_interleave(x: Any, times: int = 2) -> Any:
    return x.repeat_interleave(times, dim=1)


def given(keys: int, queries: int = 1, batch: int = 1, dtype: Any = torch.float32) -> list[Any]:
    torch.manual_seed(keys)
    made = [(batch, 4, queries, 8), (batch, 2, keys, 8), (batch, 2, keys, 8)]
    return [torch.randn(shape).to(dtype) for shape in made]


def hidden(keys: int, *sizes: int) -> Any:
    return torch.where(torch.arange(keys) % 3 == 1, float("-inf"), 0.0).expand(*sizes, keys)


@pytest.mark.parametrize("repeated", [by_expand, by_interleave])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
def test_copies_of_heads_are_left_out(repeated: Function, dtype: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def function(q: Any, k: Any, v: Any) -> Any:
        return attend(q, repeated(k), repeated(v)).double()

    for queries in (1, 3, 4):
        ops = ops_of(function, monkeypatch, *given(9, queries, 2, dtype))
        assert {*ops} <= {"attention", "to_copy"}


@pytest.mark.parametrize("sizes", [(1, 1), (2, 1, 1, 1), (1, 1, 1, 1)])
def test_a_mask_of_keys_alone_may_be_there(sizes: tuple[int, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    def function(q: Any, k: Any, v: Any, mask: Any) -> Any:
        return attend(q, by_expand(k), by_expand(v), attn_mask=mask)

    shape = sizes[:-1] if len(sizes) > 2 else sizes[:1]
    assert ops_of(function, monkeypatch, *given(9, 3, 2), hidden(9, *shape)) == ["attention"]


def of_one_query_each(q: Any, k: Any, v: Any) -> Any:
    return attend(q, by_expand(k), by_expand(v), attn_mask=hidden(9, 1, 4, 3) * 1)


def causal(q: Any, k: Any, v: Any) -> Any:
    return attend(q, by_expand(k), by_expand(v), is_causal=True)


def looked_at(q: Any, k: Any, v: Any) -> Any:
    copies = by_expand(k)
    return attend(q, copies, by_expand(v)), copies * 2


def handed_out(q: Any, k: Any, v: Any) -> Any:
    copies = by_expand(v)
    return attend(q, by_expand(k), copies), copies


def changed_between(q: Any, k: Any, v: Any) -> Any:
    keys = k * 2
    copies = by_expand(keys)
    found = keys.sum()
    keys.copy_(v)
    return attend(q, copies, by_expand(v)), found, keys


def changed_copies(q: Any, k: Any, v: Any) -> Any:
    copies = by_expand(k)
    copies[:, 1] = 0
    return attend(q, copies, by_expand(v))


def heads_apart(q: Any, k: Any, v: Any) -> Any:
    return attend(q, k.repeat(1, 2, 1, 1), v.repeat(1, 2, 1, 1))


def turned(q: Any, k: Any, v: Any) -> Any:
    return attend(q, by_expand(k.mT.contiguous().mT), by_expand(v.mT.contiguous().mT))


def one_of_two(q: Any, k: Any, v: Any) -> Any:
    return attend(q, by_expand(k), v.repeat(1, 2, 1, 1))


@pytest.mark.parametrize(
    "function",
    [
        of_one_query_each, causal, looked_at, handed_out, changed_between, changed_copies, heads_apart, turned,
        one_of_two,
    ],
)  # fmt: skip
def test_copies_that_count_stay(function: Function) -> None:
    compiled, args = Compiled(function), given(9, 3, 2)
    for _ in range(4):
        assert bits(compiled(*args)) == bits(function(*args))
    assert compiled.programs, compiled.reasons


def test_gradients_are_those_of_the_copies() -> None:
    def gradients(attention: Function) -> Any:
        leaves = [each.requires_grad_() for each in given(9, 3, 2)]
        attention(*leaves).square().sum().backward()
        return bits([each.grad for each in leaves])

    def function(q: Any, k: Any, v: Any) -> Any:
        return attend(q, by_expand(k), by_expand(v))

    compiled = Compiled(function)
    for _ in range(4):
        assert gradients(compiled) == gradients(function)


@pytest.mark.parametrize("repeated", [by_expand, by_interleave])
def test_all_lengths_have_the_bits_of_plain_calls(repeated: Function) -> None:
    def function(q: Any, k: Any, v: Any) -> Any:
        return attend(q, repeated(torch.cat([k, v], 2)), repeated(torch.cat([v, k], 2))).relu()

    compiled = Compiled(function)
    for _ in range(6):
        for length in (3, 4, 1, 8, 5, 17, 33, 48):
            args = given(length)
            assert bits(compiled(*args)) == bits(function(*args)), length
    assert len(compiled.programs) == 2, compiled.reasons


def longer_from_one(q: Any, k: Any, v: Any) -> Any:
    batch, heads, length, width = k.shape
    seen = 4 if length == 1 else length
    pairs = [each.unsqueeze(2).expand(batch, heads, 2, seen, width) for each in (k, v)]
    return attend(q, *[each.reshape(batch, heads * 2, seen, width) for each in pairs]) * 2


def longer_by_copies(q: Any, k: Any, v: Any) -> Any:
    batch, heads, length, width = k.shape
    shape = (batch, heads, 2 * length, width) if q.shape[1] == heads else (batch, heads * 2, length, width)
    pairs = [each.unsqueeze(2).expand(batch, heads, 2, length, width) for each in (k, v)]
    return attend(q, *[each.reshape(shape) for each in pairs]) * 2


def repeated_elsewhere(q: Any, k: Any, v: Any) -> Any:
    dim = 1 if k.shape[2] != 2 else 2
    return attend(q[:, :2] if dim == 2 else q, *[each.repeat_interleave(2, dim) for each in (k, v)]) * 2


@pytest.mark.parametrize("function", [longer_from_one, longer_by_copies, repeated_elsewhere])
def test_what_repeats_heads_at_one_length_may_do_something_else_at_another(function: Function) -> None:
    compiled = Compiled(function)
    for _ in range(6):
        for length in (3, 5, 4, 1, 2, 7):
            q, k, v = given(length)
            args = (q[:, :2] * 1 if function is longer_by_copies and length == 7 else q), k, v
            assert bits(compiled(*args)) == bits(function(*args)), length
    assert compiled.programs, compiled.reasons
