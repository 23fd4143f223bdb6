"""Calls of the functions that take positions, lengths or offsets from elements of tensors, one of which is wrong."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

NUMBERS = (-1, -(2**40), 0, 1, 2**30, 2**62)
"""Added to the size, or taken as they are where they are negative: what is wrong."""


_MANY = 100


def _positions(library: Any, device: str, count: int, wrong: int, dtype: str = "int64") -> Any:
    """Zeros with a wrong position in the middle."""
    found = [0] * count
    found[count // 2] = wrong
    return library.tensor(found, dtype=getattr(library, dtype), device=device)


def _floats(library: Any, device: str, *shape: int) -> Any:
    return library.ones(*shape, device=device)


class _Place:
    """What a call is made of."""

    def __init__(self, library: Any, device: str, size: int, wrong: int) -> None:
        self.t = library
        self.F = library.nn.functional
        self.size = size
        self.wrong = wrong
        self.count = 7 if size < _MANY else 7001
        """Positions that are taken: few, or so many that a generated kernel takes them."""
        self.side = 2 if size < _MANY else 20
        self.floats = functools.partial(_floats, library, device)
        self.positions = functools.partial(_positions, library, device)
        self.of = functools.partial(library.tensor, device=device)

    def line(self, count: int | None = None, dtype: str = "int64") -> Any:
        """Positions along a dimension of `size`."""
        return self.positions(self.count if count is None else count, self.wrong, dtype)

    def square(self) -> Any:
        """Positions for a matrix of four rows."""
        return self.line(4 * self.count).reshape(4, self.count)

    def image(self, rank: int) -> tuple[Any, Any]:
        """An image of `rank` dimensions, and positions of its elements in one that is twice as large."""
        shape = (1, *[self.side] * rank)
        wrong = self.wrong if self.wrong < 0 else self.wrong - self.size + (2 * self.side) ** rank
        return self.floats(*shape), self.positions(self.side**rank, wrong).reshape(shape)


CALLS: dict[str, Callable[[_Place], Any]] = {
    # indices of a dimension
    "getitem": lambda p: p.floats(p.size, 3)[p.line()],
    "getitem of the last": lambda p: p.floats(3, p.size)[:, p.line()],
    "getitem of two": lambda p: p.floats(p.size, 3)[p.line(), p.line() * 0],
    "getitem of int32": lambda p: p.floats(p.size)[p.line(dtype="int32")] if abs(p.wrong) < 2**31 else p.t.no_such_name,
    "setitem": lambda p: p.floats(p.size, 3).__setitem__(p.line(), 1.0),
    "index_put": lambda p: p.floats(p.size, 3).index_put((p.line(),), p.floats(p.count, 3)),
    "index_put accumulate": lambda p: p.floats(p.size, 3).index_put((p.line(),), p.floats(p.count, 3), accumulate=True),
    "index_select": lambda p: p.floats(p.size, 3).index_select(0, p.line()),
    "index_add": lambda p: p.floats(p.size, 3).index_add(0, p.line(), p.floats(p.count, 3)),
    "index_copy": lambda p: p.floats(p.size, 3).index_copy(0, p.line(), p.floats(p.count, 3)),
    "index_fill": lambda p: p.floats(p.size, 3).index_fill(0, p.line(), 2.0),
    "index_reduce": lambda p: p.floats(p.size, 3).index_reduce(0, p.line(), p.floats(p.count, 3), "prod"),
    "take": lambda p: p.floats(p.size).take(p.line()),
    "put": lambda p: p.floats(p.size).put(p.line(), p.floats(p.count)),
    "take_along_dim": lambda p: p.floats(4, p.size).take_along_dim(p.square(), 1),
    "gather": lambda p: p.floats(4, p.size).gather(1, p.square()),
    "gather of rows": lambda p: p.floats(p.size, 4).gather(0, p.square()),
    "scatter": lambda p: p.floats(4, p.size).scatter(1, p.square(), p.floats(4, p.count)),
    "scatter a number": lambda p: p.floats(4, p.size).scatter(1, p.square(), 2.0),
    "scatter_add": lambda p: p.floats(4, p.size).scatter_add(1, p.square(), p.floats(4, p.count)),
    "scatter_reduce": lambda p: p.floats(4, p.size).scatter_reduce(1, p.square(), p.floats(4, p.count), "amax"),
    "unravel_index": lambda p: p.t.unravel_index(p.line(), (p.size,)),
    "tensor_split": lambda p: p.floats(p.size).tensor_split(p.t.tensor([0, p.wrong])),
    "one_hot": lambda p: p.F.one_hot(p.line(), p.size),
    # rows of tables
    "embedding": lambda p: p.F.embedding(p.line(), p.floats(p.size, 3)),
    "embedding of int32": lambda p: (
        p.F.embedding(p.line(dtype="int32"), p.floats(p.size, 3)) if abs(p.wrong) < 2**31 else p.t.no_such_name
    ),
    "embedding with max_norm": lambda p: p.F.embedding(p.line(), p.floats(p.size, 3), max_norm=1.0),
    "embedding_bag": lambda p: p.F.embedding_bag(p.line(), p.floats(p.size, 3), p.of([0, 3])),
    "embedding_bag max": lambda p: p.F.embedding_bag(p.line(), p.floats(p.size, 3), p.of([0, 3]), mode="max"),
    "embedding_bag weighted": lambda p: p.F.embedding_bag(
        p.line(), p.floats(p.size, 3), p.of([0, 3]), mode="sum", per_sample_weights=p.floats(p.count)
    ),
    "embedding_bag offsets": lambda p: p.F.embedding_bag(p.positions(p.size, 0), p.floats(9, 3), p.of([0, p.wrong])),
    "embedding gradient": lambda p: p.t.ops.aten.embedding_dense_backward(
        p.floats(p.count, 3), p.line(), p.size, -1, False
    ),
    # classes
    "nll_loss": lambda p: p.F.nll_loss(p.floats(p.count, p.size), p.line()),
    "nll_loss2d": lambda p: p.F.nll_loss(p.floats(2, p.size, 3, 3), p.line(18).reshape(2, 3, 3)),
    "nll_loss weighted": lambda p: p.F.nll_loss(p.floats(p.count, p.size), p.line(), p.floats(p.size)),
    "cross_entropy": lambda p: p.F.cross_entropy(p.floats(p.count, p.size), p.line()),
    "cross_entropy smoothed": lambda p: p.F.cross_entropy(p.floats(p.count, p.size), p.line(), label_smoothing=0.1),
    "multi_margin_loss": lambda p: p.F.multi_margin_loss(p.floats(p.count, p.size), p.line()),
    "multilabel_margin_loss": lambda p: p.F.multilabel_margin_loss(
        p.floats(1, p.size), p.positions(p.size, p.wrong)[None]
    ),
    "ctc_loss targets": lambda p: p.F.ctc_loss(p.floats(9, 1, p.size).log_softmax(-1), p.line(3)[None], (9,), (3,)),
    "ctc_loss target lengths": lambda p: p.F.ctc_loss(
        p.floats(9, 2, 4).log_softmax(-1), p.t.ones(2, p.size, dtype=p.t.int64), (9, 9), (1, p.wrong)
    ),
    "ctc_loss input lengths": lambda p: p.F.ctc_loss(
        p.floats(p.size, 2, 4).log_softmax(-1), p.t.ones(2, 2, dtype=p.t.int64), (1, p.wrong), (1, 1)
    ),
    # places in images
    "max_unpool1d": lambda p: p.F.max_unpool1d(*p.image(1), 2),
    "max_unpool2d": lambda p: p.F.max_unpool2d(*p.image(2), 2),
    "max_unpool3d": lambda p: p.F.max_unpool3d(*p.image(3), 2),
    "max_pool2d gradient": lambda p: p.t.ops.aten.max_pool2d_with_indices_backward(
        p.image(2)[0], p.floats(1, 2 * p.side, 2 * p.side), [2, 2], [2, 2], [0, 0], [1, 1], False, p.image(2)[1]
    ),
    # swaps of rows
    "linalg.lu_solve": lambda p: p.t.linalg.lu_solve(p.t.eye(4), p.line(4, "int32") + 1, p.floats(4, 1)),
    "linalg.lu_solve of many": lambda p: p.t.linalg.lu_solve(
        p.t.eye(4).expand(2, 4, 4), (p.line(8, "int32") + 1).reshape(2, 4), p.floats(2, 4, 1), left=True, adjoint=True
    ),
    "lu_solve": lambda p: p.t.lu_solve(p.floats(4, 1), p.t.eye(4), p.line(4, "int32") + 1),
    "lu_unpack": lambda p: p.t.lu_unpack(p.t.eye(4), p.line(4, "int32") + 1),
    "lu_unpack of many": lambda p: p.t.lu_unpack(p.t.eye(4).expand(2, 4, 4), (p.line(8, "int32") + 1).reshape(2, 4)),
    "linalg.ldl_solve": lambda p: p.t.linalg.ldl_solve(p.t.eye(4), p.line(4, "int32") + 1, p.floats(4, 1)),
    # lengths and offsets
    "segment_reduce lengths": lambda p: p.t.segment_reduce(p.floats(p.size), "sum", lengths=p.of([0, p.wrong])),
    "segment_reduce offsets": lambda p: p.t.segment_reduce(p.floats(p.size), "sum", offsets=p.of([0, p.wrong, p.size])),
    "bincount": lambda p: p.t.bincount(p.positions(p.count, min(p.wrong, -1))),
    "repeat_interleave": lambda p: p.t.repeat_interleave(p.positions(p.count, min(p.wrong, -1))),
    "pack_padded_sequence": lambda p: p.t.nn.utils.rnn.pack_padded_sequence(
        p.floats(p.size, 2, 3), p.t.tensor([1, p.wrong]), enforce_sorted=False
    ),
    "pad_packed_sequence": lambda p: p.t._VF._pad_packed_sequence(
        p.floats(p.size, 3), p.t.tensor([p.wrong, 1]), False, 0.0, 1
    ),
    "searchsorted sorter": lambda p: p.t.searchsorted(
        p.floats(p.size), p.floats(3), sorter=p.positions(p.size, p.wrong)
    ),
    "sparse_coo_tensor": lambda p: p.t.sparse_coo_tensor(p.line()[None], p.floats(p.count), (p.size,)),
    "sparse_csr_tensor": lambda p: p.t.sparse_csr_tensor(
        p.t.tensor([0, 1, 2]), p.t.tensor([0, p.wrong]), p.floats(2), (2, p.size), check_invariants=True
    ),
}
"""By the name of a function."""


def run(name: str, library: Any, device: str, size: int, number: int) -> Any:
    """Make a call with a wrong number: as it is if it is negative, else so far behind the last that is right."""
    return CALLS[name](_Place(library, device, size, number if number < 0 else size + number))
