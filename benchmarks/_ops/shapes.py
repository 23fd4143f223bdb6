"""Joining, moving, indexing and making tensors; random numbers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .cases import Call, Inputs, enter

Function = Callable[[Any, Any], Any]


def _matrix(name: str, call: Function, differentiable: bool = True) -> None:
    def make(inputs: Inputs) -> Call:
        x = inputs.real(*inputs.square)
        return lambda: call(inputs.torch, x)

    enter(name, make, differentiable)


_matrix("contiguous of the transpose", lambda torch, x: x.t().contiguous())
_matrix("flip", lambda torch, x: x.flip(1))
_matrix("roll", lambda torch, x: x.roll(1, 1))
_matrix("repeat", lambda torch, x: x.repeat(2, 1))
_matrix("repeat_interleave", lambda torch, x: x.repeat_interleave(2, 0))
_matrix("tril", lambda torch, x: x.tril())
_matrix("pad", lambda torch, x: torch.nn.functional.pad(x, (1, 1)))
_matrix("cat", lambda torch, x: torch.cat([x, x], 1))
_matrix("stack", lambda torch, x: torch.stack([x, x], 1))
_matrix("split", lambda torch, x: x.split(1, 1)[0])
_matrix("x[1:, ::2]", lambda torch, x: x[1:, ::2].contiguous())
_matrix("nonzero", lambda torch, x: (x > 0).nonzero(), False)
_matrix("unfold", lambda torch, x: x.unfold(1, 3, 1).contiguous())
_matrix("diagonal", lambda torch, x: x.diagonal().contiguous())


def _by_index(name: str, call: Callable[[Any, Any, Any], Any]) -> None:
    """`x`, a matrix, and an index of its shape into its first dimension."""

    def make(inputs: Inputs) -> Call:
        rows, _ = inputs.square
        x, index = inputs.real(*inputs.square), inputs.whole(0, rows, *inputs.square)
        return lambda: call(inputs.torch, x, index)

    enter(name, make)


_by_index("gather", lambda torch, x, index: x.gather(0, index))
_by_index("scatter_add", lambda torch, x, index: torch.zeros_like(x).scatter_add(0, index, x))
_by_index("scatter_reduce amax", lambda torch, x, index: torch.zeros_like(x).scatter_reduce(0, index, x, "amax"))
_by_index("index_select", lambda torch, x, index: x.index_select(0, index[:, 0]))
_by_index("x[rows]", lambda torch, x, index: x[index[:, 0]])
_by_index("x[rows, columns]", lambda torch, x, index: x[index[:, 0], index[0, 0]])
_by_index("index_add", lambda torch, x, index: x.index_add(0, index[:, 0], x))
_by_index("index_put accumulate", lambda torch, x, index: x.index_put((index[:, 0],), x[0], accumulate=True))
_by_index("take", lambda torch, x, index: x.take(index))
_by_index("take_along_dim", lambda torch, x, index: torch.take_along_dim(x, index, 0))
_by_index("embedding", lambda torch, x, index: torch.nn.functional.embedding(index[:, 0], x))


def _by_mask(name: str, call: Callable[[Any, Any, Any], Any]) -> None:
    def make(inputs: Inputs) -> Call:
        x, mask = inputs.real(*inputs.square), inputs.truth(*inputs.square)
        return lambda: call(inputs.torch, x, mask)

    enter(name, make)


_by_mask("masked_fill", lambda torch, x, mask: x.masked_fill(mask, 0.0))
_by_mask("masked_select", lambda torch, x, mask: x.masked_select(mask))
_by_mask("x[mask]", lambda torch, x, mask: x[mask])
_by_mask("masked_scatter", lambda torch, x, mask: x.masked_scatter(mask, x))


def _made(name: str, call: Callable[[Any, int], Any]) -> None:
    def make(inputs: Inputs) -> Call:
        inputs.torch.manual_seed(3)
        return lambda: call(inputs.torch, inputs.size)

    enter(name, make, False)


_made("zeros", lambda torch, size: torch.zeros(size))
_made("full", lambda torch, size: torch.full((size,), 2.5))
_made("arange", lambda torch, size: torch.arange(size))
_made("linspace", lambda torch, size: torch.linspace(0, 1, size))
_made("eye", lambda torch, size: torch.eye(int(size**0.5)))
_made("rand", lambda torch, size: torch.rand(size))
_made("randn", lambda torch, size: torch.randn(size))
_made("randint", lambda torch, size: torch.randint(100, (size,)))
_made("randperm", lambda torch, size: torch.randperm(size))
_made("exponential_", lambda torch, size: torch.empty(size).exponential_())
_made("bernoulli_", lambda torch, size: torch.empty(size).bernoulli_(0.3))
_made("log_normal_", lambda torch, size: torch.empty(size).log_normal_())
_made("geometric_", lambda torch, size: torch.empty(size).geometric_(0.3))
_made("cauchy_", lambda torch, size: torch.empty(size).cauchy_())


def _sampled(name: str, call: Function, differentiable: bool = False) -> None:
    def make(inputs: Inputs) -> Call:
        rates = inputs.between(0.1, 20)
        inputs.torch.manual_seed(3)
        return lambda: call(inputs.torch, rates)

    enter(name, make, differentiable)


_sampled("poisson", lambda torch, x: torch.poisson(x))
_sampled("binomial", lambda torch, x: torch.binomial(x.floor(), x / 21))
_sampled("_standard_gamma", lambda torch, x: torch._standard_gamma(x), True)
_sampled("_sample_dirichlet", lambda torch, x: torch._sample_dirichlet(x))
_sampled("multinomial", lambda torch, x: torch.multinomial(x, x.numel(), replacement=True))
_sampled("multinomial, no replacement", lambda torch, x: torch.multinomial(x, x.numel() // 2))
_sampled("bernoulli", lambda torch, x: torch.bernoulli(x / 21))
_sampled("dropout", lambda torch, x: torch.nn.functional.dropout(x, 0.3), True)
_sampled("trunc_normal_", lambda torch, x: torch.nn.init.trunc_normal_(torch.empty_like(x)))
