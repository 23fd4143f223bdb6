"""Compiled functions on the device beside themselves uncompiled: their memory, their graphs, and what changes between
calls.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest

import flambeau as torch
from flambeau import nn

from .beside import CALLS, Compile, Program, drawn, labels, network, results, same, step_of

PROGRAMS: dict[str, Program] = {}


def program(function: Program) -> Program:
    PROGRAMS[function.__name__] = function
    return function


# ----- whole steps --------------------------------------------------------------------------------------------------


def trained(compile: Compile, model: Any, optimizer: Any, before: Callable[[int], None] = lambda _: None) -> Any:
    step = compile(step_of(model, optimizer))
    for number in range(CALLS):
        before(number)
        yield step(drawn(4, 6), labels()).detach()
        yield [each.grad for each in model.parameters()]
    yield [each.detach() for each in model.state_dict().values()]


@program
def sgd(compile: Compile) -> Any:
    model = network()
    yield from trained(compile, model, torch.optim.SGD(model.parameters(), 0.1, momentum=0.9))


@program
def adam_with_a_schedule(compile: Compile) -> Any:
    model = network()
    optimizer = torch.optim.Adam(model.parameters(), 0.1)
    schedule = torch.optim.lr_scheduler.StepLR(optimizer, 2, 0.5)
    yield from trained(compile, model, optimizer, lambda number: schedule.step() if number else None)


@program
def adamw_with_another_rate(compile: Compile) -> Any:
    model = network()
    optimizer = torch.optim.AdamW(model.parameters(), 0.1)

    def change(number: int) -> None:
        if number > 5:
            optimizer.param_groups[0]["lr"] = 0.01 * number

    yield from trained(compile, model, optimizer, change)


@program
def steps_counted_on_the_device(compile: Compile) -> Any:
    model = network()
    yield from trained(compile, model, torch.optim.Adam(model.parameters(), 0.1, capturable=True))


@program
def dropout_and_seeds(compile: Compile) -> Any:
    model = network(nn.Dropout(0.5))

    def seed(number: int) -> None:
        if number == 6:
            torch.manual_seed(3)

    yield from trained(compile, model, torch.optim.SGD(model.parameters(), 0.1), seed)
    yield torch.cuda.get_rng_state()


@program
def running_statistics(compile: Compile) -> Any:
    model = network(nn.BatchNorm1d(8))
    yield from trained(compile, model, torch.optim.SGD(model.parameters(), 0.1))


@program
def loaded_in_between(compile: Compile) -> Any:
    model = network()
    other = {name: each.clone() for name, each in model.state_dict().items()}

    def load(number: int) -> None:
        if number == 6:
            model.load_state_dict(other)

    yield from trained(compile, model, torch.optim.SGD(model.parameters(), 0.1, momentum=0.5), load)


@program
def parameters_elsewhere(compile: Compile) -> Any:
    model = network()

    def move(number: int) -> None:
        if number > 5:
            for each in model.parameters():
                each.data = each.data.clone()

    yield from trained(compile, model, torch.optim.SGD(model.parameters(), 0.1), move)


@program
def the_loss_as_a_number(compile: Compile) -> Any:
    model = network()
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    train = step_of(model, optimizer)

    @compile
    def step(x: Any, y: Any) -> Any:
        return train(x, y).item()

    for _ in range(CALLS):
        yield step(drawn(4, 6), labels())


@program
def gradients_that_add_up(compile: Compile) -> Any:
    model = network()

    @compile
    def step(x: Any, y: Any) -> Any:
        nn.functional.cross_entropy(model(x), y).backward()

    for number in range(2 * CALLS):
        step(drawn(4, 6), labels())
        yield [each.grad.clone() for each in model.parameters()]
        if number % 5 == 4:
            model.zero_grad()


@program
def gradients_that_are_kept(compile: Compile) -> Any:
    model = network()
    step = compile(step_of(model, torch.optim.SGD(model.parameters(), 0.1)))
    kept = []
    for _ in range(CALLS):
        step(drawn(4, 6), labels())
        kept.append([each.grad for each in model.parameters()])
    yield kept


@program
def in_bfloat16(compile: Compile) -> Any:
    model = network()
    optimizer = torch.optim.SGD(model.parameters(), 0.1)

    @compile
    def step(x: Any, y: Any) -> Any:
        optimizer.zero_grad()
        with torch.autocast("cuda", dtype=torch.bfloat16):
            loss = nn.functional.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        return loss

    for _ in range(CALLS):
        yield step(drawn(4, 6), labels())


# ----- memory -------------------------------------------------------------------------------------------------------


@program
def results_that_are_kept(compile: Compile) -> Any:
    function = compile(lambda x: ((x * 2).exp() + 1).relu() - x)
    kept = [function(drawn(3, 4)) for _ in range(CALLS)]
    yield kept


@program
def results_that_come_back(compile: Compile) -> Any:
    function = compile(lambda x, y: (x * y + y).tanh() * x + y)
    state = drawn(3, 4)
    for _ in range(CALLS):
        state = function(state, drawn(3, 4))
        yield state


@program
def results_kept_now_and_then(compile: Compile) -> Any:
    function = compile(lambda x: (x * 2).exp().relu() + 1)
    kept = []
    for number in range(3 * CALLS):
        found = function(drawn(3, 4))
        yield found.clone()
        if number > 9 and number % 3 == 0:
            kept.append(found)
        del found
    yield kept


@program
def windows_on_results(compile: Compile) -> Any:
    function = compile(lambda x: (x * 2).exp().relu() + 1)
    kept = [function(drawn(3, 4))[1:, ::2] for _ in range(CALLS)]
    yield kept


@program
def results_changed_in_place(compile: Compile) -> Any:
    function = compile(lambda x: (x * 2).exp().relu() + 1)
    for _ in range(CALLS):
        yield function(drawn(3, 4)).mul_(2)


@program
def inputs_everywhere(compile: Compile) -> Any:
    function = compile(lambda x, y: (x * 2).exp() * y + x)
    held = []
    for _ in range(2 * CALLS):
        held.append((drawn(3, 4), drawn(3, 4)))
        yield function(*held[-1])


@program
def inputs_with_gaps(compile: Compile) -> Any:
    function = compile(lambda x: (x * 2).exp() + x * x)
    held = []
    for _ in range(2 * CALLS):
        held.append(drawn(6, 8))
        yield function(held[-1][::2, 1::3])


@program
def inputs_changed_in_place(compile: Compile) -> Any:
    @compile
    def function(x: Any, y: Any) -> Any:
        x.mul_(2).add_(y)
        return (x.exp() + y).relu()

    held = []
    for _ in range(2 * CALLS):
        x = drawn(3, 4)
        held.append(x)
        yield function(x, drawn(3, 4)), x


@program
def a_window_of_an_input_changes(compile: Compile) -> Any:
    @compile
    def function(x: Any) -> Any:
        x[1:].mul_(2)
        return (x.exp() + 1).relu()

    x = drawn(3, 4)
    for number in range(CALLS):
        yield function(x), x
        if number > 5:
            x = drawn(3, 4)


@program
def two_inputs_become_one(compile: Compile) -> Any:
    @compile
    def function(x: Any, y: Any) -> Any:
        x.mul_(2)
        return (y.exp() + x).relu() * y

    for number in range(2 * CALLS):
        x = drawn(3, 4)
        y = drawn(3, 4) if number < CALLS or number % 2 else x.detach()
        yield function(x, y), x


@program
def a_window_on_an_input_goes_on(compile: Compile) -> Any:
    @compile
    def function(x: Any) -> Any:
        turned = x.t()
        scaled = (turned * 2).exp().relu()
        return scaled + 1, (turned @ x).sum()

    for _ in range(CALLS):
        yield function(drawn(3, 4))


# ----- forward and backward apart -----------------------------------------------------------------------------------


@program
def a_module(compile: Compile) -> Any:
    model = network()
    run = compile(model)
    for _ in range(CALLS):
        x = drawn(4, 6).requires_grad_()
        run(x).square().sum().backward()
        yield x.grad, [each.grad.clone() for each in model.parameters()]


@program
def two_forwards_before_a_backward(compile: Compile) -> Any:
    model = network(nn.Dropout(0.5))
    run = compile(model)
    for _ in range(CALLS):
        first, second = run(drawn(4, 6)), run(drawn(4, 6))
        (first * second).sum().backward()
        yield [each.grad.clone() for each in model.parameters()]


@program
def forwards_without_backward(compile: Compile) -> Any:
    model = network()
    run = compile(model)
    for number in range(2 * CALLS):
        out = run(drawn(4, 6))
        if number % 3 == 0:
            out.sum().backward()
        yield out.detach()
    yield [each.grad for each in model.parameters()]


@program
def without_gradients_too(compile: Compile) -> Any:
    model = network(nn.Dropout(0.5))
    run = compile(model)
    for number in range(3 * CALLS):
        if number % 2:
            model.eval()
            with torch.no_grad():
                yield run(drawn(4, 6))
            model.train()
        else:
            out = run(drawn(4, 6))
            out.sum().backward()
            yield out.detach(), model[0].weight.grad.clone()


# ----- what is not for a graph --------------------------------------------------------------------------------------


@program
def numbers_of_the_host(compile: Compile) -> Any:
    function = compile(lambda x: (x[torch.randperm(4, device="cuda")] * 2).exp() + 1)
    for _ in range(CALLS):
        yield function(drawn(4, 3))


@program
def from_the_host_and_back(compile: Compile) -> Any:
    function = compile(lambda x, y: ((x.cuda() * 2).exp().relu() + y).cpu() * 2)
    for _ in range(CALLS):
        yield function(torch.randn(4, 3), drawn(4, 3))


@program
def a_number_of_the_host(compile: Compile) -> Any:
    function = compile(lambda x, scale: (x.exp() * scale).relu() + x * scale + 1)
    for number in range(CALLS):
        yield function(drawn(4, 3), torch.tensor(float(number)))


@program
def reads(compile: Compile) -> Any:
    @compile
    def function(x: Any) -> Any:
        y = (x * 2).exp().relu() + 1
        return y * 2 if y.sum() > 0 else y

    for _ in range(CALLS):
        yield function(drawn(4, 3))


@program
def many_sizes(compile: Compile) -> Any:
    function = compile(lambda x: (x * 2).exp().relu() + x.sum(0))
    for number in range(5 * CALLS):
        yield function(drawn(2 + number % 6, 3))


@program
def other_queues(compile: Compile) -> Any:
    function = compile(lambda x: (x * 2).exp().relu() + 1)
    side = torch.cuda.Stream()
    for number in range(2 * CALLS):
        x = drawn(4, 3)
        if number % 3 == 2:
            side.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(side):
                found = function(x)
            torch.cuda.current_stream().wait_stream(side)
        else:
            found = function(x)
            found.record_stream(side)
        yield found


@program
def inside_a_graph(compile: Compile) -> Any:
    function = compile(lambda x: (x * 2).exp().relu() + 1)
    x = drawn(4, 3)
    for _ in range(CALLS):
        yield function(x)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        found = function(x)
    for _ in range(3):
        x.copy_(drawn(4, 3))
        graph.replay()
        yield found


@program
def several_threads(compile: Compile) -> Any:
    function = compile(lambda x: (x * 2).exp().relu() + 1)
    given = [drawn(4, 3) for _ in range(4)]
    for each in given * 3:
        yield function(each)
    found: dict[int, list[Any]] = {}

    def work(number: int) -> None:
        found[number] = [function(given[number]) for _ in range(20)]

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    yield [found[number] for number in range(4)]


@pytest.mark.parametrize("name", PROGRAMS)
def test_compiled_calls_are_those_of_the_function(name: str) -> None:
    """Whatever changes between calls."""
    assert same(results(PROGRAMS[name], torch.compile), results(PROGRAMS[name], lambda function: function))
