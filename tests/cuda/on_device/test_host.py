"""Ops without a kernel run on the host, and say so once."""

from __future__ import annotations

import warnings
from typing import Any

import pytest

import flambeau as torch
from flambeau._core.process.host_calls import HOST_OPS


@pytest.mark.parametrize(
    ("name", "call"),
    [
        ("ldl_factor", lambda x: torch.linalg.ldl_factor(x @ x.T)),
        ("histogramdd", lambda x: torch.histogramdd(x[:, :2], 3)),
    ],
)
def test_an_op_without_a_kernel_says_so_once(name: str, call: Any) -> None:
    x = torch.rand(4, 4).cuda()
    for key in [each for each in HOST_OPS if name in each]:
        del HOST_OPS[key]
    with pytest.warns(UserWarning, match=rf"{name}\w* ran on the host: it has no kernel for cuda") as given:
        call(x)
    assert [each.filename for each in given] == [__file__] * len(given)
    before = HOST_OPS.total()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        call(x)
    assert HOST_OPS.total() > before


def _drawn(x: Any) -> list[Any]:
    d = torch.distributions
    scale = x.detach().clone().requires_grad_()
    samples = [d.Gamma(scale, scale).rsample(), d.Dirichlet(scale).rsample()]
    sum(each.square().sum() for each in samples).backward()
    return [torch.poisson(x), torch.binomial(x * 10, x), *[each.detach() for each in samples], scale.grad]


@pytest.mark.filterwarnings("ignore:.* ran on the host")
def test_numbers_that_are_accepted_or_rejected_are_those_of_the_host() -> None:
    x = torch.rand(50) + 0.1
    found = []
    for each in (x, x.cuda()):
        torch.manual_seed(3)
        found.append(_drawn(each))
    for mine, wanted in zip(found[1], found[0], strict=True):
        assert mine.device.type == "cuda"
        torch.testing.assert_close(mine.cpu(), wanted)


@pytest.mark.filterwarnings("ignore:.* ran on the host")
def test_a_devices_generator_seeds_what_the_host_draws() -> None:
    rates = torch.rand(50).cuda() * 20
    generator = torch.Generator("cuda").manual_seed(5)
    first, second = torch.poisson(rates, generator=generator), torch.poisson(rates, generator=generator)
    assert not torch.equal(first, second)
    assert torch.equal(torch.poisson(rates, generator=generator.manual_seed(5)), first)


def test_ops_with_kernels_say_nothing() -> None:
    before = HOST_OPS.total()
    x = torch.rand(4, 4, device="cuda", requires_grad=True)
    (torch.nn.functional.gelu(x @ x).softmax(1).sort(1).values.cumsum(0) + x.flip(0)).sum().backward()
    assert HOST_OPS.total() == before


def _segments(x: Any) -> Any:
    lengths = torch.tensor([1, 0, 3], device=x.device)
    return [
        torch.segment_reduce(x, each, lengths=lengths, initial=1.0) for each in ("sum", "mean", "max", "min", "prod")
    ]


def _bags(x: Any) -> Any:
    words = torch.tensor([0, 2, 3, 3, 1], device=x.device)
    starts = torch.tensor([0, 2, 2], device=x.device)
    return [torch.nn.functional.embedding_bag(words, x, starts, mode=each) for each in ("sum", "mean", "max")]


def _alignments(x: Any) -> Any:
    scores = torch.cat([x, x * 2, x - 1]).reshape(6, 2, 4).log_softmax(2)
    labels = torch.tensor([[1, 2], [3, 3]], device=x.device)
    return torch.nn.functional.ctc_loss(scores, labels, (6, 5), (2, 2), reduction="none")


def _margins(x: Any) -> Any:
    return torch.nn.functional.multilabel_margin_loss(x, torch.tensor([[0, 2, -1, 1]] * 4, device=x.device))


def _repeats(x: Any) -> Any:
    return x.repeat_interleave(torch.tensor([2, 0, 1, 3], device=x.device), 0)


@pytest.mark.parametrize("call", [_segments, _bags, _alignments, _margins, _repeats])
def test_results_and_gradients_come_from_the_device(call: Any) -> None:
    x = torch.rand(4, 4, generator=torch.Generator().manual_seed(1))
    before = HOST_OPS.total()
    seen = []
    for device in ("cpu", "cuda"):
        own = x.to(device, copy=True).requires_grad_()
        results = call(own)
        results = results if isinstance(results, list) else [results]
        (gradient,) = torch.autograd.grad(sum(each.pow(2).sum() for each in results), own)
        seen.append([each.detach().cpu() for each in (*results, gradient)])
    assert HOST_OPS.total() == before
    for ours, theirs in zip(*seen, strict=True):
        torch.testing.assert_close(ours, theirs)


def test_the_checksum_of_one_element_comes_from_the_device() -> None:
    before = HOST_OPS.total()
    assert torch.hash_tensor(torch.tensor(1.5, device="cuda")).item() == torch.hash_tensor(torch.tensor(1.5)).item()
    assert HOST_OPS.total() == before
