"""Every schedule sets PyTorch's learning rates."""

from __future__ import annotations

import copy
import math
import pickle
from typing import Any

import pytest
import torch as pytorch

import flambeau
from tests.support.differential import differential, outcome, warned

STEPS = 50


def halve(epoch: int) -> float:
    return 0.5**epoch


class Decay:
    """A schedule with a memory: state dictionaries hold its attributes."""

    def __init__(self, rate: float) -> None:
        self.rate = rate

    def __call__(self, epoch: float) -> float:
        return float(self.rate**epoch)


SCHEDULES: dict[str, Any] = {
    "LambdaLR": lambda S, o: S.LambdaLR(o, [halve, lambda epoch: 1 / (epoch + 1)]),
    "LambdaLR of an object": lambda S, o: S.LambdaLR(o, Decay(0.9)),
    "MultiplicativeLR": lambda S, o: S.MultiplicativeLR(o, lambda epoch: 0.95),
    "StepLR": lambda S, o: S.StepLR(o, 7, 0.5),
    "MultiStepLR": lambda S, o: S.MultiStepLR(o, [3, 20, 20, 31], 0.3),
    "ConstantLR": lambda S, o: S.ConstantLR(o, 0.25, 10),
    "LinearLR": lambda S, o: S.LinearLR(o, 0.1, 0.8, 20),
    "ExponentialLR": lambda S, o: S.ExponentialLR(o, 0.9),
    "PolynomialLR": lambda S, o: S.PolynomialLR(o, 30, 2.0),
    "CosineAnnealingLR": lambda S, o: S.CosineAnnealingLR(o, 12, 0.01),
    "CosineAnnealingWarmRestarts": lambda S, o: S.CosineAnnealingWarmRestarts(o, 5, 2, 0.01),
    "CosineAnnealingWarmRestarts of one length": lambda S, o: S.CosineAnnealingWarmRestarts(o, 7),
    "CyclicLR": lambda S, o: S.CyclicLR(o, 0.01, [0.1, 0.2], 5, 8),
    "CyclicLR triangular2": lambda S, o: S.CyclicLR(o, 0.01, 0.1, 4, mode="triangular2"),
    "CyclicLR exp_range": lambda S, o: S.CyclicLR(o, 0.01, 0.1, 4, mode="exp_range", gamma=0.9, cycle_momentum=False),
    "CyclicLR of a function": lambda S, o: S.CyclicLR(o, 0.01, 0.1, 4, scale_fn=Decay(0.8), scale_mode="iterations"),
    "OneCycleLR": lambda S, o: S.OneCycleLR(o, 0.5, 55),
    "OneCycleLR in three phases": lambda S, o: S.OneCycleLR(
        o, [0.5, 0.6], epochs=5, steps_per_epoch=11, anneal_strategy="linear", three_phase=True, pct_start=0.25
    ),
    "SequentialLR": lambda S, o: S.SequentialLR(
        o, [S.LinearLR(o, 0.1, total_iters=6), S.ExponentialLR(o, 0.9), S.StepLR(o, 3)], [6, 21]
    ),
    "ChainedScheduler": lambda S, o: S.ChainedScheduler([S.ConstantLR(o, 0.1, 4), S.ExponentialLR(o, 0.97)]),
    "Sequence of a chain": lambda S, o: S.SequentialLR(
        o, [S.ChainedScheduler([S.LinearLR(o), S.StepLR(o, 2)]), S.CosineAnnealingLR(o, 9)], [8]
    ),
    "Chain of a sequence": lambda S, o: S.ChainedScheduler(
        [S.SequentialLR(o, [S.LinearLR(o), S.StepLR(o, 2)], [8]), S.ExponentialLR(o, 0.99)]
    ),
}


def _optimizer(T: Any, kind: str = "SGD", tensor: bool = False) -> Any:
    first, second = (T.tensor(each, dtype=T.float64) if tensor else each for each in (0.3, 0.05))
    groups = [
        {"params": [T.zeros(2, requires_grad=True)], "lr": first},
        {"params": [T.zeros(1, requires_grad=True)], "lr": second},
    ]
    return T.optim.SGD(groups, momentum=0.9) if kind == "SGD" else T.optim.Adam(groups)


