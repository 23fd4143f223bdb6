"""Attention over sequences of different lengths that stand end to end, without padding."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import flambeau as torch

from ..._core.tensor import Tensor

__all__ = ["AuxRequest", "varlen_attn", "varlen_attn_out"]


class AuxRequest(NamedTuple):
    """What is wanted beside the result: `lse`, the logarithm of the sum of each row's exponentials."""

    lse: bool = False


def _pages(pool: Tensor, table: Tensor, length: int) -> Tensor:
    """The first `length` tokens of one sequence, whose pages stand anywhere in a pool."""
    size = pool.shape[1]
    chosen = pool[table[: math.ceil(length / size)].long()]
    return chosen.reshape(-1, *pool.shape[2:])[:length]


def _one(q: Tensor, k: Tensor, v: Tensor, scale: float, window: tuple[int, int]) -> tuple[Tensor, Tensor]:
    """Attention of one sequence, (tokens, heads, width), and the logarithms of its sums, (heads, tokens)."""
    groups = q.shape[1] // k.shape[1]
    k, v = (each.repeat_interleave(groups, 1) if groups > 1 else each for each in (k, v))
    scores = (q.transpose(0, 1).float() @ k.permute(1, 2, 0).float()) * scale
    left, right = window
    if left >= 0 or right >= 0:
        # The last query stands beside the last key.
        distance = torch.arange(k.shape[0]) - (torch.arange(q.shape[0]) + k.shape[0] - q.shape[0]).unsqueeze(1)
        hidden = (distance > right) if right >= 0 else distance > k.shape[0]
        if left >= 0:
            hidden = hidden | (distance < -left)
        scores = scores.masked_fill(hidden, -math.inf)
    sums = scores.logsumexp(-1)
    weights = (scores - sums.unsqueeze(-1)).exp().nan_to_num(0.0)
    return (weights @ v.transpose(0, 1).float()).transpose(0, 1).to(q.dtype), sums


def varlen_attn(
    query: Tensor, key: Tensor, value: Tensor, cu_seq_q: Tensor, cu_seq_k: Tensor | None, max_q: int, max_k: int, *,
    return_aux: AuxRequest | None = None, scale: float | None = None, window_size: tuple[int, int] = (-1, -1),
    enable_gqa: bool = False, seqused_k: Tensor | None = None, block_table: Tensor | None = None,
    num_splits: int | None = None,
) -> Any:  # fmt: skip
    """`scaled_dot_product_attention` of each sequence by itself: (tokens of all, heads, width) in and out.

    Sequence i has the queries from `cu_seq_q[i]` to `cu_seq_q[i + 1]`; `window_size` says how far to the left and to
    the right a query sees, -1 meaning all the way. With `block_table`, keys and values are pages of a pool.
    """
    if not enable_gqa and query.shape[1] != key.shape[-2]:
        raise ValueError(f"{query.shape[1]} heads of queries and {key.shape[-2]} of keys need enable_gqa=True")
    if query.shape[1] % key.shape[-2]:
        raise ValueError(f"{query.shape[1]} heads of queries are no multiple of {key.shape[-2]} of keys")
    if block_table is not None and seqused_k is None:
        raise ValueError("block_table needs seqused_k: how many tokens of each sequence are in use")
    factor = 1 / math.sqrt(query.shape[-1]) if scale is None else scale
    starts = cu_seq_q.tolist()
    ends = None if cu_seq_k is None else cu_seq_k.tolist()
    used = None if seqused_k is None else seqused_k.tolist()
    results, sums = [], []
    for at in range(len(starts) - 1):
        q = query[starts[at] : starts[at + 1]]
        if block_table is not None and used is not None:
            k, v = (_pages(each, block_table[at], used[at]) for each in (key, value))
        else:
            own = starts if ends is None else ends
            stop = own[at + 1] if used is None else own[at] + used[at]
            k, v = key[own[at] : stop], value[own[at] : stop]
        result, logarithms = _one(q, k, v, factor, window_size)
        results.append(result)
        sums.append(logarithms)
    whole = torch.cat(results)
    return (whole, torch.cat(sums, 1)) if return_aux is not None and return_aux.lse else whole


def varlen_attn_out(
    out: Tensor, query: Tensor, key: Tensor, value: Tensor, cu_seq_q: Tensor, cu_seq_k: Tensor | None, max_q: int,
    max_k: int, *, return_aux: AuxRequest | None = None, scale: float | None = None,
    window_size: tuple[int, int] = (-1, -1), enable_gqa: bool = False, seqused_k: Tensor | None = None,
    block_table: Tensor | None = None, num_splits: int | None = None,
) -> Any:  # fmt: skip
    """Attention of sequences of several lengths, into a tensor that is there."""
    found = varlen_attn(
        query, key, value, cu_seq_q, cu_seq_k, max_q, max_k, return_aux=return_aux, scale=scale,
        window_size=window_size, enable_gqa=enable_gqa, seqused_k=seqused_k, block_table=block_table,
        num_splits=num_splits,
    )  # fmt: skip
    if isinstance(found, tuple):
        return out.copy_(found[0]), found[1]
    return out.copy_(found)
