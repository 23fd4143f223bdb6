"""Graphs whose replays decide by what is on the device: `torch.cond` in a capture, and nodes made by hand."""

from __future__ import annotations

from typing import Any

import pytest

import flambeau as torch

cuda = torch.cuda


def _captured(function: Any) -> tuple[Any, Any]:
    """A graph, and what a function returned while it was captured."""
    graph = cuda.CUDAGraph()
    with torch.no_grad(), cuda.graph(graph):
        found = function()
    return graph, found


def test_each_replay_takes_a_branch() -> None:
    x = torch.arange(4.0, device="cuda")
    graph, y = _captured(lambda: torch.cond(x.sum() > 5, lambda x: x * 2, lambda x: x - 1, (x,)) + 1)
    for values in ([0.0, 1.0, 2.0, 3.0], [0.0, 0.0, 0.0, 1.0], [9.0, 9.0, 9.0, 9.0]):
        x.copy_(torch.tensor(values))
        graph.replay()
        expected = [each * 2 + 1 if sum(values) > 5 else each for each in values]
        assert y.tolist() == expected
        assert x.tolist() == values


def test_branches_within_branches() -> None:
    a, b, x = torch.tensor(True, device="cuda"), torch.tensor(True, device="cuda"), torch.ones(3, device="cuda")
    weight = torch.arange(9.0, device="cuda").reshape(3, 3)

    def inner(x: Any) -> Any:
        return torch.cond(b, lambda x: x @ weight, lambda x: x.flip(0) + torch.arange(3.0, device="cuda"), (x,))

    graph, y = _captured(lambda: torch.cond(a, inner, lambda x: x * 0, (x,)))
    found = []
    for first in (True, False):
        for second in (True, False):
            a.fill_(first), b.fill_(second)
            graph.replay()
            found.append(y.tolist())
    assert found == [[9.0, 12.0, 15.0], [1.0, 2.0, 3.0], [0.0] * 3, [0.0] * 3]


def test_several_results_and_one_that_is_an_operand() -> None:
    flag, x = torch.tensor([1], device="cuda"), torch.ones(2, device="cuda")
    graph, found = _captured(lambda: torch.cond(flag, lambda x: {"a": x, "b": (x + 1, 3)},
                                                lambda x: {"a": x * 5, "b": (x, 3)}, (x,)))  # fmt: skip
    for number, expected in ((1, ([1.0, 1.0], [2.0, 2.0])), (0, ([5.0, 5.0], [1.0, 1.0]))):
        flag.fill_(number)
        graph.replay()
        assert (found["a"].tolist(), found["b"][0].tolist(), found["b"][1]) == (*expected, 3)
    assert x.tolist() == [1.0, 1.0]


def test_a_network_that_is_run_where_it_is_needed() -> None:
    torch.manual_seed(0)
    net: Any = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.GELU(), torch.nn.Linear(16, 8)).cuda()
    x, flag = torch.randn(4, 8).cuda(), torch.tensor(True, device="cuda")
    with torch.no_grad():
        expected = net(x)
    graph, y = _captured(lambda: torch.cond(flag, net, lambda x: x * 1, (x,)))
    graph.replay()
    assert torch.allclose(y, expected, 1e-5, 1e-6)
    flag.fill_(False)
    graph.replay()
    assert torch.equal(y, x)


def test_nodes_made_by_hand() -> None:
    flag, x = torch.tensor(False, device="cuda"), torch.zeros(3, device="cuda")
    graph = cuda.CUDAGraph()
    with cuda.graph(graph):
        assert cuda.CUDAGraph.get_currently_capturing_graph() is graph
        graph.begin_capture_to_if_node(flag)
        x.add_(1)
        graph.end_capture_to_conditional_node()
        x.add_(10)
    for _ in range(3):
        graph.replay()
        flag.logical_not_()
    assert x.tolist() == [31.0] * 3


def test_outside_of_a_capture_and_what_is_refused() -> None:
    x = torch.ones(2, device="cuda")
    assert torch.cond(x.sum() > 1, lambda x: x + 1, lambda x: x, (x,)).tolist() == [2.0, 2.0]
    with pytest.raises(RuntimeError, match="no CUDAGraph is being captured"):
        cuda.CUDAGraph.get_currently_capturing_graph()
    flag, weight = torch.tensor(True, device="cuda"), torch.ones(2, device="cuda", requires_grad=True)
    wrong: list[tuple[Any, str]] = [
        (lambda: torch.cond(flag, lambda x: x[:1], lambda x: x, (x,)), r"shape \[1\] and \[2\]"),
        (lambda: torch.cond(flag, lambda x: (x, x), lambda x: x, (x,)), "different structures"),
        (lambda: torch.cond(flag, lambda x: 1, lambda x: 2, (x,)), "no tensors"),
    ]
    for call, words in wrong:
        with pytest.raises(RuntimeError, match=words):
            _captured(call)
        assert not cuda.is_current_stream_capturing()
        assert cuda.current_stream() == cuda.default_stream()
    with pytest.raises(RuntimeError, match="no gradients while"), cuda.graph(cuda.CUDAGraph()):
        torch.cond(flag, lambda x: x, lambda x: x, (weight,))
    with pytest.raises(RuntimeError, match="one boolean on a CUDA device"), cuda.graph(cuda.CUDAGraph()):
        cuda.CUDAGraph.get_currently_capturing_graph().begin_capture_to_if_node(x)
    with pytest.raises(RuntimeError, match="without begin_capture_to_if_node"), cuda.graph(cuda.CUDAGraph()):
        cuda.CUDAGraph.get_currently_capturing_graph().end_capture_to_conditional_node()
    assert (x + 1).tolist() == [2.0, 2.0]