def _rates(optimizer: Any) -> list[Any]:
    return [
        (float(each["lr"]), each.get("momentum"), each["betas"][0] if "betas" in each else None)
        for each in optimizer.param_groups
    ]


@pytest.mark.parametrize("kind", ["SGD", "Adam"])
@pytest.mark.parametrize("name", list(SCHEDULES))
@differential(tolerance=1e-6)
def test_fifty_steps(T: Any, name: str, kind: str) -> Any:
    optimizer = _optimizer(T, kind)
    scheduler = SCHEDULES[name](T.optim.lr_scheduler, optimizer)
    seen = [_rates(optimizer)]
    for _ in range(STEPS):
        optimizer.step()
        scheduler.step()
        seen.append((_rates(optimizer), scheduler.get_last_lr()))
    state = scheduler.state_dict()
    state.pop("_scale_fn_ref", None)
    return seen, sorted(state), {key: each for key, each in state.items() if isinstance(each, (int, float, str, list))}


@pytest.mark.parametrize("name", list(SCHEDULES))
@differential(tolerance=1e-6)
def test_learning_rates_that_are_tensors(T: Any, name: str) -> Any:
    optimizer = _optimizer(T, tensor=True)
    tensors = [each["lr"] for each in optimizer.param_groups]
    scheduler = SCHEDULES[name](T.optim.lr_scheduler, optimizer)
    seen = []
    for _ in range(12):
        optimizer.step()
        scheduler.step()
        seen.append([float(each) for each in scheduler.get_last_lr()])
    return (
        seen,
        [float(each) for each in tensors],
        [group["lr"] is each for group, each in zip(optimizer.param_groups, tensors, strict=True)],
    )


@pytest.mark.parametrize("name", list(SCHEDULES))
@pytest.mark.filterwarnings("ignore:Detected call of")
def test_state_dicts_go_on_in_the_other_framework(name: str) -> None:
    for origin, target in ((pytorch, flambeau), (flambeau, pytorch)):
        optimizers = [_optimizer(framework) for framework in (origin, target)]
        first, second = (
            SCHEDULES[name](framework.optim.lr_scheduler, each)
            for framework, each in zip((origin, target), optimizers, strict=True)
        )
        for _ in range(9):
            optimizers[0].step()
            first.step()
        optimizers[1].step()
        second.load_state_dict(copy.deepcopy(first.state_dict()))
        optimizers[1].load_state_dict(optimizers[0].state_dict())
        for _ in range(9):
            for optimizer, scheduler in zip(optimizers, (first, second), strict=True):
                optimizer.step()
                scheduler.step()
            for expected, actual in zip(*map(_rates, optimizers), strict=True):
                assert actual == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("name", [each for each in SCHEDULES if "Sequen" not in each and "Chain" not in each])
@differential(tolerance=1e-6)
def test_steps_to_an_epoch(T: Any, name: str) -> Any:
    optimizer = _optimizer(T)
    scheduler = SCHEDULES[name](T.optim.lr_scheduler, optimizer)
    optimizer.step()
    return [warned(lambda e=epoch: (scheduler.step(e), _rates(optimizer))[1]) for epoch in (1, 4, 30, 8)]


@pytest.mark.parametrize("options", [{}, {"mode": "max"}, {"threshold_mode": "abs", "threshold": 0.1}, {"cooldown": 3}])
@differential
def test_plateau(T: Any, options: Any) -> Any:
    optimizer = _optimizer(T)
    scheduler = T.optim.lr_scheduler.ReduceLROnPlateau(
        optimizer, patience=2, factor=0.5, min_lr=[0.01, 0.04], **options
    )
    seen = []
    for step in range(STEPS):
        scheduler.step(T.tensor(math.sin(step / 3) * 5 / (step + 1)) if step % 2 else 1.0)
        seen.append((_rates(optimizer), scheduler.get_last_lr(), scheduler.num_bad_epochs, scheduler.in_cooldown))
    other = T.optim.lr_scheduler.ReduceLROnPlateau(_optimizer(T))
    other.load_state_dict(scheduler.state_dict())
    return seen, scheduler.state_dict(), other.state_dict(), warned(lambda: scheduler.step(1.0, epoch=3), "epoch")


