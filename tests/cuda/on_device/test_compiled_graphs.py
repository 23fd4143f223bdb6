"""That compiled functions are graphs of the device, what these say about themselves, and what they leave behind."""

from __future__ import annotations

import gc

import pytest

import flambeau as torch
from flambeau import nn

from .beside import CALLS, drawn, graphs, labels, network, step_of


def test_a_training_step_is_one_graph() -> None:
    """Its gradients lie in the graph's memory, its inputs are copied in, and `explain` says so."""
    model = network(nn.Dropout(0.5))
    step = torch.compile(step_of(model, torch.optim.Adam(model.parameters(), 0.1)))
    held = []
    for _ in range(CALLS):
        held.append((drawn(4, 6), labels()))
        step(*held[-1])
    explained = torch.compiler.explain(step)
    assert explained.startswith("1 program, no call that could not be compiled")
    assert "# one graph, captured once; inputs copied in: 2, results copied out: 0" in explained
    assert "def segment(" in explained


def test_forward_and_backward_are_a_graph_each() -> None:
    """Joined by what the forward part leaves behind."""
    model = network()
    run = torch.compile(model)
    for _ in range(CALLS):
        run(drawn(4, 6)).sum().backward()
    assert graphs(run) == 2


def test_explain_says_why_there_is_no_graph() -> None:
    """What waits for the device runs as a list of launches."""
    lengths, targets = torch.tensor([2]).cuda(), torch.tensor([[1, 2]]).cuda()
    function = torch.compile(
        lambda x: nn.functional.ctc_loss((x * 2).exp().log_softmax(2), targets, lengths + 2, lengths) * 2
    )
    for _ in range(CALLS):
        function(drawn(4, 1, 3))
    assert "# launches one by one: " in torch.compiler.explain(function)
    assert "waits for the device" in torch.compiler.explain(function)


def test_a_program_begins_without_the_memory_of_plain_calls() -> None:
    """Else there would be both: what it needs is of other sizes."""
    run = torch.compile(lambda x: ((x * 2).exp() + 1).log().sum())
    x = drawn(64, 64)
    for _ in range(2):
        run(x)
    large = torch.empty(64 << 20, dtype=torch.uint8, device="cuda")
    del large
    before = torch.cuda.memory_reserved()
    run(x)
    assert before - torch.cuda.memory_reserved() >= 64 << 20


def test_reset_lets_the_memory_go() -> None:
    """The pool of a graph is free when its program is."""
    model = nn.Sequential(nn.Linear(64, 512), nn.ReLU(), nn.Linear(512, 64)).cuda()
    run = torch.compile(lambda x: model(x).exp() + 1)
    x = drawn(1024, 64)
    with torch.no_grad():
        model(x)  # what the library computes in stays, and is no graph's
    gc.collect()
    torch.cuda.empty_cache()
    before = torch.cuda.memory_reserved()
    with torch.no_grad():
        for _ in range(CALLS):
            run(x)
    assert graphs(run) == 1
    assert torch.cuda.memory_reserved() > before
    torch.compiler.reset()
    gc.collect()
    torch.cuda.empty_cache()
    assert torch.cuda.memory_reserved() <= before + (4 << 20)


def test_a_wrong_index_is_reported() -> None:
    """At the next wait, as without a graph; and the function goes on."""
    table = drawn(5, 3)
    function = torch.compile(lambda places: (nn.functional.embedding(places, table) * 2).exp().relu() + 1)
    right = torch.tensor([0, 4, 2]).cuda()
    for _ in range(CALLS):
        expected = function(right).tolist()
    assert graphs(function) == 1
    with pytest.raises(IndexError):
        function(torch.tensor([0, 9, 2]).cuda()).tolist()
    assert function(right).tolist() == expected


def test_a_replay_does_not_wait() -> None:
    """Nothing between the checks and the graph looks at the device."""
    model = network(nn.Dropout(0.5))
    step = torch.compile(step_of(model, torch.optim.Adam(model.parameters(), 0.1)))
    x, y = drawn(4, 6), labels()
    for _ in range(CALLS):
        step(x, y)
    torch.cuda.set_sync_debug_mode("error")
    for _ in range(3):
        step(x, y)
