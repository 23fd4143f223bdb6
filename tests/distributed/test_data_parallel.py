"""`DistributedDataParallel` beside PyTorch's over Gloo, in double precision to the last bits."""

from __future__ import annotations

import copy
import pickle
import sys
import warnings
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest

import flambeau
import flambeau.distributed as dist
from flambeau.distributed.testing import run_in_threads
from flambeau.nn.parallel import DistributedDataParallel

from ..support.oracle import pytorch
from . import training_scenarios
from .oracle import gloo

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="forks PyTorch's ranks")
MINUTES = timedelta(minutes=4)


SIZES = (2, 4)


@pytest.fixture(scope="module")
def theirs() -> Iterator[Any]:
    """What PyTorch's ranks find, while Flambeau's look for it too."""
    if pytorch is None:
        pytest.skip("needs PyTorch")
    with gloo("tests.distributed.training_scenarios", *SIZES) as results:
        yield results


@pytest.fixture(scope="module", params=SIZES)
def found(request: pytest.FixtureRequest, theirs: Any) -> tuple[list[Any], list[Any]]:
    """What the ranks of both libraries found: by rank, and then by scenario."""

    def run(rank: int) -> dict[str, Any]:
        return dict(training_scenarios.run_all(flambeau, rank, request.param))

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        ours = run_in_threads(run, request.param, MINUTES)
    return ours, theirs(request.param)


def assert_close(own: Any, expected: Any, tolerance: float, where: str) -> None:
    if isinstance(expected, float):
        assert own == pytest.approx(expected, rel=tolerance, abs=tolerance), where
    elif isinstance(expected, dict):
        assert set(own) == set(expected), where
        for key in expected:
            assert_close(own[key], expected[key], tolerance, f"{where}.{key}")
    elif isinstance(expected, (list, tuple)):
        assert len(own) == len(expected), where
        for index, (a, b) in enumerate(zip(own, expected, strict=True)):
            assert_close(a, b, tolerance, f"{where}[{index}]")
    else:
        assert own == expected, where


NAMES = {each.__name__ for each in (*training_scenarios.SCENARIOS, *training_scenarios.OF_MANY)}


@pytest.mark.parametrize("name", sorted(NAMES))
def test_as_gloo(found: tuple[list[Any], list[Any]], name: str) -> None:
    ours, theirs = found
    if name not in theirs[0]:
        pytest.skip("for another number of ranks")
    # Some of the hooks round to half precision; columns that are nearly parallel enlarge what rounding did to them.
    tolerance = {"hooks": 1e-2, "hooks_by_name": 1e-4, "compressed": 1e-6}.get(name, 1e-9)
    for rank, (own, expected) in enumerate(zip(ours, theirs, strict=True)):
        assert_close(own[name], expected[name], tolerance, f"rank {rank}")


def test_models_that_differ_are_refused() -> None:
    def work(rank: int) -> str:
        with pytest.raises(RuntimeError) as raised:
            DistributedDataParallel(flambeau.nn.Linear(2 + rank, 1))
        return str(raised.value)

    texts = run_in_threads(work, 2, MINUTES)
    assert "weight" in texts[0]
    assert "(1, 2)" in texts[0]
    assert "(1, 3)" in texts[0]


def test_copies_and_pickles() -> None:
    def work(rank: int) -> None:
        model = DistributedDataParallel(flambeau.nn.Linear(2, 1))
        again = pickle.loads(pickle.dumps(model))
        assert list(again.state_dict()) == ["module.weight", "module.bias"]
        again(flambeau.full((1, 2), float(rank))).sum().backward()
        assert again.module.weight.grad.tolist() == [[0.5, 0.5]]
        assert model.module.weight.grad is None
        assert copy.deepcopy(model.module).weight.equal(model.module.weight)

    run_in_threads(work, 2, MINUTES)


def test_synchronised_statistics_are_those_of_the_whole_batch() -> None:
    generator = flambeau.Generator().manual_seed(0)
    x = flambeau.randn(6, 3, 4, dtype=flambeau.float64, generator=generator)
    weight = flambeau.randn(6, 3, 4, dtype=flambeau.float64, generator=generator)
    whole = flambeau.nn.BatchNorm1d(3).double()
    given = x.clone().requires_grad_()
    expected = whole(given)
    (expected * weight).sum().backward()

    def work(rank: int) -> None:
        start, end = (0, 2) if rank == 0 else (2, 6)
        layer = flambeau.nn.SyncBatchNorm.convert_sync_batchnorm(flambeau.nn.BatchNorm1d(3).double())
        part = x[start:end].clone().requires_grad_()
        result = layer(part)
        (result * weight[start:end]).sum().backward()
        flambeau.testing.assert_close(result, expected[start:end].detach(), check_stride=False)
        flambeau.testing.assert_close(part.grad, given.grad[start:end])
        flambeau.testing.assert_close(layer.running_mean, whole.running_mean)
        flambeau.testing.assert_close(layer.running_var, whole.running_var)

    run_in_threads(work, 2, MINUTES)