@differential
def test_plateau_of_groups_that_came_later(T: Any) -> Any:
    results = []
    for least in (0, [0.0, 0.0]):
        optimizer = _optimizer(T)
        scheduler = T.optim.lr_scheduler.ReduceLROnPlateau(optimizer, patience=0, min_lr=least)
        optimizer.add_param_group({"params": [T.zeros(1)], "lr": 1.0})
        scheduler.step(1.0)
        results.append((outcome(lambda s=scheduler: s.step(1.0)), _rates(optimizer)))
    return results


@differential
def test_warnings_about_the_order_of_calls(T: Any) -> Any:
    schedulers = T.optim.lr_scheduler
    early = schedulers.ExponentialLR(_optimizer(T), 0.9)
    optimizer = _optimizer(T)
    replaced = schedulers.ExponentialLR(optimizer, 0.9)
    optimizer.step = lambda: None
    fine_optimizer = _optimizer(T)
    fine = [schedulers.ExponentialLR(fine_optimizer, 0.9) for _ in range(2)]
    fine_optimizer.step()
    return (
        warned(early.step, "Detected call of `lr_scheduler.step()` before `optimizer.step()`"),
        warned(early.step),
        warned(replaced.step, "Seems like `optimizer.step()` has been overridden"),
        [warned(each.step) for each in fine],
        warned(fine[0].get_lr, "please use `get_last_lr()`"),
        warned(lambda: fine[0].step(3), "The epoch parameter in `scheduler.step()` was not necessary"),
    )


@differential
def test_resuming(T: Any) -> Any:
    optimizer = _optimizer(T)
    for group in optimizer.param_groups:
        group["initial_lr"] = 0.7
    names = ("StepLR", "CosineAnnealingLR", "LinearLR", "PolynomialLR", "ExponentialLR", "ConstantLR")
    arguments = ((3,), (9,), (), (), (0.5,), ())
    seen = []
    for name, given in zip(names, arguments, strict=True):
        scheduler = getattr(T.optim.lr_scheduler, name)(optimizer, *given, last_epoch=3)
        optimizer.step()
        scheduler.step()
        seen.append((_rates(optimizer), scheduler.base_lrs, scheduler.last_epoch))
    return seen, outcome(
        lambda: T.optim.lr_scheduler.StepLR(_optimizer(T), 3, last_epoch=2), "'initial_lr' is not specified"
    )


