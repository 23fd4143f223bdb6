"""Attention with scores and masks of one's own, under the names of `torch.nn.attention.flex_attention`.

`score_mod(score, batch, head, q, kv)` and `mask_mod(batch, head, q, kv)` are called once, with index tensors that
broadcast against each other, and attention is composed of ordinary ops: derivatives reach whatever the functions use.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from typing import Any, NamedTuple, TypeAlias, TypedDict

from ..._core.dtype import bool_, int32, int64
from ..._core.names.absent import refusal
from ..._core.process.caller import warn_user_once
from ..._core.tensor import Tensor
from ..._core.text.inherited_docs import documented_like
from ..._ops.create.constants import zeros
from ..._ops.create.range import arange
from ..._ops.index.masked import where
from ..._ops.reduce.softmax import logsumexp

__all__ = [
    "AuxOutput", "AuxRequest", "BlockMask", "FlexKernelOptions", "and_masks", "create_block_mask", "create_mask",
    "flex_attention", "noop_mask", "or_masks",
]  # fmt: skip

MaskMod: TypeAlias = Callable[[Tensor, Tensor, Tensor, Tensor], Tensor]
ScoreMod: TypeAlias = Callable[[Tensor, Tensor, Tensor, Tensor, Tensor], Tensor]


class FlexKernelOptions(TypedDict, total=False):
    """Choices for kernels of accelerators: here they are taken, and change nothing.

    Example:
        >>> FlexKernelOptions(BLOCK_M=64)
        {'BLOCK_M': 64}
    """

    num_warps: int
    num_stages: int
    BLOCK_M: int
    BLOCK_N: int
    BLOCK_M1: int
    BLOCK_N1: int
    BLOCK_M2: int
    BLOCK_N2: int
    PRESCALE_QK: bool
    ROWS_GUARANTEED_SAFE: bool
    BLOCKS_ARE_CONTIGUOUS: bool
    WRITE_DQ: bool
    FORCE_USE_FLEX_ATTENTION: bool
    USE_TMA: bool
    kpack: int
    matrix_instr_nonkdim: int
    waves_per_eu: int
    BACKEND: str


_DEFAULT_SPARSE_BLOCK_SIZE = _DEFAULT_BLOCK = 128


class AuxRequest(NamedTuple):
    """What `flex_attention` is to give beside its result.

    Args:
        lse (bool): whether to return the logarithm of each query's sum of exponentials. Default: `False`.
        max_scores (bool): whether to return the largest score of each query. Default: `False`.

    Example:
        >>> AuxRequest(lse=True)
        AuxRequest(lse=True, max_scores=False)
    """

    lse: bool = False
    max_scores: bool = False


class AuxOutput(NamedTuple):
    """What `flex_attention` returns beside its result.

    Args:
        lse (Tensor, optional): the logarithm of each query's sum of exponentials; None if it was not asked for.
        max_scores (Tensor, optional): the largest score of each query; None if it was not asked for.

    Example:
        >>> q = torch.ones(1, 1, 2, 4)
        >>> _, aux = flex_attention(q, q, q, return_aux=AuxRequest(lse=True))
        >>> aux.lse.shape
        torch.Size([1, 1, 2])
    """

    lse: Tensor | None = None
    max_scores: Tensor | None = None


def _indices(batch: int, heads: int, queries: int, keys: int, device: Any) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Indices of the four dimensions, in shapes that broadcast against each other."""
    return (
        arange(batch, device=device).view(-1, 1, 1, 1),
        arange(heads, device=device).view(1, -1, 1, 1),
        arange(queries, device=device).view(1, 1, -1, 1),
        arange(keys, device=device).view(1, 1, 1, -1),
    )


def noop_mask(batch: Tensor, head: Tensor, token_q: Tensor, token_kv: Tensor) -> Tensor:
    """The mask that hides nothing.

    Args:
        batch, head, token_q, token_kv (Tensor): where the score stands.

    Returns:
        Tensor: True.

    Example:
        >>> create_mask(noop_mask, 1, 1, 1, 2)
        tensor([[[[True, True]]]])
    """
    return (token_q >= 0) & (token_kv >= 0)


