"""Weights that become zero during training: masks, schedules and what stays, beside PyTorch's."""

from __future__ import annotations

import importlib
import itertools
from typing import Any

import pytest

import flambeau
from tests.support.differential import differential, outcome


def _pruning(torch: Any) -> Any:
    return importlib.import_module(f"{torch.__name__}.ao.pruning")


def _model(torch: Any, *sizes: int) -> Any:
    torch.manual_seed(0)
    return torch.nn.Sequential(*(torch.nn.Linear(left, right) for left, right in itertools.pairwise(sizes)))


def _mask(layer: Any) -> Any:
    return layer.parametrizations.weight[0].mask


@pytest.mark.parametrize(("shape", "zeros"), [((1, 4), 4), ((1, 4), 2), ((1, 1), 1), ((2, 2), 4)])
def test_the_smallest_blocks_become_zero(shape: tuple[int, int], zeros: int) -> None:
    @differential
    def scenario(torch: Any) -> Any:
        found = []
        for level in (0, 0.05, 0.25, 0.35, 0.5, 0.95, 0.99, 1.0):
            model = _model(torch, 4, 10)
            sparsifier = _pruning(torch).WeightNormSparsifier(level, shape, zeros)
            sparsifier.prepare(model, None)
            sparsifier.step()
            found.append(_mask(model[0]))
        return found

    scenario()


@differential
def test_blocks_that_reach_over_the_edge_and_other_norms(torch: Any) -> Any:
    pruning = _pruning(torch)
    found = []
    for norm in (None, 1, 2, lambda weight: weight.abs().sqrt()):
        model = _model(torch, 5, 7)
        sparsifier = pruning.WeightNormSparsifier(0.5, (2, 2), norm=norm)
        sparsifier.prepare(model, None)
        sparsifier.step()
        found.append(_mask(model[0]))
    return found, outcome(lambda: pruning.WeightNormSparsifier(norm="x"), "L-x is not yet implemented")


@differential
def test_bands(torch: Any) -> Any:
    found = []
    for nearliness in (1, 3, 5):
        for sizes in ((4, 4), (6, 5)):
            model = _model(torch, *sizes)
            sparsifier = _pruning(torch).NearlyDiagonalSparsifier(nearliness)
            sparsifier.prepare(model, None)
            sparsifier.step()
            found.append(_mask(model[0]))
    even = _pruning(torch).NearlyDiagonalSparsifier(2)
    even.prepare(_model(torch, 4, 4), None)
    return found, outcome(even.step, "nearliness can only be an odd number")


@differential
def test_from_masks_to_zeros(torch: Any) -> Any:
    pruning = _pruning(torch)
    utils = importlib.import_module(f"{torch.__name__}.ao.pruning.sparsifier.utils")
    model = _model(torch, 4, 4, 8)
    sparsifier = pruning.WeightNormSparsifier(0.5)
    sparsifier.prepare(model, [{"tensor_fqn": "0.weight"}, {"tensor_fqn": "1.weight", "sparsity_level": 0.75}])
    shown = repr(sparsifier)
    before = _mask(model[0]).clone()
    sparsifier.step()
    during = model[0].weight.detach().clone()
    model(torch.ones(2, 4)).sum().backward()
    gradient = model[0].parametrizations.weight.original.grad
    state = sparsifier.state_dict()
    other = pruning.WeightNormSparsifier()
    copied = _model(torch, 4, 4, 8)
    other.prepare(copied, [{"tensor_fqn": "0.weight"}, {"tensor_fqn": "1.weight"}])
    other.load_state_dict(state)
    held = (utils.module_contains_param(model[0], pruning.FakeSparsity), type(model[0]).__name__)
    sparsifier.enable_mask_update = False
    sparsifier.step()
    sparsifier.squash_mask(("sparsity_level",), {"1": ("sparse_block_shape",)})
    return (
        shown,
        repr(pruning.WeightNormSparsifier()),
        before,
        during,
        gradient,
        (
            list(state),
            [dict(group) for group in state["groups"]],
            {name: list(value) for name, value in state["state"].items()},
        ),
        [_mask(layer) for layer in copied],
        [group["sparsity_level"] for group in other.groups],
        held,
        [layer.weight.detach() for layer in model],
        [layer.sparse_params for layer in model],
        utils.module_contains_param(model[0], pruning.FakeSparsity),
        pruning.FakeSparsity(torch.ones(2)).state_dict(),
    )


