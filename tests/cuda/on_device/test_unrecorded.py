"""Ops of which nobody wants a derivative: some have a shorter way on a device, with the same results."""

from __future__ import annotations

import threading
from typing import Any

import pytest

import flambeau as torch

functional = torch.nn.functional


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("weighted", [False, True])
def test_norms_give_the_same_with_and_without_a_derivative(dtype: str, weighted: bool) -> None:
    kind = getattr(torch, dtype)
    x = torch.randn(3, 5, 24).to(kind).cuda()
    weight, bias = (torch.randn(24).to(kind).cuda() if weighted else None for _ in range(2))
    recorded = x.clone().requires_grad_()
    for alone, whole in (
        (functional.rms_norm(x, (24,), weight), functional.rms_norm(recorded, (24,), weight)),
        (functional.layer_norm(x, (24,), weight, bias), functional.layer_norm(recorded, (24,), weight, bias)),
        (functional.layer_norm(x[:, ::2], (24,)), functional.layer_norm(recorded[:, ::2], (24,))),
    ):
        assert alone.grad_fn is None
        assert whole.grad_fn is not None
        assert torch.equal(alone, whole.detach())
        assert alone.stride() == whole.stride()
    parameters = [None if each is None else each.cpu().double() for each in (weight, bias)]
    wanted = functional.layer_norm(x.cpu().double(), (24,), *parameters)
    close = 2e-2 if dtype == "bfloat16" else 1e-5
    assert torch.allclose(functional.layer_norm(x, (24,), weight, bias).cpu().double(), wanted, close, close)


def test_what_is_saved_of_a_norm_is_there_when_its_weight_alone_is_differentiated() -> None:
    x, weight = torch.randn(4, 16).cuda(), torch.ones(16).cuda().requires_grad_()
    functional.rms_norm(x, (16,), weight).sum().backward()
    root = (x.cpu() ** 2).mean(1, keepdim=True).sqrt()
    assert torch.allclose(weight.grad.cpu(), (x.cpu() / root).sum(0), 1e-4, 1e-4)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("shape", [(5, 24), (2, 3, 24)])
def test_a_layer_without_bias(dtype: str, shape: tuple[int, ...]) -> None:
    kind = getattr(torch, dtype)
    x, weight = torch.randn(shape).to(kind), torch.randn(8, 24).to(kind)
    wide = x.double() @ weight.double().T
    for _ in range(2):
        found = functional.linear(x.cuda(), weight.cuda())
        assert torch.allclose(found.cpu().double(), wide, 2e-2, 5e-2)
    apart = torch.randn(40 * 24 + 1).to(kind)[1:].reshape(40, 24)  # does not begin at a multiple of 16 bytes
    there = torch.empty(40 * 24 + 1, dtype=kind, device="cuda")
    there[1:] = apart.reshape(-1).cuda()
    found = functional.linear(there[1:].view(40, 24), weight.cuda())
    assert torch.allclose(found.cpu().double(), apart.double() @ weight.double().T, 2e-2, 5e-2)


def test_a_layer_without_bias_refuses_as_on_the_cpu() -> None:
    for x, weight in ((torch.randn(3, 4), torch.randn(2, 5)), (torch.tensor(1.0), torch.randn(2, 5))):
        with pytest.raises(RuntimeError) as there:
            functional.linear(x.cuda(), weight.cuda())
        with pytest.raises(RuntimeError) as here:
            functional.linear(x, weight)
        assert type(there.value) is type(here.value)


def test_threads_that_have_done_nothing_before() -> None:
    x = torch.randn(16, 16).cuda()
    found: dict[str, Any] = {}

    def run(name: str, compute: Any) -> None:
        with torch.no_grad():
            found[name] = compute()

    programs = {"launch": lambda: x + x, "product": lambda: x @ x, "layer": lambda: functional.linear(x, x)}
    for each in programs.items():
        thread = threading.Thread(target=run, args=each)
        thread.start()
        thread.join()
    assert torch.equal(found["launch"], x + x)
    assert torch.allclose(found["product"], x @ x)
    assert torch.allclose(found["layer"], x @ x.T, 1e-4, 1e-4)


def test_parts_are_windows() -> None:
    x = torch.arange(48.0).reshape(2, 4, 6)
    there = x.cuda()
    for parts, wanted in ((there.chunk(2, -1), x.chunk(2, -1)), (there.split(3, 1), x.split(3, 1))):
        for part, want in zip(parts, wanted, strict=True):
            assert part._base is there
            assert part.tolist() == want.tolist()
    there.chunk(3, 2)[1].zero_()
    assert there[0, 0].tolist() == [0.0, 1.0, 0.0, 0.0, 4.0, 5.0]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("exponent", [2, 3.0, 0.5, -0.5])
def test_powers_of_one_kernel_have_the_bits_of_the_cpu(dtype: str, exponent: float) -> None:
    """Products, roots and quotients are exact: of nothing, of parts and without dimensions, too."""
    for shape in ((), (0, 3), (5, 7), (90, 100)):
        for part in (slice(None), slice(None, None, 2)):
            x = torch.rand(shape, dtype=getattr(torch, dtype))[(..., part) if shape else ...]
            grad = torch.rand(x.shape, dtype=x.dtype)
            found = []
            for place in (torch.device("cpu"), torch.device("cuda")):
                own = x.to(place).detach().requires_grad_()
                raised = own**exponent
                found.append([raised.cpu(), *torch.autograd.grad(raised, own, grad.to(place))])
            assert torch.equal(*[each[0] for each in found])
            if exponent != -0.5:  # its derivative is a power of -1.5, which is none of these
                assert torch.equal(*[each[1].cpu() for each in found])