def or_masks(*mask_mods: MaskMod) -> MaskMod:
    """The mask that shows what one of these shows.

    Args:
        *mask_mods: functions of the batch, the head, the query's and the key's position that say what is visible.

    Returns:
        a function of the same arguments.

    Example:
        >>> causal = lambda batch, head, q, kv: q >= kv
        >>> first = lambda batch, head, q, kv: kv == 0
        >>> create_mask(or_masks(causal, first), None, None, 2, 2)[0, 0].int()
        tensor([[1, 0],
                [1, 1]], dtype=torch.int32)
    """
    if not all(callable(each) for each in mask_mods):
        raise RuntimeError(f"All inputs should be callable mask_mods: {mask_mods}")

    def or_mask(b: Tensor, h: Tensor, q_idx: Tensor, kv_idx: Tensor) -> Tensor:
        result = b.new_zeros((), dtype=_bool())
        for each in mask_mods:
            result = result | each(b, h, q_idx, kv_idx)
        return result

    return or_mask


@documented_like(or_masks)
def and_masks(*mask_mods: MaskMod) -> MaskMod:
    """The mask that shows what all of these show.

    Example:
        >>> from flambeau.nn.attention.flex_attention import and_masks, create_mask
        >>> causal = lambda batch, head, q, kv: q >= kv
        >>> near = lambda batch, head, q, kv: q - kv < 2
        >>> create_mask(and_masks(causal, near), None, None, 3, 3)[0, 0].int()
        tensor([[1, 0, 0],
                [1, 1, 0],
                [0, 1, 1]], dtype=torch.int32)
    """
    if not all(callable(each) for each in mask_mods):
        raise RuntimeError(f"All inputs should be callable mask_mods: {mask_mods}")

    def and_mask(b: Tensor, h: Tensor, q_idx: Tensor, kv_idx: Tensor) -> Tensor:
        result = b.new_ones((), dtype=_bool())
        for each in mask_mods:
            result = result & each(b, h, q_idx, kv_idx)
        return result

    return and_mask


def _bool() -> Any:
    return bool_


def create_mask(mod_fn: Any, B: int | None, H: int | None, Q_LEN: int, KV_LEN: int, device: Any = None) -> Tensor:
    """The mask, or the changes to scores, as a dense tensor.

    Args:
        mod_fn: a mask, or a function that changes scores.
        B (int, optional): the number of batches; None means the same mask for all.
        H (int, optional): the number of heads; None means the same mask for all.
        Q_LEN (int): the number of queries.
        KV_LEN (int): the number of keys.
        device: where the result lies; None means the default device.

    Returns:
        Tensor: the mask, (B, H, Q_LEN, KV_LEN), as booleans; or the changed scores.

    Example:
        >>> create_mask(lambda batch, head, q, kv: q >= kv, 1, 1, 2, 2)
        tensor([[[[ True, False],
                  [ True,  True]]]])
    """
    batch, heads = B or 1, H or 1
    indices = _indices(batch, heads, Q_LEN, KV_LEN, device)
    shape = (batch, heads, Q_LEN, KV_LEN)
    if mod_fn.__code__.co_argcount == 5:
        scored: Tensor = mod_fn(zeros(shape, device=device), *indices)
        return ~scored.expand(shape).isneginf()
    masked: Tensor = mod_fn(*indices)
    return masked.expand(shape)


