"""Captured work: its results, its memory, its random numbers, what it refuses."""

from __future__ import annotations

from typing import Any

import pytest

import flambeau as torch

cuda = torch.cuda
F = torch.nn.functional


def _captured(function: Any, *args: Any) -> tuple[Any, Any]:
    function(*args)  # what happens only the first time
    graph = cuda.CUDAGraph()
    with cuda.graph(graph):
        result = function(*args)
    return graph, result


def test_replays_work_on_what_is_in_memory_now() -> None:
    given = torch.ones(64, 64, device="cuda")
    graph, result = _captured(lambda: (given @ given).relu() + given)
    for value in (1.0, 2.0, -3.0):
        given.fill_(value)
        graph.replay()
        assert result[0, 0].item() == max(64 * value * value, 0) + value


def test_nothing_is_done_while_it_is_captured() -> None:
    counter = torch.zeros(3, device="cuda")
    graph = cuda.CUDAGraph()
    with cuda.graph(graph):
        assert cuda.is_current_stream_capturing()
        counter.add_(1)
    assert not cuda.is_current_stream_capturing()
    assert counter.tolist() == [0, 0, 0]
    graph.replay()
    graph.replay()
    assert counter.tolist() == [2, 2, 2]


def test_its_memory_is_its_own_until_it_is_reset() -> None:
    graph, result = _captured(lambda: torch.ones(1000, device="cuda") * 3)
    (segment,) = cuda.memory_snapshot(graph.pool())
    del result
    others = [torch.zeros(1000, device="cuda") for _ in range(20)]
    end = segment["address"] + segment["total_size"]
    assert not any(segment["address"] <= each.data_ptr() < end for each in others)
    pool = graph.pool()
    graph.replay()
    assert all(bool((each == 0).all()) for each in others)
    graph.reset()
    cuda.empty_cache()
    assert not cuda.memory_snapshot(pool)


def test_graphs_share_a_pool() -> None:
    pool = cuda.graph_pool_handle()
    first, second = cuda.CUDAGraph(), cuda.CUDAGraph()
    with cuda.graph(first, pool=pool):
        x = torch.full((10,), 2.0, device="cuda")
    with cuda.graph(second, pool=first.pool()):
        y = x * 3
    assert first.pool() == second.pool() == pool
    first.replay()
    second.replay()
    assert y.tolist() == [6.0] * 10


def test_random_numbers_go_on_from_replay_to_replay() -> None:
    def draws() -> tuple[Any, ...]:
        x = torch.ones(100, device="cuda")
        return torch.rand(50, device="cuda"), F.dropout(x, 0.3), torch.randn(10, device="cuda"), x.bernoulli_(0.5)

    cuda.manual_seed(5)
    expected = [[each.clone() for each in draws()] for _ in range(3)]
    state = cuda.get_rng_state()
    graph, found = _captured(draws)
    cuda.manual_seed(5)
    for want in expected:
        graph.replay()
        assert all(torch.equal(*pair) for pair in zip(found, want, strict=True))
    assert torch.equal(cuda.get_rng_state(), state)


def test_random_numbers_behind_work_whose_memory_is_free_again() -> None:
    """The state of the generator is put on the device before a replay begins: nothing in it may write there."""

    def draws() -> tuple[Any, ...]:
        for _ in range(3):
            x = torch.full((4,), -7.0, device="cuda")
            y = x * 3
            del x, y
        return torch.rand(8, device="cuda"), F.dropout(torch.ones(8, device="cuda"), 0.5)

    cuda.manual_seed(9)
    expected = [[each.clone() for each in draws()] for _ in range(3)]
    graph, found = _captured(draws)
    cuda.manual_seed(9)
    for want in expected:
        graph.replay()
        assert all(torch.equal(*pair) for pair in zip(found, want, strict=True))


def test_a_graph_draws_from_a_few_generators() -> None:
    generators = [torch.Generator("cuda").manual_seed(each) for each in range(3)]
    graph, found = _captured(lambda: [torch.rand(4, generator=each, device="cuda") for each in generators])
    for each in generators:
        each.manual_seed(7)
    graph.replay()
    (want,) = [torch.rand(4, generator=torch.Generator("cuda").manual_seed(7), device="cuda")]
    assert all(torch.equal(each, want) for each in found)
    many = [torch.Generator("cuda") for _ in range(17)]
    with pytest.raises(RuntimeError, match="at most 16 generators"), cuda.graph(cuda.CUDAGraph()):
        [torch.rand(4, generator=each, device="cuda") for each in many]


def _network(kind: str) -> tuple[Any, Any, Any]:
    torch.manual_seed(0)
    layers = torch.nn
    if kind == "perceptron":
        net = layers.Sequential(
            layers.Linear(20, 32), layers.ReLU(), layers.Dropout(0.2), layers.Linear(32, 10)
        )  # fmt: skip
        images = torch.randn(16, 20)
    else:
        net = layers.Sequential(
            layers.Conv2d(1, 4, 3), layers.BatchNorm2d(4), layers.ReLU(), layers.MaxPool2d(2), layers.Flatten(),
            layers.Linear(36, 10),
        )  # fmt: skip
        images = torch.randn(16, 1, 8, 8)
    return net.cuda(), images.cuda(), torch.randint(0, 10, (16,)).cuda()