@differential
def test_errors(T: Any) -> Any:
    schedulers, optimizer = T.optim.lr_scheduler, _optimizer(T)
    plateau = schedulers.ReduceLROnPlateau(optimizer)
    step, other = schedulers.StepLR(optimizer, 3), schedulers.StepLR(_optimizer(T), 3)

    def of(name: str, *args: Any, phrase: str = "", **options: Any) -> Any:
        return outcome(lambda: getattr(schedulers, name)(*args, **options) and None, phrase)

    no_momentum = T.optim.Adagrad([T.zeros(1)])
    return (
        of("StepLR", 3, 3, phrase="int is not an Optimizer"),
        of("LambdaLR", optimizer, [halve], phrase="Expected 2 lr_lambdas, but got 1"),
        of("MultiplicativeLR", optimizer, 3, phrase="lr_lambda should be a function, but got int"),
        of("ConstantLR", optimizer, 2.0, phrase="expected to be between 0 and 1"),
        of("LinearLR", optimizer, 0.0, phrase="Starting multiplicative factor"),
        of("LinearLR", optimizer, 0.5, 1.5, phrase="Ending multiplicative factor"),
        of("SequentialLR", optimizer, [], [], phrase="expects at least one scheduler"),
        of("SequentialLR", optimizer, [3], [], phrase="should have `optimizer` as its attribute"),
        of("SequentialLR", optimizer, [plateau], [], phrase="does not support `ReduceLROnPlateau`"),
        of("SequentialLR", optimizer, [other], [], phrase="expects all schedulers to belong to the same optimizer"),
        of("SequentialLR", optimizer, [step], [3], phrase="one more than the number of milestone points"),
        of("ChainedScheduler", [], phrase="expects at least one scheduler to be chained"),
        of("ChainedScheduler", [step, other], phrase="expects all schedulers to belong to the same optimizer"),
        of("ReduceLROnPlateau", optimizer, factor=1.0, phrase="Factor should be < 1.0"),
        of("ReduceLROnPlateau", optimizer, "middle", phrase="mode middle is unknown!"),
        of("ReduceLROnPlateau", optimizer, threshold_mode="x", phrase="threshold mode x is unknown!"),
        of("ReduceLROnPlateau", optimizer, min_lr=[1.0], phrase="expected 2 min_lrs, got 1"),
        of("CyclicLR", optimizer, 0.1, 0.2, mode="square", phrase="mode is invalid and scale_fn is None"),
        of("CyclicLR", optimizer, [0.1], 0.2, phrase="must have the same length as optimizer.param_groups"),
        of("CyclicLR", no_momentum, 0.1, 0.2, phrase="optimizer must support momentum or beta1"),
        of("OneCycleLR", optimizer, 0.1, phrase="You must define either total_steps OR (epochs AND steps_per_epoch)"),
        of("OneCycleLR", optimizer, 0.1, -3, phrase="Expected positive integer total_steps"),
        of("OneCycleLR", optimizer, 0.1, epochs=0, steps_per_epoch=2, phrase="Expected positive integer epochs"),
        of("OneCycleLR", optimizer, 0.1, 5, pct_start=2.0, phrase="Expected float between 0 and 1 pct_start"),
        of("OneCycleLR", optimizer, 0.1, 5, anneal_strategy="x", phrase="anneal_strategy must be one of"),
        of("CosineAnnealingWarmRestarts", optimizer, 0, phrase="Expected positive integer T_0"),
        of("CosineAnnealingWarmRestarts", optimizer, 2, 0, phrase="Expected integer T_mult >= 1"),
        of("CosineAnnealingWarmRestarts", optimizer, 2, 1, "x", phrase="Expected float or int eta_min"),
        outcome(lambda: schedulers.CosineAnnealingWarmRestarts(optimizer, 2).step(-1), "Expected non-negative epoch"),
    )


@differential
def test_more_steps_than_the_cycle_has(T: Any) -> Any:
    optimizer = _optimizer(T)
    scheduler = T.optim.lr_scheduler.OneCycleLR(optimizer, 0.1, 3)
    optimizer.step()
    return [outcome(scheduler.step) for _ in range(2)], outcome(
        lambda: (scheduler.step(), scheduler.step()), "The specified number of total steps is 3"
    )


@differential(tolerance=1e-6)
def test_own_schedules(T: Any) -> Any:
    class Alternating(T.optim.lr_scheduler._LRScheduler):  # type: ignore[misc, name-defined]
        def get_lr(self) -> Any:
            return [base * (1 + self.last_epoch % 2) for base in self.base_lrs]

    optimizer = _optimizer(T)
    scheduler = Alternating(optimizer)
    seen = []
    for epoch in (None, None, 5):
        optimizer.step()
        scheduler.step() if epoch is None else scheduler.step(epoch)
        seen.append(scheduler.get_last_lr())
    base = T.optim.lr_scheduler.LRScheduler
    return seen, issubclass(Alternating, base), outcome(lambda: base(optimizer))


def test_pickles() -> None:
    optimizer = _optimizer(flambeau)
    scheduler = flambeau.optim.lr_scheduler.CyclicLR(optimizer, 0.1, 0.3, 3)
    again = pickle.loads(pickle.dumps(scheduler.state_dict()))
    assert again == scheduler.state_dict()
    whole = pickle.loads(pickle.dumps(flambeau.optim.lr_scheduler.StepLR(optimizer, 3)))
    whole.optimizer.step()
    with pytest.warns(UserWarning, match="has been overridden"):  # the optimizer's pickle knows of no schedule
        whole.step()
    assert whole.last_epoch == 1


def test_the_optimizer_is_freed_with_its_schedule() -> None:
    import gc
    import weakref

    optimizer = _optimizer(flambeau)
    scheduler = flambeau.optim.lr_scheduler.StepLR(optimizer, 3)
    reference = weakref.ref(optimizer)
    gc.disable()
    del scheduler, optimizer
    gc.enable()
    assert reference() is None
