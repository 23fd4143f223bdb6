"""Schedules: device segments of programs that run without Python between their calls."""

from __future__ import annotations

import ctypes
import gc
import importlib
import random
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import flambeau as torch
from flambeau._backends.tiers import generated
from flambeau.compiler._compiled import Compiled
from flambeau.compiler.plan import first_run
from flambeau.compiler.plan.memory import arranged, lodged
from flambeau.compiler.plan.schedule import Launch, Schedule
from flambeau.compiler.program.reads import bounds

Function = Callable[..., Any]


def compiled(function: Function, *args: Any) -> tuple[Compiled, str]:
    """A compiled function after it has a program, and that program's source."""
    made = Compiled(function)
    for _ in range(4):
        made(*args)
    assert made.programs, made.reasons
    program: Any = made.programs[0]
    return made, program.source


def chain(x: Any) -> Any:
    return torch.relu(x * 1.5 + 0.25) - 0.5


def layer(x: Any, weight: Any, bias: Any) -> Any:
    return torch.relu(torch.addmm(bias, x, weight.t()))


def inexact(x: Any) -> Any:
    return (x.tanh() * x.exp()).sqrt()


def reductions(x: Any) -> Any:
    return (x * x).sum(0), (x * x).mean(), (x - 1).sum()


def choice(x: Any) -> Any:
    return (x > 0) & (x < 1), torch.nn.functional.threshold(x, 0.5, -1.0) * 2


def views(x: Any) -> Any:
    y = (x * 2 + 1).t()
    return y[1:].reshape(-1) * 3 + 1, y


def zeros(x: Any) -> Any:
    return torch.relu(x) * 1.0, torch.maximum(x, -x) * 1.0, torch.minimum(-x, x) * 1.0, x.sqrt() * 1.0


def pooled(x: Any) -> Any:
    images = x.reshape(1, 1, 4, 3)
    return torch.nn.functional.max_pool2d(images, (2, 3)) * 2


def joined(x: Any) -> Any:
    return torch.cat([x, x * 2]) + 1, torch.stack([x, x + 1], 1), torch.nn.functional.mse_loss(x, x * 0.5)


def rotated(x: Any) -> Any:
    """Halves of a part of each row the other way round, as rotary embeddings have it: parts with gaps are joined."""
    half = x.shape[-1] // 3
    return torch.cat((-x[..., half : 2 * half], x[..., :half]), -1) * 2 + 1


def rows_by_matrix(x: Any) -> Any:
    return (x.reshape(1, 4, 3) * 2) @ (x.t()[:, :2] + 1), x.reshape(2, 2, 3) @ x.reshape(2, 3, 2) * 2


def one_in_the_middle(x: Any) -> Any:
    return (x * 2).reshape(1, 1, 4, 3).transpose(1, 2), (x + 1).reshape(1, 4, 1, 3) * 2


def attended(x: Any) -> Any:
    heads = x.reshape(1, 2, 2, 3) * 2
    mask = (x[:2, :2] > 0).reshape(1, 1, 2, 2)
    return torch.nn.functional.scaled_dot_product_attention(heads, heads + 1, heads, attn_mask=mask) * 2


def gradients_of_parts(x: Any) -> Any:
    with torch.enable_grad():
        given = x.detach().requires_grad_()
        turned = torch.cat((-given[:, 2:], given[:, :1]), 1) * given[:, 1:] + given[1, :2] * 2
        return torch.autograd.grad((turned * turned).sum(), given)[0] * 2


X = torch.linspace(-2, 2, 12).reshape(4, 3)
CASES: dict[str, tuple[Function, tuple[Any, ...]]] = {
    "chain": (chain, (X,)),
    "layer": (layer, (X, torch.linspace(-1, 1, 15).reshape(5, 3), torch.arange(5.0))),
    "inexact": (inexact, (X,)),
    "reductions": (reductions, (X,)),
    "choice": (choice, (X,)),
    "views": (views, (X,)),
    "pooled": (pooled, (X,)),
    "joined": (joined, (X,)),
    "rotated": (rotated, (torch.linspace(-1, 1, 24).reshape(2, 12),)),
    "rows by a matrix": (rows_by_matrix, (X,)),
    "one in the middle": (one_in_the_middle, (X,)),
    "attended": (attended, (X,)),
    "gradients of parts": (gradients_of_parts, (X,)),
    "large": (chain, (torch.linspace(-3, 3, 9000),)),
    "turned": (chain, (X.t(),)),
    "spread": (chain, (X[:1].expand(4, 3),)),
    "signs of zero": (zeros, (torch.tensor([-0.0, 0.0, np.nan, -1.0, 1.0]),)),
    "strange numbers": (chain, (torch.tensor([np.nan, np.inf, -np.inf, -0.0, 0.0, 1e-45, 3e38]),)),
}