@differential
def test_paths_and_other_layers(torch: Any) -> Any:
    pruning = _pruning(torch)
    utils = importlib.import_module(f"{torch.__name__}.ao.pruning.sparsifier.utils")
    model = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.Sequential(torch.nn.ReLU(), torch.nn.Linear(4, 4)))

    class Sparse(torch.nn.Linear):  # type: ignore[misc]
        @classmethod
        def from_dense(cls, layer: Any) -> Any:
            return cls(layer.in_features, layer.out_features)

    sparsifier = pruning.WeightNormSparsifier()
    sparsifier.make_config_from_model(model)
    info = pruning.get_arg_info_from_tensor_fqn(model, "1.1.weight")
    names = [pruning.module_to_fqn(model, model[1][1]), pruning.module_to_fqn(model, torch.nn.ReLU())]
    found = pruning.fqn_to_module(model, "1.1") is model[1][1]
    config = sparsifier.config
    sparsifier.prepare(model, None)
    converted = sparsifier.convert(model, {torch.nn.Linear: Sparse})
    same = utils.swap_module(model[1][0], {torch.nn.Linear: Sparse}) is model[1][0]
    static, dynamic = pruning.get_static_sparse_quantized_mapping(), pruning.get_dynamic_sparse_quantized_mapping()
    return (
        config,
        {key: value for key, value in info.items() if key != "module"},
        names,
        found,
        [type(converted[0]).__name__, type(converted[1][1]).__name__, type(model[0]).__name__],
        same,
        [[(key.__name__, value.__name__) for key, value in each.items()] for each in (static, dynamic)],
        outcome(lambda: sparsifier.convert(model), "Need to auto generate mapping"),
        outcome(lambda: pruning.BaseSparsifier()),
    )


@differential
def test_schedules(torch: Any) -> Any:
    pruning = _pruning(torch)

    def prepared(level: float) -> Any:
        sparsifier = pruning.WeightNormSparsifier(level)
        sparsifier.prepare(_model(torch, 8, 8), None)
        return sparsifier

    def levels(schedule: Any, steps: int) -> list[float]:
        found = []
        for _ in range(steps):
            found.append(schedule.sparsifier.groups[0]["sparsity_level"])
            schedule.sparsifier.step()
            schedule.step()
        return [*found, *schedule.get_last_sl()]

    halves = pruning.LambdaSL(prepared(0.8), lambda step: 0.5**step)
    cubic = pruning.CubicSL(prepared(0.8), init_sl=0.0, init_t=0, delta_t=1, total_t=5)
    late = pruning.CubicSL(prepared(0.5), init_sl=0.1, init_t=2, delta_t=2, total_t=6, initially_zero=True)
    results = levels(halves, 3), levels(cubic, 7), levels(late, 15)
    state = {key: value for key, value in cubic.state_dict().items() if key != "verbose"}
    again = pruning.CubicSL(prepared(0.8), init_sl=0.0, init_t=0, delta_t=1, total_t=5)
    again.load_state_dict(cubic.state_dict())
    return (
        results,
        state,
        again.last_epoch,
        repr(halves),
        pruning.CubicSL.sparsity_compute_fn(0.0, 0.8, 1, 0, 1, 5),
        outcome(lambda: pruning.LambdaSL(prepared(0.5), [abs] * 3), "Expected 1 lr_lambdas, but got 3"),
        outcome(lambda: pruning.BaseScheduler(3), "is not an instance of"),
        outcome(lambda: pruning.BaseScheduler(prepared(0.5))),
    )


def test_a_schedule_says_what_it_does(capsys: pytest.CaptureFixture[str]) -> None:
    sparsifier = _pruning(flambeau).WeightNormSparsifier(0.8)
    sparsifier.prepare(_model(flambeau, 4, 4), None)
    _pruning(flambeau).LambdaSL(sparsifier, lambda step: 0.5, verbose=True)
    assert capsys.readouterr().out == "adjusting sparsity level of group 0 to 4.0000e-01.\n"


def test_wrong_paths_and_blocks_are_told() -> None:
    pruning = _pruning(flambeau)
    with pytest.raises(AttributeError, match="the model has no module '9'"):
        pruning.WeightNormSparsifier().prepare(_model(flambeau, 4, 4), [{"tensor_fqn": "9.weight"}])
    wrong = pruning.WeightNormSparsifier(zeros_per_block=9)
    wrong.prepare(_model(flambeau, 4, 4), None)
    with pytest.raises(ValueError, match="cannot be more than the total number"):
        wrong.step()
    with pytest.raises(RuntimeError, match="call prepare"):
        pruning.WeightNormSparsifier().load_state_dict({"state": {}, "groups": []})
