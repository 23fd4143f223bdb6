"""What programs do without: changes in place, copies, repeated ops."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import flambeau as torch
from flambeau._backends.tiers import FAMILIES, generated, library
from flambeau.compiler._compiled import Compiled
from flambeau.compiler.emit import outline as _outline
from flambeau.compiler.program.items import Call

Function = Callable[..., Any]


def bits(tree: Any) -> Any:
    if isinstance(tree, (tuple, list)):
        return [bits(each) for each in tree]
    return tree if tree is None else (tuple(tree.shape), tree.stride(), tree.detach().numpy().tobytes())


def ops_of(function: Function, monkeypatch: pytest.MonkeyPatch, *args: Any) -> list[str]:
    """The ops of the program of a function, which gives what the function gives, call after call."""
    found: list[list[str]] = []
    improved = _outline.improved

    def seen(*items: Any) -> Any:
        kept = improved(*items)
        found.append([each.op.name for each in kept if isinstance(each, Call)])
        return kept

    monkeypatch.setattr(_outline, "improved", seen)
    made = Compiled(function)
    for _ in range(5):
        assert bits(made(*args)) == bits(function(*args))
    assert made.programs, made.reasons
    return found[0]


def test_an_op_in_place_makes_a_new_array(monkeypatch: pytest.MonkeyPatch) -> None:
    def function(x: Any) -> Any:
        y = x * 2
        y.relu_()
        y += 1
        return y * y

    assert ops_of(function, monkeypatch, torch.linspace(-1, 1, 6)) == ["mul", "relu", "add", "mul"]


def test_so_does_one_whose_argument_a_derivative_needs(monkeypatch: pytest.MonkeyPatch) -> None:
    weight = torch.linspace(-1, 1, 6, requires_grad=True)

    def function(x: Any) -> Any:
        weight.grad = None
        y = x * weight
        y.sin_()
        y.relu_()
        y.sum().backward()
        return weight.grad * 1

    ops = ops_of(function, monkeypatch, torch.linspace(-1, 2, 6))
    assert not {"copy_", "clone", "copied_like"} & {*ops}


def test_a_row_of_what_was_there_is_written_in_place(monkeypatch: pytest.MonkeyPatch) -> None:
    cache, position = torch.zeros(2, 5, 3), torch.tensor([1, 3])

    def function(x: Any) -> Any:
        cache.index_copy_(1, position, x * 2)
        return cache * 1

    assert ops_of(function, monkeypatch, torch.linspace(-1, 1, 12).reshape(2, 2, 3)) == ["mul", "copy_", "mul"]


def row_of_itself(x: Any) -> Any:
    x[:, :2].index_copy_(0, torch.tensor([1, 2]), x[:2, :2])  # what is written lies in the same memory
    return x * 2


def looked_at_between(x: Any) -> Any:
    y = x.index_copy(0, torch.tensor([1]), x[:1] * 3)
    x.copy_(y)
    return y + 1, x * 2


def filled_and_put(x: Any) -> Any:
    x.masked_fill_(x > 1, 0.5)
    x.index_put_((torch.tensor([0, 2]),), x[1] * 2, accumulate=True)
    return x.scatter_(0, torch.tensor([[1]]), 7.0) * 1


@pytest.mark.parametrize("function", [row_of_itself, looked_at_between, filled_and_put])
def test_writing_into_what_was_there_is_as_by_the_ops(function: Function) -> None:
    made = Compiled(function)
    for number in range(5):
        ours, plain = (torch.linspace(-2, 2, 12).reshape(4, 3) * (1 + number) for _ in range(2))
        assert bits(made(ours)) == bits(function(plain))
        assert bits(ours) == bits(plain)
    assert made.programs, made.reasons


def test_a_row_that_is_not_there_is_not_written() -> None:
    cache = torch.zeros(3, 2)

    def function(x: Any, position: Any) -> Any:
        cache.index_copy_(0, position, x * 2)
        return cache * 1

    made = Compiled(function)
    for _ in range(5):
        made(torch.ones(1, 2), torch.tensor([1]))
    assert made.programs, made.reasons
    with pytest.raises(IndexError, match="index 3 is out of bounds for dimension 0 with size 3"):
        made(torch.ones(1, 2), torch.tensor([3]))
    assert cache.tolist() == [[0, 0], [2, 2], [0, 0]]


def changed_argument(x: Any) -> Any:
    x.add_(1)
    return x * 2


def changed_view(x: Any) -> Any:
    y = x * 2
    first = y[0]
    y.mul_(3)
    return first + 1, y[1] * 1


def changed_through_a_view(x: Any) -> Any:
    y = x * 2
    y[0].mul_(3)
    return y + 0


def both_names(x: Any) -> Any:
    y, z = x * 2, x * 3
    y.copy_(z)
    y.add_(1)
    return y * 1, z * 1


def source_changes(x: Any) -> Any:
    y, z = x * 2, x * 3
    y.copy_(z)
    z.add_(1)
    return y * 1, z * 1


def result_changes(x: Any) -> Any:
    y = x * 2
    y.relu_()
    return y


def copy_changes(x: Any) -> Any:
    y = x * 2
    z = y.clone()
    z.add_(1)
    return y * 1, z * 1


def original_changes(x: Any) -> Any:
    y = x * 2
    z = y.clone()
    y.add_(1)
    return y * 1, z * 1


def copy_of_an_argument(x: Any) -> Any:
    y = x.clone()
    x.add_(1)
    return y * 2


def changed_view_of_an_argument(x: Any) -> Any:
    y = x[0]
    y.add_(1)
    return y * 2


def changed_part_of_an_argument(x: Any) -> Any:
    y = x[:, ::2]
    y.add_(1)
    y.mul_(2)
    return y * 2, x * 1


def changed_constant(x: Any) -> Any:
    y = torch.zeros(2, 3)
    y[0].copy_(torch.ones(3))
    y.add_(x)
    y[1].mul_(2)
    return y + torch.zeros(2, 3)


def copy_is_the_result(x: Any) -> Any:
    y = x * 2
    return y, y.clone()


def copies_twice(x: Any) -> Any:
    y = x * 2
    return y.clone(), y.clone()


def copy_of_a_part(x: Any) -> Any:
    y = x * 2
    return y[0].clone()


def copy_that_changes_later(x: Any) -> Any:
    y = x * 2
    z = y + 1
    copy = y.clone()
    copy.add_(z)
    return copy


def repeated_results(x: Any) -> Any:
    return x * 2, x * 2


def repeated_and_changed(x: Any) -> Any:
    y, z = x * 2, x * 2
    y[0].add_(1)
    return y + 1, z + 1


def repeated_around_a_change(x: Any) -> Any:
    y = x * 2
    first = y + 1
    y[0].zero_()
    return first * 1, (y + 1) * 1


def other_numbers(x: Any) -> Any:
    return (x * 0.0) + (x * -0.0), (x * 2).sum() + (x * 2.0).sum()


@pytest.mark.parametrize(
    "function",
    [
        changed_argument, changed_view, changed_through_a_view, both_names, source_changes, result_changes,
        copy_changes, original_changes, copy_of_an_argument, changed_view_of_an_argument,
        changed_part_of_an_argument, changed_constant, copy_is_the_result, copies_twice, copy_of_a_part,
        copy_that_changes_later, repeated_results, repeated_and_changed, repeated_around_a_change, other_numbers,
    ],
)  # fmt: skip
def test_what_somebody_sees_is_left_as_it_is(function: Function) -> None:
    made = Compiled(function)
    kept = []
    for number in range(6):
        one, other = (torch.linspace(-1, 1, 6).reshape(2, 3) + number for _ in range(2))
        results = made(one), function(other)
        assert bits(results[0]) == bits(results[1])
        assert bits(one) == bits(other)
        kept.append((results[0], bits(results[0])))
    assert all(bits(result) == before for result, before in kept)


def copied_before_another_changes(x: Any, y: Any) -> Any:
    kept = x.clone()
    y.add_(1)
    return kept * 2


def repeated_after_another_changes(x: Any, y: Any) -> Any:
    before = x * 2
    y.add_(1)
    return before + x * 2


def both_change(x: Any, y: Any) -> Any:
    x.add_(1)
    y.mul_(2)
    return x + y


@pytest.mark.parametrize("function", [copied_before_another_changes, repeated_after_another_changes, both_change])
def test_two_arguments_may_be_one_the_next_time(function: Function) -> None:
    made = Compiled(function)
    for _ in range(5):
        one, other = (torch.arange(6.0), torch.ones(6)), (torch.arange(6.0), torch.ones(6))
        assert bits((made(*one), one)) == bits((function(*other), other))
    assert made.programs
    for first, second in ((slice(0, 6), slice(0, 6)), (slice(0, 6), slice(2, 8)), (slice(2, 8), slice(0, 6))):
        mine, plain = torch.arange(8.0), torch.arange(8.0)
        found = bits(made(mine[first], mine[second]))
        assert (found, bits(mine)) == (bits(function(plain[first], plain[second])), bits(plain))


def test_a_copy_that_is_given_back_is_what_it_would_be_a_copy_of(monkeypatch: pytest.MonkeyPatch) -> None:
    def function(x: Any) -> Any:
        y = x * 2
        return y.exp() - y, y.clone()

    assert ops_of(function, monkeypatch, torch.linspace(-1, 1, 6)) == ["mul", "exp", "sub"]


def test_gradients_are_nobody_elses_memory() -> None:
    torch.manual_seed(0)
    layer = torch.nn.Linear(4, 3)

    def step(x: Any) -> Any:
        layer.weight.grad = layer.bias.grad = None
        layer(x).square().sum().backward()

    found: list[Any] = []
    made = Compiled(step)
    x = torch.randn(5, 4)
    for _ in range(6):
        made(x)
        found.append((layer.weight.grad, layer.bias.grad))
    assert made.programs
    ours = bits(found[-1])
    for each in found[-2]:
        each.zero_()
    assert bits(found[-1]) == ours
    step(x)
    assert bits((layer.weight.grad, layer.bias.grad)) == ours


def test_two_parameters_with_one_gradient_have_two_arrays() -> None:
    one, other = (torch.ones(3, requires_grad=True) for _ in range(2))

    def step(x: Any) -> Any:
        one.grad = other.grad = None
        ((one + other) * x).sum().backward()

    made = Compiled(step)
    for _ in range(5):
        made(torch.arange(3.0))
    assert made.programs
    assert one.grad is not None
    assert other.grad is not None
    one.grad.zero_()
    assert other.grad.tolist() == [0, 1, 2]


def test_arrays_without_elements_have_no_memory_to_share() -> None:
    def function(x: Any) -> Any:
        y = x * 2
        y.add_(1)
        return (y.clone() * 2 + y.clone() * 2).sum(0)

    made = Compiled(function)
    for _ in range(5):
        assert bits(made(torch.ones(0, 3))) == bits(function(torch.ones(0, 3)))
    assert made.programs


def test_an_op_that_is_repeated_runs_once(monkeypatch: pytest.MonkeyPatch) -> None:
    def function(x: Any) -> Any:
        return x.exp() * 2 + x.exp() * 3

    assert ops_of(function, monkeypatch, torch.linspace(-1, 1, 6)) == ["exp", "mul", "mul", "add"]


def test_places_of_maxima_are_left_out_where_nobody_goes_back(monkeypatch: pytest.MonkeyPatch) -> None:
    def largest(x: Any) -> Any:
        return torch.nn.functional.max_pool2d(x * 2, 2)

    x = torch.linspace(-1, 1, 36).reshape(1, 1, 6, 6)
    x[0, 0, 1, 1] = float("nan")
    assert ops_of(largest, monkeypatch, x) == ["mul", "max_pool"]


def test_convolutions_and_norms_are_on_one_tape() -> None:
    torch.manual_seed(0)
    model = torch.nn.Sequential(
        torch.nn.Conv2d(3, 8, 3, padding=1), torch.nn.BatchNorm2d(8), torch.nn.ReLU(inplace=True),
        torch.nn.AvgPool2d(2), torch.nn.Conv2d(8, 16, 3, bias=False), torch.nn.GroupNorm(2, 16), torch.nn.ReLU(),
        torch.nn.AdaptiveAvgPool2d(1), torch.nn.Flatten(), torch.nn.Linear(16, 4),
    )  # fmt: skip
    x = torch.randn(8, 3, 12, 12)
    statistics = model[1].running_mean, model[1].running_var, model[1].num_batches_tracked

    def step() -> Any:
        for each in model.parameters():
            each.grad = None
        loss = model(x).square().mean()
        loss.backward()
        return loss.detach()

    start = [each.clone() for each in statistics]
    made = Compiled(step)
    for _ in range(6):
        before = [each.clone() for each in statistics]
        loss = made()
        found = bits(loss), bits(statistics), bits([each.grad for each in model.parameters()])
        for each, old in zip(statistics, before, strict=True):
            each.copy_(old)
        assert found == (bits(step()), bits(statistics), bits([each.grad for each in model.parameters()]))
    assert not np.array_equal(start[0].numpy(), statistics[0].numpy())
    program: Any = made.programs[0]
    if library() is not None:  # some of the generated convolutions run from Python
        assert len(program.__globals__["schedules"]) == 1


def test_convolutions_by_generated_code_are_in_call_lists(monkeypatch: pytest.MonkeyPatch) -> None:
    """As where there is no vendor's library."""
    if generated("conv") is None:
        pytest.skip("no code is generated")
    monkeypatch.setitem(FAMILIES, "library", None)
    torch.manual_seed(0)
    model = torch.nn.Sequential(
        torch.nn.Conv2d(1, 20, 5), torch.nn.ReLU(), torch.nn.MaxPool2d(2), torch.nn.Conv2d(20, 24, 5, stride=2),
        torch.nn.ReLU(), torch.nn.Flatten(), torch.nn.Linear(24 * 16, 4),
    )  # fmt: skip
    x = torch.randn(2, 1, 28, 28)

    def step() -> Any:
        for each in model.parameters():
            each.grad = None
        loss = model(x).square().mean()
        loss.backward()
        return loss.detach()

    expected = bits(step()), [bits(each.grad) for each in model.parameters()]
    made = Compiled(step)
    for _ in range(6):
        assert (bits(made()), [bits(each.grad) for each in model.parameters()]) == expected
    program: Any = made.programs[0]
    names = {function.__name__ for runner in program.__globals__["schedules"] for function, *_ in runner.calls}
    assert "tiled_product" in names