def bits(tree: Any) -> Any:
    if isinstance(tree, tuple):
        return [bits(each) for each in tree]
    return tuple(tree.shape), tree.stride(), tree.dtype, tree.numpy().tobytes()


@pytest.mark.parametrize("name", sorted(CASES))
def test_a_tape_gives_the_bits_of_the_ops(name: str) -> None:
    function, args = CASES[name]
    made, source = compiled(function, *args)
    assert "if not " in source, source
    others = tuple([each.flip(0) if each.ndim == 1 else (each * 1.25 + 0.125) for each in args])
    for given in (args, others, args):
        if [each.stride() for each in given] == [each.stride() for each in args]:
            assert bits(made(*given)) == bits(function(*given))


@pytest.mark.parametrize("name", ["rotated", "rows by a matrix", "one in the middle", "attended", "gradients of parts"])
def test_a_tape_that_ran_is_kept(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    settled: list[Any] = []
    settle = first_run.FirstRun.__init__

    def noted(self: Any, segment: Any, put: Any) -> None:
        settle(self, segment, lambda run: (settled.append((run, segment)), put(run))[1])

    monkeypatch.setattr(first_run.FirstRun, "__init__", noted)
    function, args = CASES[name]
    compiled(function, *args)
    assert settled
    assert not [segment.items for run, segment in settled if run is first_run._refusing]


def losses(x: Any, target: Any) -> Any:
    return torch.nn.functional.cross_entropy(x * 2, target)


def test_a_class_that_does_not_exist_is_refused_as_by_the_ops() -> None:
    made, source = compiled(losses, X, torch.tensor([0, 2, 1, 0]))
    assert "if not " in source
    wrong = torch.tensor([0, 2, 3, 0])
    with pytest.raises(IndexError) as plain:
        losses(X, wrong)
    with pytest.raises(IndexError) as refused:
        made(X, wrong)
    assert str(refused.value)[:40] == str(plain.value)[:40]
    right = torch.tensor([1, 1, -100, 2])
    assert bits(made(X, right)) == bits(losses(X, right))


def test_a_layer_of_a_transformer_forward_and_backward_is_one_tape() -> None:
    torch.manual_seed(0)
    layer = torch.nn.TransformerEncoderLayer(32, 2, 64, dropout=0.0, batch_first=True)
    x = torch.randn(2, 40, 32)

    def step() -> Any:
        for each in layer.parameters():
            each.grad = None
        loss = layer(x).square().mean()
        loss.backward()
        return loss.detach()

    plain = bits(step()), [bits(each.grad) for each in layer.parameters()]
    made, _ = compiled(step)
    assert (bits(made()), [bits(each.grad) for each in layer.parameters()]) == plain
    program: Any = made.programs[0]
    assert len(program.__globals__["schedules"]) == 1


def test_results_are_not_the_memory_of_the_tape() -> None:
    made, _ = compiled(chain, X)
    first = made(X)
    kept = first.clone()
    second = made(X + 1)
    assert torch.equal(first, kept)
    assert not torch.equal(first, second)


def products(x: Any) -> Any:
    return torch.relu(torch.relu(x @ x) @ x) @ x


def test_large_memory_of_a_tape_is_there_while_it_runs() -> None:
    x = torch.rand(200, 200)
    made, _ = compiled(products, x)
    program: Any = made.programs[0]
    assert max([each.scratch for each in program.__globals__["schedules"]]) >= 2 * 200 * 200 * 4
    pool = importlib.import_module("flambeau._backends.cpu.memory.allocator").allocator()
    if pool is None:
        pytest.skip("there is no pool")
    before = pool["allocated"]
    pool.reset_peaks()
    result = made(x)
    during, after = pool["allocated_peak"] - before, pool["allocated"] - before
    assert 0 < after < during
    assert bits(result) == bits(products(x))
    del result
    assert pool["allocated"] == before


@pytest.mark.xfail(sys.version_info < (3, 11), reason="a caller held what it passed until the call returned")
@pytest.mark.parametrize("by_hand", [False, True])
def test_no_call_takes_more_memory_than_a_plain_one(by_hand: bool) -> None:
    """Not even the first run of a schedule: results of ops and of schedules are not there together."""
    torch.ones(5000).exp()  # with it generated code starts, and the pool
    pool = importlib.import_module("flambeau._backends.cpu.memory.allocator").allocator()
    if pool is None:
        pytest.skip("there is no pool")
    x = torch.randn(16, 784)

    def peaks(compile: bool) -> list[int]:
        torch.manual_seed(0)
        model = torch.nn.Sequential(torch.nn.Linear(784, 256), torch.nn.ReLU(), torch.nn.Linear(256, 10))
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

        def step() -> Any:
            if by_hand:
                for each in model.parameters():
                    each.grad = None
            else:
                optimizer.zero_grad()
            loss = model(x).square().mean()
            loss.backward()
            optimizer.step()
            return loss.detach()

        made = Compiled(step)
        run = made if compile else step
        gc.collect()
        before = pool["requested"]
        found = []
        for _ in range(6):
            pool.reset_peaks()
            run()
            found.append(pool["requested_peak"] - before)
        assert bool(made.programs) is compile
        return found

    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        plain = peaks(False)
        assert 0 < max(peaks(True)) <= max(plain)
    finally:
        torch.set_num_threads(threads)


def test_a_tape_that_is_wrong_is_seen_by_sums_of_its_bits() -> None:
    """One bit of a large result is enough, and two elements that are exchanged."""
    large = np.arange(1 << 16, dtype=np.float32).reshape(256, 256)
    other = large.copy()
    assert first_run._print(other) == first_run._print(large)
    other.view(np.int32)[100, 3] ^= 1
    assert first_run._print(other) != first_run._print(large)
    for one, two in (((1, 2), (1, 3)), ((1, 2), (5, 2)), ((0, 0), (255, 255))):
        other = large.copy()
        other[one], other[two] = large[two], large[one]
        assert first_run._print(other) != first_run._print(large)
    assert first_run._print(large.T) != first_run._print(large)


def test_a_tape_that_is_in_use_is_not_entered() -> None:
    made, _ = compiled(chain, X)
    program: Any = made.programs[0]
    (runner,) = program.__globals__["schedules"]
    runner.arena.flag[0] = 1  # as if another thread were in it
    try:
        assert bits(made(X)) == bits(chain(X))
    finally:
        runner.arena.flag[0] = 0
    assert bits(made(X)) == bits(chain(X))
    assert runner.arena.flag[0] == 0


def test_a_tape_refuses_what_is_no_array() -> None:
    made, _ = compiled(chain, X)
    program: Any = made.programs[0]
    (runner,) = program.__globals__["schedules"]
    assert runner.run(runner.table, True, False, None, None) is False
    assert runner.run(runner.table, True, False, X.numpy(), 1.0) is False
    assert runner.run(runner.table, True, False, X.numpy(), np.empty((4, 3), np.float32)) is True


def test_a_tape_runs_as_long_as_its_conditions_hold() -> None:
    family = generated("call_list")
    question = ctypes.cast(ctypes.pythonapi.Py_IsInitialized, ctypes.c_void_p).value
    for answer, runs in ((1, True), (2, False)):
        out = np.zeros(3)
        calls = [(out.fill, (1.0,), None)]
        runner = family.CallList([], calls, [], [(question, answer)], [], [], family.Arena(0))
        assert runner.run(runner.table, True, False) is runs
        assert out.tolist() == [float(runs)] * 3


def test_elementwise_steps_are_one_kernel() -> None:
    made, _ = compiled(chain, X)
    program: Any = made.programs[0]
    (runner,) = program.__globals__["schedules"]
    assert len(runner.calls) == 1


@pytest.mark.parametrize(
    "array",
    [
        np.empty((2, 3, 4), np.float32),
        np.empty((2, 3, 4), np.int64).transpose(2, 0, 1),
        np.empty((3, 0, 2), np.float16),
        np.empty((), np.bool_),
        np.broadcast_to(np.empty(3), (5, 3)),
        np.empty((4, 6))[::-1, ::-2],
        np.broadcast_to(np.empty(1), (1 << 10, 1 << 10)).T,
        np.empty((3, 1 << 18), np.float32),
    ],
    ids=["plain", "turned", "empty", "number", "repeated", "backwards", "repeated-often", "large"],
)
def test_a_header_has_a_geometry_and_lies_in_memory(array: Any) -> None:
    header = generated("call_list").header_of(array.shape, array.dtype, array.strides)
    assert (header.shape, header.dtype, header.strides) == (array.shape, array.dtype, array.strides)
    assert header.flags.writeable
    (low, high), (first, end) = bounds(header), bounds(np.frombuffer(header.base, np.uint8))
    assert not header.size or first <= low < high <= end


def test_headers_leave_the_arrays_of_a_call() -> None:
    made, _ = compiled(chain, X)
    program: Any = made.programs[0]
    (runner,) = program.__globals__["schedules"]
    for _, args, _ in runner.calls:
        for header in [each for each in args if isinstance(each, np.ndarray)]:
            (low, high), (first, end) = bounds(header), bounds(np.frombuffer(header.base, np.uint8))
            assert first <= low < high <= end or runner.arena.start <= low


def test_buffers_that_live_at_the_same_time_do_not_overlap() -> None:
    chosen = random.Random(0)
    schedule = Schedule()
    places = [schedule.new((chosen.randrange(1, 400),), np.float32) for _ in range(60)]
    launches = [Launch((), chosen.sample(places[: n + 1], min(n + 1, 2)), [places[n]]) for n in range(60)]
    starts, size = arranged(launches, [], ())
    alive = {
        place.buffer: [n for n, each in enumerate(launches) if place in (*each.reads, *each.writes)] for place in places
    }
    for one, uses in alive.items():
        assert starts[one] % 64 == 0
        assert starts[one] + one.size <= size
        for other, more in alive.items():
            if one is not other and uses[0] <= more[-1] and more[0] <= uses[-1]:
                assert starts[one] + one.size <= starts[other] or starts[other] + other.size <= starts[one]
    assert size < sum(place.buffer.size for place in places)


def test_buffers_lodge_in_results_that_are_not_there_yet() -> None:
    schedule = Schedule()
    first, second, late, last = (schedule.new((count,), np.float32) for count in (100, 100, 40, 150))
    launches = [Launch((), [], [first]), Launch((), [first], [second]), Launch((), [second], [late, last])]
    found = lodged(launches, [], {last.buffer}, [last.buffer])
    assert found == {first.buffer: (last.buffer, 0)}  # there is no room for two, nor time for the others
    assert lodged(launches, [first], {last.buffer}, [last.buffer]) == {}  # it is looked at in the end


def test_few_elements_times_many_of_another_layout() -> None:
    """What was recorded by the body for many elements is run by it again, and lies in memory as it did."""
    factor = torch.linspace(-1, 1, 8 * 3 * 64).reshape(8, 3, 64, 1)
    x = torch.linspace(-2, 2, 8 * 64 * 3 * 16).reshape(8, 64, 3, 16)

    def f(x: Any) -> Any:
        return (factor * x.transpose(1, 2)).add(1).relu() * 2

    g = Compiled(f)
    for turn in range(5):
        expected, found = f(x + turn), g(x + turn)
        assert found.stride() == expected.stride()
        assert torch.equal(found, expected)
    assert g.programs


def test_calls_with_other_settings_differ_in_more_than_sizes() -> None:
    model = torch.nn.Sequential(torch.nn.Linear(4, 6), torch.nn.Tanh(), torch.nn.Linear(6, 2))
    made = Compiled(model)
    for _ in range(6):
        x = torch.randn(5, 4)
        made(x).sum().backward()
        with torch.no_grad():
            assert torch.equal(made(x), model(x))
            with torch.autocast("cpu", dtype=torch.bfloat16):
                assert torch.equal(made(x), model(x))
    sources = [vars(each)["source"] for each in made.programs]
    assert len(sources) == 3
    assert not any("TABLE" in each for each in sources)