class BlockMask:
    """Which blocks of scores a mask shows in part, and which as a whole.

    Make one by `create_block_mask`.

    Args:
        seq_lengths (tuple[int, int]): the number of queries and of keys.
        kv_num_blocks, kv_indices: how many blocks of keys each block of queries sees in part, and which.
        full_kv_num_blocks, full_kv_indices: the same of blocks that it sees whole.
        q_num_blocks, q_indices: how many blocks of queries see each block of keys in part, and which.
        full_q_num_blocks, full_q_indices: the same of blocks that see it whole.
        BLOCK_SIZE (tuple[int, int]): the number of queries and of keys in a block. Default: `(128, 128)`.
        mask_mod (MaskMod): the function that says what is visible.
        dq_write_order (Tensor, optional): the order in which gradients of queries are written.
        dq_write_order_full (Tensor, optional): the same for whole blocks.
        dq_kv_order, dq_kv_order_spt: the order of keys in which gradients of queries are added up.

    Example:
        >>> mask = create_block_mask(lambda batch, head, q, kv: q >= kv, None, None, 256, 256)
        >>> mask.shape, mask.kv_num_blocks
        ((1, 1, 256, 256), tensor([[[1, 1]]], dtype=torch.int32))
    """

    def __init__(
        self,
        seq_lengths: tuple[int, int],
        kv_num_blocks: Tensor,
        kv_indices: Tensor,
        full_kv_num_blocks: Tensor | None,
        full_kv_indices: Tensor | None,
        q_num_blocks: Tensor | None,
        q_indices: Tensor | None,
        full_q_num_blocks: Tensor | None,
        full_q_indices: Tensor | None,
        BLOCK_SIZE: tuple[int, int] = (_DEFAULT_BLOCK, _DEFAULT_BLOCK),
        mask_mod: MaskMod = noop_mask,
        *,
        dq_write_order: Tensor | None = None,
        dq_write_order_full: Tensor | None = None,
        dq_kv_order: Tensor | None = None,
        dq_kv_order_spt: bool | None = None,
    ) -> None:
        if kv_indices.dim() < 2:
            raise RuntimeError("BlockMask must have at least 2 dimensions")
        self.seq_lengths = seq_lengths
        self.kv_num_blocks = kv_num_blocks
        self.kv_indices = kv_indices
        self.full_kv_num_blocks = full_kv_num_blocks
        self.full_kv_indices = full_kv_indices
        self.q_num_blocks = q_num_blocks
        self.q_indices = q_indices
        self.full_q_num_blocks = full_q_num_blocks
        self.full_q_indices = full_q_indices
        self.BLOCK_SIZE = BLOCK_SIZE
        self.mask_mod = mask_mod
        self.dq_write_order, self.dq_write_order_full = dq_write_order, dq_write_order_full
        self.dq_kv_order, self.dq_kv_order_spt = dq_kv_order, dq_kv_order_spt

    @classmethod
    def from_kv_blocks(
        cls,
        kv_num_blocks: Tensor,
        kv_indices: Tensor,
        full_kv_num_blocks: Tensor | None = None,
        full_kv_indices: Tensor | None = None,
        BLOCK_SIZE: int | tuple[int, int] = _DEFAULT_BLOCK,
        mask_mod: MaskMod | None = None,
        seq_lengths: tuple[int, int] | None = None,
        compute_q_blocks: bool = True,
        *,
        dq_write_order: Tensor | None = None,
        dq_write_order_full: Tensor | None = None,
        dq_kv_order: Tensor | bool | None = None,
    ) -> BlockMask:
        """From the numbers of key blocks of each row of query blocks, and which they are."""
        size = (BLOCK_SIZE, BLOCK_SIZE) if isinstance(BLOCK_SIZE, int) else BLOCK_SIZE
        if kv_indices.dim() < 2:
            raise RuntimeError("BlockMask must have at least 2 dimensions")
        if (full_kv_num_blocks is None) != (full_kv_indices is None):
            raise AssertionError("full_kv_num_blocks and full_kv_indices must be both provided or omitted")
        columns = kv_indices.shape[-1]
        lengths = seq_lengths or (kv_indices.shape[-2] * size[0], columns * size[1])
        q_parts: list[Any] = [None, None, None, None]
        if compute_q_blocks:
            q_parts[:2] = _ordered(_dense(kv_num_blocks, kv_indices).transpose(-2, -1))
            if full_kv_num_blocks is not None and full_kv_indices is not None:
                q_parts[2:] = _ordered(_dense(full_kv_num_blocks, full_kv_indices).transpose(-2, -1))
        if dq_kv_order is not None and not isinstance(dq_kv_order, (bool, Tensor)):
            raise ValueError("dq_kv_order must be a bool, Tensor, or None")
        return cls(
            lengths, kv_num_blocks, kv_indices, full_kv_num_blocks, full_kv_indices, q_parts[0], q_parts[1],
            q_parts[2], q_parts[3], size, mask_mod or noop_mask, dq_write_order=dq_write_order,
            dq_write_order_full=dq_write_order_full,
            dq_kv_order=dq_kv_order if isinstance(dq_kv_order, Tensor) else None,
            dq_kv_order_spt=dq_kv_order if isinstance(dq_kv_order, bool) else None,
        )  # fmt: skip

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the scores: batch, heads, queries, keys."""
        return (*self.kv_indices.shape[:-2], *self.seq_lengths)

    def numel(self) -> int:
        """The number of scores."""
        return math.prod(self.shape)

    def to_dense(self) -> Tensor:
        """Which blocks are shown at all, as a tensor of 0 and 1."""
        partly = _dense(self.kv_num_blocks, self.kv_indices)
        if self.full_kv_num_blocks is None or self.full_kv_indices is None:
            return partly
        return partly | _dense(self.full_kv_num_blocks, self.full_kv_indices)

    def sparsity(self) -> float:
        """How much is hidden, in percent."""
        blocks = int(self.kv_num_blocks.sum().item())
        if self.full_kv_num_blocks is not None:
            blocks += int(self.full_kv_num_blocks.sum().item())
        return 100 * (1 - blocks * self.BLOCK_SIZE[0] * self.BLOCK_SIZE[1] / self.numel())

    def as_tuple(self, flatten: bool = True) -> tuple[Any, ...]:
        """The parts, in the order of the constructor's; sizes in pairs or one by one."""
        sizes = (*self.BLOCK_SIZE,) if flatten else (self.BLOCK_SIZE,)
        lengths = (*self.seq_lengths,) if flatten else (self.seq_lengths,)
        return (
            *lengths, *[getattr(self, each) for each in _PARTS], self.dq_write_order, self.dq_write_order_full,
            self.dq_kv_order, self.dq_kv_order_spt, *sizes, self.mask_mod,
        )  # fmt: skip

    def _with(self, parts: dict[str, Any]) -> BlockMask:
        """A mask with other parts."""
        given = {name: getattr(self, name) for name in (*_PARTS, *_OTHERS)}
        return BlockMask(**{**given, **parts})

    def to(self, device: Any) -> BlockMask:
        """This mask on a device."""
        return self._with({name: each.to(device) for name, each in vars(self).items() if isinstance(each, Tensor)})

    def __getitem__(self, index: Any) -> BlockMask:
        """The blocks of some batches, heads and rows; its `mask_mod`, which counts from the first row, is lost."""
        keys = index if isinstance(index, tuple) else (index,)
        ranges = tuple([_as_range(each) for each in keys])
        parts: dict[str, Any] = {}
        for name in ("kv_num_blocks", "kv_indices", "full_kv_num_blocks", "full_kv_indices"):
            part = getattr(self, name)
            parts[name] = None if part is None else part[ranges[: part.dim()]]
        return BlockMask.from_kv_blocks(
            **parts, BLOCK_SIZE=self.BLOCK_SIZE, mask_mod=_sliced_mask_mod_error, seq_lengths=self.seq_lengths,
            compute_q_blocks=self.q_indices is not None,
        )  # fmt: skip

    def _adjust(self, new_q_len: int, new_kv_len: int) -> BlockMask:
        """This mask for other lengths: blocks beyond them are left out, what is new is hidden."""
        rows, columns = -(-new_q_len // self.BLOCK_SIZE[0]), -(-new_kv_len // self.BLOCK_SIZE[1])
        parts: dict[str, Any] = {}
        for prefix in ("", "full_"):
            counts, places = getattr(self, f"{prefix}kv_num_blocks"), getattr(self, f"{prefix}kv_indices")
            if counts is not None:
                counts, places = _ordered(_dense(counts, places)[..., :rows, :columns])
            parts |= {f"{prefix}kv_num_blocks": counts, f"{prefix}kv_indices": places}
        return BlockMask.from_kv_blocks(
            **parts, BLOCK_SIZE=self.BLOCK_SIZE, mask_mod=self.mask_mod, seq_lengths=(new_q_len, new_kv_len)
        )

    def to_string(self, grid_size: int | tuple[int, int] = (20, 20), limit: int = 4) -> str:
        """A picture of the blocks of the first heads, at most `grid_size` large: filled where all of them are shown,
        half filled where some are. A size of -1 has no limit.
        """
        most = (grid_size, grid_size) if isinstance(grid_size, int) else grid_size
        dense = self.to_dense()
        steps = [
            1 if size == -1 else max(-(-extent // size), 1) for size, extent in zip(most, dense.shape[-2:], strict=True)
        ]
        places = list(itertools.product(*[range(each) for each in dense.shape[:-2]]))
        text = "\n".join(f"{place}\n{_picture(dense[place], *steps)}" for place in places[:limit])
        return text if len(places) <= limit else f"{text}\n...\n{len(places) - limit} more: a larger limit shows them"

    def __str__(self) -> str:
        return f"BlockMask(shape={self.shape}, sparsity={self.sparsity():.2f}%, \n{self.to_string().strip()}\n)"

    def __repr__(self) -> str:
        parts = {name: None if (part := getattr(self, name)) is None else part.shape for name in _PARTS}
        lines = [f"    {name}={shape},\n" for name, shape in parts.items()]
        return (
            f"BlockMask(\n{''.join(lines)}    BLOCK_SIZE={self.BLOCK_SIZE},\n    shape={self.shape},\n"
            f"    sparsity={self.sparsity():.2f}%,\n    mask_mod={getattr(self.mask_mod, '__name__', self.mask_mod)}\n)"
        )


_PARTS = (
    "kv_num_blocks", "kv_indices", "full_kv_num_blocks", "full_kv_indices", "q_num_blocks", "q_indices",
    "full_q_num_blocks", "full_q_indices",
)  # fmt: skip
_OTHERS = (
    "seq_lengths", "BLOCK_SIZE", "mask_mod", "dq_write_order", "dq_write_order_full", "dq_kv_order", "dq_kv_order_spt",
)  # fmt: skip


def _sliced_mask_mod_error(batch: Tensor, head: Tensor, token_q: Tensor, token_kv: Tensor) -> Tensor:
    raise RuntimeError(
        "Cannot use mask_mod from a sliced BlockMask: it counts queries from the beginning, and the blocks may not. "
        "Give the slice one of its own: sliced.mask_mod = ..., made from that of the whole mask."
    )


def _as_range(key: Any) -> Any:
    """A number as the range of it alone: the dimension stays."""
    if not isinstance(key, int) or isinstance(key, bool):
        return key
    return slice(key, key + 1 or None)


def _picture(blocks: Tensor, height: int, width: int) -> str:
    """Blocks of 0 and 1 as text, so many rows and columns of them in a place of two characters."""
    lines = []
    for top in range(0, blocks.shape[0], height):
        places = [blocks[top : top + height, left : left + width] for left in range(0, blocks.shape[1], width)]
        lines.append("".join("██" if each.all() else "░░" if each.any() else "  " for each in places) + "\n")
    return "".join(lines)


def _ordered(dense: Tensor) -> list[Tensor | None]:
    """How many ones each row of a tensor of 0 and 1 has, and its columns, those of ones first."""
    places = dense.to(int32).argsort(dim=-1, descending=True, stable=True)
    return [dense.sum(dim=-1).to(int32), places.to(int32).contiguous()]


def _dense(num_blocks: Tensor, indices: Tensor) -> Tensor:
    """The tensor of 0 and 1 of which `_ordered` gives such numbers and columns."""
    columns = indices.shape[-1]
    shown = (arange(columns) < num_blocks.unsqueeze(-1)).to(int32)
    start: Tensor = zeros(indices.shape, dtype=int32)
    return start.scatter(-1, indices.to(int64), shown)


@documented_like(create_mask)
def create_block_mask(
    mask_mod: MaskMod,
    B: int | None,
    H: int | None,
    Q_LEN: int,
    KV_LEN: int,
    device: Any = None,
    BLOCK_SIZE: int | tuple[int, int] = _DEFAULT_BLOCK,
    _compile: bool = False,
    separate_full_blocks: bool = True,
    compute_dq_write_order: bool = False,
    dq_kv_order: bool = True,
) -> BlockMask:
    """Which blocks a mask shows: the mask is evaluated once, for all scores.

    Args:
        mask_mod (MaskMod): a function of the batch, the head, the query's and the key's position that says what is
            visible.
        BLOCK_SIZE (int or tuple[int, int]): the number of queries and of keys in a block. Default: `128`.
        separate_full_blocks (bool): whether blocks that are visible whole are listed apart, where the mask need not be
            evaluated. Default: `True`.
        compute_dq_write_order (bool): whether to work out an order for writing the gradients of queries. Default:
            `False`.
        dq_kv_order (bool): whether that order follows the keys. Default: `True`.

    Returns:
        BlockMask: the mask for `flex_attention`.

    Example:
        >>> create_block_mask(lambda batch, head, q, kv: q >= kv, None, None, 256, 256).sparsity()
        25.0
    """
    if compute_dq_write_order:
        raise refusal("create_block_mask(compute_dq_write_order=True)", "the order is about a kernel of accelerators")
    rows, columns = (BLOCK_SIZE, BLOCK_SIZE) if isinstance(BLOCK_SIZE, int) else BLOCK_SIZE
    mask = create_mask(mask_mod, B, H, Q_LEN, KV_LEN, device)
    height, width = -(-Q_LEN // rows), -(-KV_LEN // columns)
    padded = zeros((*mask.shape[:2], height * rows, width * columns), dtype=mask.dtype)
    padded[..., :Q_LEN, :KV_LEN] = mask
    blocks = padded.view(*mask.shape[:2], height, rows, width, columns).permute(0, 1, 2, 4, 3, 5)
    counts = blocks.sum(dim=[-2, -1])
    full = counts == rows * columns if separate_full_blocks else counts < 0
    partial_counts, partial_places = _ordered((counts > 0) & ~full)
    full_counts, full_places = _ordered(full) if separate_full_blocks else (None, None)
    assert partial_counts is not None
    assert partial_places is not None
    return BlockMask.from_kv_blocks(
        partial_counts, partial_places, full_counts, full_places, (rows, columns), mask_mod, (Q_LEN, KV_LEN)
    )


def flex_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    score_mod: ScoreMod | None = None,
    block_mask: BlockMask | None = None,
    scale: float | None = None,
    enable_gqa: bool = False,
    return_lse: bool = False,
    kernel_options: Any = None,
    *,
    return_aux: AuxRequest | None = None,
) -> Any:
    """Attention with a function that changes scores and a mask that hides some.

    >>> def causal(batch, head, q, kv):
    ...     return q >= kv
    >>> x = flambeau.ones(1, 1, 4, 2)
    >>> from flambeau.nn.attention.flex_attention import create_block_mask, flex_attention
    >>> flex_attention(x, x, x, block_mask=create_block_mask(causal, None, None, 4, 4)).shape
    torch.Size([1, 1, 4, 2])

    Args:
        query (Tensor): (batch, heads, queries, features).
        key (Tensor): (batch, heads, keys, features).
        value (Tensor): (batch, heads, keys, features of the result).
        score_mod (ScoreMod, optional): `score_mod(score, batch, head, q, kv)` returns the changed score.
        block_mask (BlockMask, optional): what is visible, from `create_block_mask`.
        scale (float, optional): the factor of the scores; None means `1 / sqrt(features)`.
        enable_gqa (bool): whether several heads of queries share one head of keys. Default: `False`.
        return_lse (bool): whether to return the logarithm of each query's sum of exponentials too. Default: `False`.
        kernel_options: choices for kernels of accelerators, which change nothing here.
        return_aux (AuxRequest, optional): what else to return, as an `AuxRequest`.

    Returns:
        Tensor: (batch, heads, queries, features of the result); with `return_lse` or `return_aux` a pair.
    """
    if return_lse:
        if return_aux is not None:
            raise ValueError("Cannot specify both return_lse and return_aux: return_lse is the older form")
        warn_user_once(
            "return_lse is deprecated and will be removed, as it is in PyTorch. Use return_aux=AuxRequest(lse=True).",
            FutureWarning,
        )
    if query.dim() != 4 or key.dim() != 4 or value.dim() != 4:
        raise NotImplementedError("NYI: query, key, and value must be 4D tensors")
    if not enable_gqa and query.shape[-3] != key.shape[-3]:
        raise ValueError(
            f"Expect query and key/value to have the same number of heads but got Hq={query.shape[-3]} and "
            f"Hkv={key.shape[-3]}. Try setting enable_gqa=True for GQA."
        )
    if enable_gqa and query.shape[1] % key.shape[1]:
        raise ValueError(
            "Expect number of query heads to be a multiple of kv heads for GQA but got "
            f"Hq={query.shape[1]} and Hkv={key.shape[1]}."
        )
    if key.shape[0] != query.shape[0] and (block_mask is None or block_mask.shape[0] != query.shape[0]):
        raise ValueError(
            "Expect query and key/value to have the same batch size, or a block_mask of the queries' batch size, but "
            f"got Bq={query.shape[0]} and Bkv={key.shape[0]}."
        )
    if key.shape[1] != query.shape[1]:
        repeats = query.shape[1] // key.shape[1]
        key, value = key.repeat_interleave(repeats, dim=1), value.repeat_interleave(repeats, dim=1)
    key, value = (each.expand(query.shape[0], *each.shape[1:]) for each in (key, value))
    batch, heads, queries = query.shape[:3]
    keys = key.shape[2]
    if block_mask is not None and block_mask.seq_lengths != (queries, keys):
        raise ValueError(
            f"block_mask was created for block_mask.shape={block_mask.shape} but got q_len={queries} and "
            f"kv_len={keys}: make one for these lengths, or block_mask._adjust(q_len, kv_len)."
        )
    factor = 1 / math.sqrt(query.shape[-1]) if scale is None else scale
    indices = _indices(batch, heads, queries, keys, query.device)
    wide = query.float() if query.dtype.itemsize < 4 else query
    scores = wide @ key.to(wide.dtype).transpose(-2, -1) * factor
    if score_mod is not None:
        scores = score_mod(scores, *indices).to(wide.dtype)
    if block_mask is not None:
        scores = where(_shown(block_mask, indices), scores, -math.inf)
    sums = logsumexp(scores, -1)
    hidden = sums.isneginf().unsqueeze(-1)
    weights = where(hidden, 0.0, (scores - where(hidden, 0.0, sums.unsqueeze(-1))).exp())
    result = (weights @ value.to(wide.dtype)).to(query.dtype)
    if return_aux is not None:
        return result, AuxOutput(sums if return_aux.lse else None, scores.amax(-1) if return_aux.max_scores else None)
    return (result, sums) if return_lse else result


def _shown(block_mask: BlockMask, indices: tuple[Tensor, Tensor, Tensor, Tensor]) -> Tensor:
    """Which scores a mask shows: the function's answer in partial blocks, all of full ones."""
    rows, columns = block_mask.BLOCK_SIZE
    batch, head, q, kv = indices
    blocks = _dense(block_mask.kv_num_blocks, block_mask.kv_indices)
    place_q, place_kv = (q // rows), (kv // columns)
    first = (batch if blocks.shape[0] > 1 else batch * 0, head if blocks.shape[1] > 1 else head * 0)
    shown = (blocks[first[0], first[1], place_q, place_kv] > 0) & block_mask.mask_mod(*indices)
    if block_mask.full_kv_num_blocks is not None and block_mask.full_kv_indices is not None:
        whole = _dense(block_mask.full_kv_num_blocks, block_mask.full_kv_indices)
        shown = shown | (whole[first[0], first[1], place_q, place_kv] > 0)
    return shown