def _losses(kind: str, make: Any, captured: bool) -> list[float]:
    net, images, labels = _network(kind)
    optimizer = make(net.parameters())
    cuda.manual_seed(1)

    def step() -> Any:
        optimizer.zero_grad()
        loss = F.cross_entropy(net(images), labels)
        loss.backward()
        optimizer.step()
        return loss

    for _ in range(3):
        step()
    if not captured:
        return [step().item() for _ in range(4)]
    graph = cuda.CUDAGraph()
    with cuda.graph(graph):
        loss = step()
    found = []
    for _ in range(4):
        graph.replay()
        found.append(loss.item())
    return found


_OPTIMIZERS = {
    "SGD": lambda params: torch.optim.SGD(params, 0.1, momentum=0.9),
    "Adam": lambda params: torch.optim.Adam(params, 0.01, capturable=True),
    "AdamW": lambda params: torch.optim.AdamW(params, 0.01, capturable=True, amsgrad=True),
}


@pytest.mark.parametrize("optimizer", ["SGD", pytest.param("Adam", marks=pytest.mark.needs_gpu), "AdamW"])
def test_a_training_step(optimizer: str) -> None:
    make = _OPTIMIZERS[optimizer]
    assert _losses("perceptron", make, True) == pytest.approx(_losses("perceptron", make, False), rel=1e-5)


@pytest.mark.needs_gpu
@pytest.mark.parametrize("optimizer", _OPTIMIZERS)
def test_a_training_step_of_a_convolutional_network(optimizer: str) -> None:
    make = _OPTIMIZERS[optimizer]
    assert _losses("convnet", make, True) == pytest.approx(_losses("convnet", make, False), rel=1e-4)


def test_an_optimizer_that_looks_at_its_steps_is_refused() -> None:
    with pytest.raises(RuntimeError, match="capturable is False"):
        _losses("perceptron", lambda params: torch.optim.Adam(params, 0.01), True)
    assert not cuda.is_current_stream_capturing()


def test_a_host_read_is_refused_with_its_line() -> None:
    given = torch.ones(3, device="cuda")
    graph = cuda.CUDAGraph()
    refused = pytest.raises(RuntimeError, match=r"not permitted when stream is capturing.*given\.sum\(\)\.item\(\)")
    with refused, cuda.graph(graph):
        given.sum().item()
    with pytest.raises(RuntimeError, match="without a preceding successful capture"):
        graph.replay()
    assert (given * 2).tolist() == [2, 2, 2]  # the device goes on


def test_the_default_queue_is_refused() -> None:
    with pytest.raises(RuntimeError, match="must be captured on a non-default stream"):
        cuda.CUDAGraph().capture_begin()
    with pytest.raises(RuntimeError, match="Unknown capture error mode"):
        cuda.CUDAGraph().capture_begin(capture_error_mode="strict")


def test_constants_of_the_host_stay_what_they_were() -> None:
    graph, result = _captured(lambda: torch.tensor([1.0, 2.0]).to("cuda") + torch.ones(2, device="cuda"))
    for _ in range(2):
        graph.replay()
        assert result.tolist() == [2, 3]


def test_a_graph_that_is_kept(tmp_path: Any) -> None:
    given = torch.ones(4, device="cuda")
    graph = cuda.CUDAGraph(keep_graph=True)
    with cuda.graph(graph):
        result = given + 1
    graph.debug_dump(str(tmp_path / "graph.dot"))
    assert "digraph" in (tmp_path / "graph.dot").read_text()
    graph.instantiate()
    graph.replay()
    assert result.tolist() == [2, 2, 2, 2]
    with pytest.raises(RuntimeError, match="keep_graph"):
        cuda.CUDAGraph().raw_cuda_graph()


def test_graphed_callables() -> None:
    torch.manual_seed(0)
    layer: Any = torch.nn.Linear(8, 8).cuda()
    plain: Any = torch.nn.Linear(8, 8).cuda()
    plain.load_state_dict(layer.state_dict())
    sample = torch.randn(4, 8, device="cuda", requires_grad=True)
    scale = cuda.make_graphed_callables(lambda x: x * 2 + 1, (torch.ones(4, 8, device="cuda", requires_grad=True),))
    graphed = cuda.make_graphed_callables(layer, (sample,))
    assert graphed is layer
    for seed in (1, 2):
        torch.manual_seed(seed)
        given: Any = torch.randn(4, 8).cuda().requires_grad_()
        other: Any = given.detach().clone().requires_grad_()
        (graphed(scale(given)) ** 2).sum().backward()
        (plain(other * 2 + 1) ** 2).sum().backward()
        assert torch.allclose(given.grad, other.grad, 1e-5, 1e-5)
        assert torch.allclose(layer.weight.grad, plain.weight.grad, 1e-5, 1e-4)
    layer.eval()
    assert torch.allclose(layer(sample), plain(sample))
