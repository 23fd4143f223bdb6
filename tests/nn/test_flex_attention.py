"""`nn.attention.flex_attention`: masks by blocks, functions of scores, gradients, all beside PyTorch's."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

import pytest

import flambeau
from tests.support.differential import differential, outcome


def flex(T: Any) -> Any:
    return importlib.import_module(f"{T.__name__}.nn.attention.flex_attention")


def causal(b: Any, h: Any, q: Any, kv: Any) -> Any:
    return q >= kv


def window(b: Any, h: Any, q: Any, kv: Any) -> Any:
    return q - kv <= 9


def by_head(b: Any, h: Any, q: Any, kv: Any) -> Any:
    return (q + h) % 3 != (kv + b) % 3


MASKS: dict[str, Callable[[Any], Any]] = {
    "causal": lambda F: causal,
    "window": lambda F: F.and_masks(causal, window),
    "either": lambda F: F.or_masks(causal, by_head),
    "by_head": lambda F: by_head,
    "none": lambda F: F.noop_mask,
}


def parts(mask: Any) -> Any:
    """What a mask consists of."""
    names = ("kv_num_blocks", "kv_indices", "full_kv_num_blocks", "full_kv_indices", "q_num_blocks", "q_indices",
             "full_q_num_blocks", "full_q_indices")  # fmt: skip
    shown = [None if getattr(mask, each) is None else getattr(mask, each).contiguous() for each in names]
    return shown, mask.shape, mask.seq_lengths, mask.BLOCK_SIZE, mask.numel(), mask.sparsity(), mask.to_dense()


@pytest.mark.parametrize("name", MASKS)
@pytest.mark.parametrize("block", [8, (16, 8)])
@differential
def test_block_masks(T: Any, name: str, block: Any) -> Any:
    F = flex(T)
    mask = F.create_block_mask(MASKS[name](F), 2, 3, 40, 52, device="cpu", BLOCK_SIZE=block)
    whole = F.create_block_mask(MASKS[name](F), None, None, 33, 20, device="cpu", BLOCK_SIZE=block,
                                separate_full_blocks=False)  # fmt: skip
    dense = F.create_mask(MASKS[name](F), 2, 3, 5, 7, device="cpu")
    return parts(mask), parts(whole), dense.tolist(), repr(mask), repr(whole)


@differential
def test_slices_and_other_lengths(T: Any) -> Any:
    F = flex(T)
    mask = F.create_block_mask(by_head, 2, 3, 32, 40, device="cpu", BLOCK_SIZE=8)
    keys = [0, -1, (0, 1), slice(1), (slice(None), slice(1, 3)), (slice(None), slice(None), 1), (0, 0, slice(2, None)),
            ..., T.tensor([1, 0])]  # fmt: skip
    sliced = [mask[key] for key in keys]
    refused = outcome(lambda: sliced[0].mask_mod(0, 0, 0, 0), "Cannot use mask_mod from a sliced BlockMask")
    adjusted = [mask._adjust(16, 24), mask._adjust(32, 9)]
    moved = mask.to("cpu")
    return [parts(each) for each in (*sliced, *adjusted, moved)], refused, [repr(each) for each in sliced]


@differential
def test_pictures(T: Any) -> Any:
    F = flex(T)
    mask = F.create_block_mask(F.and_masks(causal, window), 2, None, 100, 180, device="cpu", BLOCK_SIZE=4)
    pictures = [mask.to_string(grid_size=grid) for grid in ((20, 20), (7, 11), 5, -1, (4, -1))]
    first = mask.to_string(limit=1).splitlines()[:10]
    return pictures, first, str(mask)


@differential
def test_masks_from_blocks(T: Any) -> Any:
    F = flex(T)
    counts = T.tensor([[[1, 2]]], dtype=T.int32)
    places = T.tensor([[[[0, 1], [0, 1]]]], dtype=T.int32)
    plain = F.BlockMask.from_kv_blocks(counts, places, BLOCK_SIZE=4)
    without = F.BlockMask.from_kv_blocks(counts, places, BLOCK_SIZE=4, mask_mod=causal, compute_q_blocks=False)
    short = F.BlockMask.from_kv_blocks(counts, places, counts, places, BLOCK_SIZE=(4, 8), seq_lengths=(7, 11))
    kinds = [[type(part).__name__ for part in plain.as_tuple(flatten=flat)] for flat in (True, False)]
    wrong = outcome(lambda: F.BlockMask.from_kv_blocks(counts[0, 0], places[0, 0, 0]), "at least 2 dimensions")
    return parts(plain), repr(without), parts(short), kinds, wrong


def relative(score: Any, b: Any, h: Any, q: Any, kv: Any) -> Any:
    return score + (q - kv) * 0.1


def capped(score: Any, b: Any, h: Any, q: Any, kv: Any) -> Any:
    return 3 * (score / 3).tanh()


@pytest.mark.parametrize("score_mod", [None, relative, capped])
@pytest.mark.parametrize("name", [None, "window", "either"])
@differential(tolerance=2e-5)
def test_results(T: Any, score_mod: Any, name: str | None) -> Any:
    F = flex(T)
    T.manual_seed(0)
    q, k, v = (T.randn(2, 3, size, 8) for size in (24, 40, 40))
    mask = None if name is None else F.create_block_mask(MASKS[name](F), 2, 3, 24, 40, device="cpu", BLOCK_SIZE=8)
    request = F.AuxRequest(lse=True)
    result, aux = F.flex_attention(q, k, v, score_mod=score_mod, block_mask=mask, scale=0.3, return_aux=request)
    return result, aux.lse, aux.max_scores is None


@pytest.mark.parametrize("score_mod", [relative, capped])
@differential(tolerance=5e-5)
def test_gradients(T: Any, score_mod: Any) -> Any:
    """PyTorch has none on the CPU: there the attention is written out."""
    T.manual_seed(0)
    q, k, v = (T.randn(2, 3, size, 8, requires_grad=True) for size in (12, 20, 20))
    if T is flambeau:
        F = flex(T)
        mask = F.create_block_mask(by_head, 2, 3, 12, 20, device="cpu", BLOCK_SIZE=4)
        result, aux = F.flex_attention(q, k, v, score_mod, mask, 0.3, return_aux=F.AuxRequest(lse=True))
        sums = aux.lse
    else:
        b, h, rows, columns = T.meshgrid(T.arange(2), T.arange(3), T.arange(12), T.arange(20), indexing="ij")
        scores = score_mod(q @ k.transpose(-2, -1) * 0.3, b, h, rows, columns)
        scores = scores.masked_fill(~by_head(b, h, rows, columns), float("-inf"))
        result, sums = scores.softmax(-1) @ v, scores.logsumexp(-1)
    (result * T.arange(8) + sums.unsqueeze(-1)).sum().backward()
    return result.detach(), q.grad, k.grad, v.grad


@differential(tolerance=2e-5)
def test_what_functions_capture(T: Any) -> Any:
    """Tables of biases, lengths and documents: read by index, and learnt where they require it."""
    F = flex(T)
    T.manual_seed(0)
    q, k, v = (T.randn(2, 4, 16, 8) for _ in range(3))
    slopes = T.tensor([0.5, 0.25, 0.125, 0.0625])
    lengths, documents = T.tensor([9, 16]), T.arange(16) // 5

    def alibi(score: Any, b: Any, h: Any, q: Any, kv: Any) -> Any:
        return score - slopes[h] * (q - kv).abs()

    def padded(b: Any, h: Any, q: Any, kv: Any) -> Any:
        return (kv < lengths[b]) & (documents[q] == documents[kv])

    mask = F.create_block_mask(padded, 2, None, 16, 16, device="cpu", BLOCK_SIZE=4)
    return F.flex_attention(q, k, v, alibi, mask), parts(mask)


@differential(tolerance=2e-5)
def test_grouped_heads_and_rows_that_see_nothing(T: Any) -> Any:
    F = flex(T)
    T.manual_seed(0)
    q, k, v = T.randn(1, 6, 8, 4), T.randn(1, 2, 8, 4), T.randn(1, 2, 8, 6)
    grouped = F.flex_attention(q, k, v, relative, enable_gqa=True)
    hidden = F.create_block_mask(lambda b, h, q, kv: (q > 2) & (q >= kv), None, None, 8, 8, device="cpu", BLOCK_SIZE=4)
    empty = F.flex_attention(q, k, v, block_mask=hidden, enable_gqa=True)
    lengths = T.tensor([2, 5, 8])
    by_length = F.create_block_mask(lambda b, h, q, kv: kv < lengths[b], 3, None, 8, 8, device="cpu", BLOCK_SIZE=4)
    shared = F.flex_attention(T.randn(3, 2, 8, 4), k, v, block_mask=by_length)
    return grouped, empty, shared


@differential
def test_wrong_calls(T: Any) -> Any:
    F = flex(T)
    x = T.ones(1, 2, 16, 4)
    mask = F.create_block_mask(causal, None, None, 16, 16, device="cpu", BLOCK_SIZE=4)
    return [
        outcome(lambda: F.flex_attention(x[0], x, x), "4D"),
        outcome(lambda: F.flex_attention(x, x[:, :1], x[:, :1]), "same number of heads"),
        outcome(lambda: F.flex_attention(x.expand(1, 2, 16, 4), x.repeat(1, 2, 1, 1)[:, :3], x, enable_gqa=True), ""),
        outcome(lambda: F.flex_attention(x, x[:, :, :8], x[:, :, :8], block_mask=mask), "block_mask was created for"),
        outcome(lambda: F.flex_attention(x[:, :, :8], x, x, block_mask=mask), "block_mask was created for"),
        outcome(lambda: F.flex_attention(x.expand(3, 2, 16, 4), x, x), "same batch size"),
        outcome(lambda: F.and_masks(causal, 3), "callable"),
    ]


def test_learnt_biases_get_gradients() -> None:
    """PyTorch computes these for compiled calls alone."""
    F = flex(flambeau)
    flambeau.manual_seed(0)
    x, table = flambeau.randn(1, 2, 6, 4), flambeau.zeros(2, 6, 6, requires_grad=True)
    result = F.flex_attention(x, x, x, lambda score, b, h, q, kv: score + table[h, q, kv])
    (result * x).sum().backward()
    scores = (x @ x.transpose(-2, -1) / 2).requires_grad_()
    ((scores.softmax(-1) @ x) * x).sum().backward()
    assert flambeau.allclose(table.grad, scores.grad[0], atol=1e-6)
