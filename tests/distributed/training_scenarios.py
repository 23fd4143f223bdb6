"""Data-parallel training under both libraries; see `scenarios.py`."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator
from typing import Any

from . import sharded_scenarios
from .scenarios import Scenario, plain

STEPS = 50
PYTORCH_IMPORTS = ("torch._dynamo",)
"""What PyTorch imports for its wrapped models, which takes seconds."""


def _values(torch: Any, shape: tuple[int, ...], salt: int) -> Any:
    return torch.randn(shape, dtype=torch.float64, generator=torch.Generator().manual_seed(salt))


def _network(torch: Any, rank: int, salt: int = 0) -> Any:
    """A small convolutional network, on each rank another one: wrapping makes them equal."""
    nn = torch.nn
    model = nn.Sequential(
        nn.Conv2d(1, 4, 3),
        nn.BatchNorm2d(4),
        nn.ReLU(),
        nn.Flatten(),
        nn.Linear(4 * 36, 16),
        nn.Tanh(),
        nn.Linear(16, 3),
    ).double()
    with torch.no_grad():
        for number, each in enumerate(model.parameters()):
            each.copy_(_values(torch, tuple(each.shape), 100 * rank + number + salt) * 0.3)
    return model


def _wrapped(torch: Any, model: Any, **options: Any) -> Any:
    return torch.nn.parallel.DistributedDataParallel(model, **options)


def _train(torch: Any, model: Any, rank: int, size: int, steps: int, optimizer: Any = None) -> list[Any]:
    optimizer = optimizer or torch.optim.SGD(model.parameters(), 0.05, momentum=0.9)
    losses = []
    for step in range(steps):
        x = _values(torch, (4 * size, 1, 8, 8), step)[4 * rank : 4 * rank + 4]
        optimizer.zero_grad()
        loss = model(x).pow(2).mean()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return [losses, *(each.detach().clone() for each in model.state_dict().values())]


def fifty_steps(torch: Any, rank: int, size: int) -> Any:
    return _train(torch, _wrapped(torch, _network(torch, rank)), rank, size, STEPS)


def small_buckets_as_views(torch: Any, rank: int, size: int) -> Any:
    model = _wrapped(torch, _network(torch, rank), bucket_cap_mb=0.001, gradient_as_bucket_view=True)
    found = _train(torch, model, rank, size, 6)
    return found, [each.grad.clone() for each in model.parameters()]


def accumulation(torch: Any, rank: int, size: int) -> Any:
    model = _wrapped(torch, torch.nn.Linear(3, 2).double())
    with torch.no_grad():
        for number, each in enumerate(model.parameters()):
            each.copy_(_values(torch, tuple(each.shape), number))
    found = []
    for step in range(3):
        with model.no_sync():
            model(_values(torch, (2, 3), 10 * step + rank)).sum().backward()
        found.append([each.grad.clone() for each in model.parameters()])
        model(_values(torch, (2, 3), 10 * step + rank + 5)).pow(2).sum().backward()
        found.append([each.grad.clone() for each in model.parameters()])
    return found


def unused_parameters(torch: Any, rank: int, size: int) -> Any:
    class Branches(torch.nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.first, self.second, self.never = (torch.nn.Linear(2, 1).double() for _ in range(3))

        def forward(self, x: Any, which: int) -> Any:
            return self.second(x) if which else self.first(x)

    model = Branches()
    with torch.no_grad():
        for number, each in enumerate(model.parameters()):
            each.copy_(_values(torch, tuple(each.shape), number))
    model = _wrapped(torch, model, find_unused_parameters=True)
    found = []
    for which in (rank % 2, 0, 1):
        model.zero_grad()
        model(_values(torch, (3, 2), rank + which), which).sum().backward()
        found.append({name: each.grad for name, each in model.named_parameters()})
        found[-1] = {name: None if grad is None else grad.clone() for name, grad in found[-1].items()}
    return found


def forgotten_parameters(torch: Any, rank: int, size: int) -> Any:
    class Half(torch.nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.used, self.forgotten = torch.nn.Linear(2, 1), torch.nn.Linear(2, 1)

        def forward(self, x: Any) -> Any:
            return self.used(x)

    model = _wrapped(torch, Half())
    model(torch.ones(1, 2)).sum().backward()
    try:
        model(torch.ones(1, 2)).sum().backward()
    except RuntimeError as error:
        return "Expected to have finished reduction in the prior iteration" in str(error)
    return "no error"


def static_graph(torch: Any, rank: int, size: int) -> Any:
    return _train(torch, _wrapped(torch, _network(torch, rank), static_graph=True), rank, size, 4)


def hooks(torch: Any, rank: int, size: int) -> Any:
    default = torch.distributed.algorithms.ddp_comm_hooks.default_hooks
    found = []
    for hook in (default.allreduce_hook, default.fp16_compress_hook):
        model = _wrapped(torch, _network(torch, rank).float(), bucket_cap_mb=0.001)
        model.register_comm_hook(None, hook)
        model(_values(torch, (2, 1, 8, 8), rank).float()).sum().backward()
        found.append([each.grad.clone() for each in model.parameters()])
    return found


def compressed(torch: Any, rank: int, size: int) -> Any:
    """PowerSGD with matrices of which two have the same shape."""
    power = torch.distributed.algorithms.ddp_comm_hooks.powerSGD_hook
    found = []
    plainest = {"warm_start": False, "use_error_feedback": False}
    for options in ({}, plainest, {"orthogonalization_epsilon": 1e-3, "random_seed": 4}):
        layers = [torch.nn.Linear(*shape).double() for shape in ((8, 6), (6, 10), (10, 8), (8, 6))]
        model = torch.nn.Sequential(*layers)
        with torch.no_grad():
            for number, each in enumerate(model.parameters()):
                each.copy_(_values(torch, tuple(each.shape), number))
        model = _wrapped(torch, model)
        state = power.PowerSGDState(None, 2, 2, 1, **options)
        model.register_comm_hook(state, power.powerSGD_hook)
        for step in range(5):
            model.zero_grad()
            model(_values(torch, (3, 8), 10 * step + rank)).pow(2).sum().backward()
            found.append([each.grad.clone() for each in model.parameters()])
        found.append([*state.compression_stats(), state.iter, sorted(state.q_memory_dict), sorted(state.p_memory_dict)])
    return found


def hooks_by_name(torch: Any, rank: int, size: int) -> Any:
    """The hooks that have names."""
    hooks = torch.distributed.algorithms.ddp_comm_hooks
    found = {}
    for name in ("ALLREDUCE", "FP16_COMPRESS", "NOOP", "POWER_SGD_RANK2", "BATCHED_POWER_SGD"):
        model = torch.nn.Sequential(torch.nn.Linear(8, 6), torch.nn.Linear(6, 40))
        with torch.no_grad():
            for number, each in enumerate(model.parameters()):
                each.copy_(_values(torch, tuple(each.shape), number))
        model = _wrapped(torch, model)
        hooks.register_ddp_comm_hook(hooks.DDPCommHookType[name], model, None)
        for step in range(2):
            model.zero_grad()
            model(_values(torch, (3, 8), 10 * step + rank).float()).pow(2).sum().backward()
        found[name] = [each.grad.clone() for each in model.parameters()]
    return found, sorted(each.name for each in hooks.DDPCommHookType)


def saved_tensor_hooks(torch: Any, rank: int, size: int) -> Any:
    """What the graph keeps is packed and unpacked while gradients are exchanged."""
    model, packed = _wrapped(torch, _network(torch, rank)), []

    def pack(tensor: Any) -> Any:
        packed.append(1)
        return tensor.numpy() if not tensor.requires_grad else tensor

    with torch.autograd.graph.saved_tensors_hooks(pack, torch.as_tensor):
        loss = model(_values(torch, (2, 1, 8, 8), rank)).sum()
    loss.backward()
    return bool(packed), [each.grad.clone() for each in model.parameters()]


def static_and_unused(torch: Any, rank: int, size: int) -> Any:
    """A parameter that is never used, and passes without exchange between others."""
    model = torch.nn.ModuleDict({name: torch.nn.Linear(3, 3).double() for name in ("used", "never", "last")})
    with torch.no_grad():
        for number, each in enumerate(model.parameters()):
            each.copy_(_values(torch, tuple(each.shape), number))

    class Part(torch.nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.layers = model

        def forward(self, x: Any) -> Any:
            return self.layers["last"](self.layers["used"](x).tanh())

    wrapped, found = _wrapped(torch, Part(), static_graph=True), []
    for step in range(5):
        x = _values(torch, (2, 3), 10 * step + rank)
        if step % 2:
            with wrapped.no_sync():
                wrapped(x).sum().backward()
        else:
            wrapped(x).sum().backward()
        found.append([None if each.grad is None else each.grad.clone() for each in wrapped.parameters()])
        if not step % 2:
            wrapped.zero_grad()
    return found


def uneven_divided(torch: Any, rank: int, size: int) -> Any:
    """`join` that divides by those that are left, with buffers, and an error where it is asked for."""
    model = _wrapped(torch, _network(torch, rank), find_unused_parameters=rank < 0)
    optimizer = torch.optim.SGD(model.parameters(), 0.05)
    with model.join(divide_by_initial_world_size=False):
        for step in range(2 + rank):
            optimizer.zero_grad()
            model(_values(torch, (2, 1, 8, 8), 10 * step + rank)).pow(2).mean().backward()
            optimizer.step()
    found = [each.detach().clone() for each in model.state_dict().values()]
    try:
        with model.join(throw_on_early_termination=True):
            for _ in range(2 + rank):
                model(_values(torch, (2, 1, 8, 8), rank)).pow(2).mean().backward()
    except RuntimeError as error:
        return found, "exhausted" in str(error)
    return found, None


def own_hook(torch: Any, rank: int, size: int) -> Any:
    def double(state: list[int], bucket: Any) -> Any:
        state.append(len(bucket.gradients()))
        buffer = bucket.buffer()
        work = torch.distributed.all_reduce(buffer, async_op=True)
        return work.get_future().then(lambda done: done.value()[0] * 2)

    double.__annotations__.clear()  # PyTorch looks at them, and wants its own class
    model, state = _wrapped(torch, _network(torch, rank)), []
    model.register_comm_hook(state, double)
    model(_values(torch, (2, 1, 8, 8), rank)).sum().backward()
    return sum(state), [each.grad.clone() for each in model.parameters()]


def local_steps(torch: Any, rank: int, size: int) -> Any:
    """Models that are trained apart, and averaged now and then: all of them, or small groups more often."""
    algorithms, optim = torch.distributed.algorithms, torch.distributed.optim
    averaging, hooks = algorithms.model_averaging, algorithms.ddp_comm_hooks.post_localSGD_hook
    periods = OrderedDict([(2, size // 2), (3, size)])
    found = []
    for averager in (
        averaging.averagers.PeriodicModelAverager(3, warmup_steps=2),
        averaging.hierarchical_model_averager.HierarchicalModelAverager(periods, warmup_steps=1),
    ):
        model = _wrapped(torch, _network(torch, rank))
        own = torch.distributed.new_subgroups(1)[0]
        model.register_comm_hook(hooks.PostLocalSGDState(None, own, 2), hooks.post_localSGD_hook)
        optimizer = optim.PostLocalSGDOptimizer(torch.optim.SGD(model.parameters(), 0.05), averager)
        found.append((_train(torch, model, rank, size, 7, optimizer), optimizer.state_dict()["step"]))
    return found


def uneven_inputs(torch: Any, rank: int, size: int) -> Any:
    model = _wrapped(torch, _network(torch, rank))
    optimizer = torch.optim.SGD(model.parameters(), 0.05)
    with model.join():
        for step in range(3 + 2 * rank):
            optimizer.zero_grad()
            model(_values(torch, (2, 1, 8, 8), 10 * step + rank)).pow(2).mean().backward()
            optimizer.step()
    return [each.detach().clone() for each in model.state_dict().values()]


def uneven_with_spread_optimizer(torch: Any, rank: int, size: int) -> Any:
    """Processes that are done go on with the steps of an optimizer, of whose state each keeps a part."""
    model = _wrapped(torch, _network(torch, rank))
    optimizer = torch.distributed.optim.ZeroRedundancyOptimizer(model.parameters(), torch.optim.Adam, lr=0.02)
    with torch.distributed.algorithms.join.Join([model, optimizer]):
        for step in range(2 + rank):
            optimizer.zero_grad()
            model(_values(torch, (2, 1, 8, 8), 10 * step + rank)).pow(2).mean().backward()
            optimizer.step()
    return [each.detach().clone() for each in model.state_dict().values()]


def differentiable(torch: Any, rank: int, size: int) -> Any:
    """The collectives of `torch.distributed.nn`, and their gradients."""
    functional, found = torch.distributed.nn.functional, {}

    def leaf(*shape: int, salt: int = 0) -> Any:
        return _values(torch, shape, rank + salt).requires_grad_()

    weight, spaces = _values(torch, (2,), 50 + rank), [torch.empty(2).double() for _ in range(size)]
    calls: dict[str, Callable[[Any], Any]] = {
        "all_reduce": lambda x: functional.all_reduce(x),
        "all_gather": lambda x: torch.stack(list(functional.all_gather(x))),
        "reduce_scatter": lambda x: functional.reduce_scatter(spaces[0], [x * (n + 1) for n in range(size)]),
        "broadcast": lambda x: functional.broadcast(x, 0),
        "all_to_all": lambda x: torch.stack(list(functional.all_to_all(spaces, [x * (n + 1) for n in range(size)]))),
    }  # fmt: skip
    for name, call in calls.items():
        x = leaf(2)
        y = call(x)
        (y * weight).sum().backward()
        found[name] = (y.detach().clone(), x.grad)
    return found


SCENARIOS: tuple[Scenario, ...] = (
    fifty_steps, small_buckets_as_views, accumulation, unused_parameters, forgotten_parameters, static_graph, hooks,
    own_hook, uneven_inputs, differentiable, compressed, hooks_by_name, saved_tensor_hooks, static_and_unused,
    uneven_divided, local_steps, uneven_with_spread_optimizer, *sharded_scenarios.SPREAD,
)  # fmt: skip


OF_MANY = (fifty_steps, unused_parameters, compressed, uneven_divided, local_steps, *sharded_scenarios.OF_FOUR)
"""Those that more than two ranks play."""


def run_all(torch: Any, rank: int, size: int) -> Iterator[tuple[str, Any]]:
    import importlib

    for module in (
        "nn.parallel",
        "distributed.nn.functional",
        "distributed.algorithms.ddp_comm_hooks",
        "distributed.algorithms.join",
        "distributed.algorithms.ddp_comm_hooks.default_hooks",
        "distributed.algorithms.ddp_comm_hooks.post_localSGD_hook",
        "distributed.algorithms.ddp_comm_hooks.powerSGD_hook",
        "distributed.algorithms.model_averaging.averagers",
        "distributed.algorithms.model_averaging.hierarchical_model_averager",
        "distributed.optim",
    ):
        importlib.import_module(f"{torch.__name__}.{module}")
    for scenario in SCENARIOS if size == 2 else OF_MANY:
        yield scenario.__name__, plain(scenario(torch, rank, size), 10_000)