@pytest.mark.parametrize("views", [False, True])
def test_whose_memory_gradients_are(views: bool) -> None:
    """Those that somebody keeps stay what they were; those that stay in place are written there."""

    def work(rank: int) -> None:
        model = DistributedDataParallel(flambeau.nn.Linear(2, 1, bias=False), gradient_as_bucket_view=views)
        weight = model.module.weight

        def backward(value: float) -> None:
            model(flambeau.full((1, 2), value + rank)).sum().backward()

        backward(1.0)
        kept = weight.grad
        assert kept.tolist() == [[1.5, 1.5]]
        model.zero_grad()
        backward(3.0)
        assert weight.grad.tolist() == [[3.5, 3.5]]
        assert kept.tolist() == [[1.5, 1.5]]
        present: Any = weight.grad
        window = present[0, :1]
        model.zero_grad(set_to_none=False)
        for value in (5.0, 7.0):
            backward(value)
        assert weight.grad is present
        assert window.tolist() == [5.5 + 7.5]  # each pass adds the mean of what came to the mean that was there

    run_in_threads(work, 2, MINUTES)


@pytest.mark.parametrize(("hook", "enough"), [("powerSGD_hook", 1), ("batched_powerSGD_hook", 7)])
def test_powersgd_of_enough_rank_is_exact(hook: str, enough: int) -> None:
    """PyTorch's own hook for whole buckets fails in 2.13, where it asks for a stack of matrices."""
    from flambeau.distributed.algorithms.ddp_comm_hooks import powerSGD_hook

    def work(rank: int) -> tuple[float, float]:
        model = flambeau.nn.Linear(8, 6, bias=False).double()
        with flambeau.no_grad():
            model.weight.fill_(1)
        wrapped = DistributedDataParallel(model)
        state = powerSGD_hook.PowerSGDState(None, enough, 2, 1)
        wrapped.register_comm_hook(state, getattr(powerSGD_hook, hook))
        errors = []
        for step in range(5):
            wrapped.zero_grad()
            vector = flambeau.arange(8.0, dtype=flambeau.float64) + step
            wrapped(vector * (rank + 1)).sum().backward()
            exact = (vector * 1.5).expand(6, 8)
            assert model.weight.grad is not None
            errors.append((model.weight.grad - exact).abs().max().item())
        assert state.compression_stats()[1:] == (3 * 48, 3 * enough * 14)
        return max(errors[2:]), max(errors[:2])

    for late, early in run_in_threads(work, 2, MINUTES):
        assert early == 0
        assert late < 1e-9  # each gradient is a matrix of rank 1, and what is left of a bucket of 48 one of 7 rows


def test_gradients_that_travel_in_bfloat16() -> None:
    """PyTorch allows it between GPUs alone: each gradient is rounded, halved and added, with a rounding each time."""
    from flambeau.distributed.algorithms.ddp_comm_hooks.default_hooks import bf16_compress_hook

    def work(rank: int) -> Any:
        model = DistributedDataParallel(flambeau.nn.Linear(5, 3))
        model.register_comm_hook(None, bf16_compress_hook)
        inputs = [flambeau.randn(4, 5, generator=flambeau.Generator().manual_seed(other)) for other in range(2)]
        model(inputs[rank]).sum().backward()
        means = [x.sum(0).expand(3, 5).bfloat16() / 2 for x in inputs]
        assert model.module.weight.grad.equal((means[0] + means[1]).float())

    run_in_threads(work, 2, MINUTES)


def test_gradients_arrive_while_the_backward_pass_goes_on() -> None:
    """The first bucket is under way before the first layer has its gradient."""
    events: list[str] = []

    def work(rank: int) -> None:
        model = flambeau.nn.Sequential(*(flambeau.nn.Linear(4, 4) for _ in range(3)))
        wrapped = DistributedDataParallel(model, bucket_cap_mb=1e-5)

        def hook(state: Any, bucket: Any) -> Any:
            if rank == 0:
                events.append(f"bucket {bucket.index()}")
            return dist.all_reduce(bucket.buffer(), async_op=True).get_future()

        wrapped.register_comm_hook(None, hook)
        if rank == 0:
            model[0].weight.register_hook(lambda grad: events.append("first layer"))
        wrapped(flambeau.ones(1, 4)).sum().backward()

    run_in_threads(work, 2, MINUTES)
    assert events.index("bucket 0") < events.index("first layer")


@pytest.mark.parametrize("name", ["QUANTIZE_PER_TENSOR", "QUANTIZE_PER_CHANNEL"])
def test_gradients_that_travel_as_bytes(name: str) -> None:
    """PyTorch has these for GPUs alone: the mean must be right to the steps between bytes."""
    from flambeau.distributed.algorithms.ddp_comm_hooks import DDPCommHookType, register_ddp_comm_hook

    def work(rank: int) -> list[Any]:
        found = []
        for chosen in ("ALLREDUCE", name):
            model = flambeau.nn.Linear(40, 30)
            with flambeau.no_grad():
                model.weight.copy_(flambeau.linspace(-1, 1, 1200).view(30, 40))
                model.bias.zero_()
            wrapped = DistributedDataParallel(model)
            register_ddp_comm_hook(DDPCommHookType[chosen], wrapped)
            wrapped(flambeau.linspace(-1, 2 + rank, 40)[None]).pow(2).sum().backward()
            found.append(flambeau.cat([each.grad.view(-1) for each in model.parameters() if each.grad is not None]))
        return found

    for exact, coded in run_in_threads(work, 2, MINUTES):
        largest = exact.abs().max()
        assert 0 < (exact - coded).abs().max() < largest / 100
