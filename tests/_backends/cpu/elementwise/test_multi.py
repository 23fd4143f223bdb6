"""Kernels over lists of tensors give the bits that NumPy's kernels give, and PyTorch's numbers."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pytest
import torch as pytorch

import flambeau
from flambeau._backends.tiers import generated, numpy_only
from flambeau._codegen.elements.multi import square_sums, update_list
from flambeau._dispatch.abstract.tracing import traced_rule

SHAPES = [(40, 101), (), (5,), (0, 3), (3, 7, 50), (1,)]
OPTIMIZERS: list[tuple[str, dict[str, Any]]] = [
    ("SGD", {"lr": 0.1}),
    ("SGD", {"lr": 0.1, "momentum": 0.9, "nesterov": True, "weight_decay": 0.1, "maximize": True}),
    ("SGD", {"lr": 0.1, "momentum": 0.9, "dampening": 0.3}),
    ("Adam", {}),
    ("Adam", {"amsgrad": True, "weight_decay": 0.1, "maximize": True, "betas": (0.3, 0.4)}),
    ("AdamW", {"weight_decay": 0.3}),
    ("RMSprop", {"centered": True, "momentum": 0.9}),
    ("Adagrad", {"lr_decay": 0.1}),
    ("Adadelta", {}),
    ("Adamax", {}),
    ("NAdam", {}),
    ("RAdam", {}),
    ("ASGD", {"t0": 2}),
]
NAMES = [f"{name}-{'-'.join(options)}" for name, options in OPTIMIZERS]


def _arrays(seed: int, shapes: Any = SHAPES) -> list[Any]:
    generator = np.random.default_rng(seed)
    return [np.asarray(generator.normal(size=shape)) for shape in shapes]


def _steps(framework: Any, name: str, options: dict[str, Any], dtype: str, steps: int, shapes: Any = SHAPES) -> Any:
    kind = getattr(framework, dtype)
    params = [framework.tensor(each, dtype=kind).requires_grad_(True) for each in _arrays(0, shapes)]
    optimizer = getattr(framework.optim, name)(params, **options)
    for step in range(steps):
        for param, array in zip(params, _arrays(step + 1, shapes), strict=True):
            param.grad = framework.tensor(array, dtype=kind)
        optimizer.step()
    return params, optimizer


def _content(params: Any, optimizer: Any) -> list[Any]:
    states = [each for state in optimizer.state.values() for each in state.values() if each is not None]
    return [each.detach().double().numpy() for each in [*params, *states]]


@pytest.mark.parametrize(("name", "options"), OPTIMIZERS, ids=NAMES)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_the_bits_of_the_reference(
    name: str, options: dict[str, Any], dtype: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    kernels = generated("multi")
    outcomes = []

    def update(*args: Any) -> Any:
        outcomes.append(original(*args))
        return outcomes[-1]

    original = kernels.update
    monkeypatch.setattr(kernels, "update", update)
    actual = _content(*_steps(flambeau, name, options, dtype, 4))
    assert len(outcomes) >= 4
    assert all(outcomes)
    with numpy_only():
        expected = _content(*_steps(flambeau, name, options, dtype, 4))
    for one, other in zip(actual, expected, strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize(
    ("name", "options"), [OPTIMIZERS[1], OPTIMIZERS[5], OPTIMIZERS[9]], ids=["SGD", "AdamW", "Adamax"]
)
def test_the_bits_of_the_reference_in_half_precision(name: str, options: dict[str, Any], dtype: str) -> None:
    options = {**options, "eps": 1e-3} if name != "SGD" else options
    actual = _content(*_steps(flambeau, name, options, dtype, 4))
    with numpy_only():
        expected = _content(*_steps(flambeau, name, options, dtype, 4))
    for one, other in zip(actual, expected, strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize(("name", "options"), OPTIMIZERS, ids=NAMES)
def test_the_steps_of_pytorch(name: str, options: dict[str, Any]) -> None:
    expected = _content(*_steps(pytorch, name, options, "float64", 20))
    actual = _content(*_steps(flambeau, name, options, "float64", 20))
    for one, other in zip(actual, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-11, atol=1e-12)


def test_nan_and_infinity_pass_through() -> None:
    def run() -> Any:
        param = flambeau.zeros(5000, requires_grad=True)
        optimizer = flambeau.optim.Adam([param], amsgrad=True)
        param.grad = flambeau.ones(5000)
        param.grad[:4] = flambeau.tensor([float("nan"), float("inf"), -float("inf"), 1e30])
        optimizer.step()
        return [param.detach().numpy(), *[each.numpy() for each in optimizer.state[param].values()]]

    actual = run()
    with numpy_only():
        expected = run()
    for one, other in zip(actual, expected, strict=True):
        np.testing.assert_array_equal(one, other)
    assert np.isnan(actual[0]).any()


def test_a_scheduler_needs_no_new_kernel() -> None:
    _, optimizer = _steps(flambeau, "Adam", {}, "float32", 2)
    made = len(update_list.compiled())
    for step in range(5):
        optimizer.param_groups[0]["lr"] = 0.1 / (step + 1)
        optimizer.step()
    assert len(update_list.compiled()) == made


def test_versions_and_states() -> None:
    params, optimizer = _steps(flambeau, "Adam", {"amsgrad": True}, "float32", 1)
    tensors = [params[0], *optimizer.state[params[0]].values()]
    before = [each._version for each in tensors]
    grad_before = params[0].grad._version
    optimizer.step()
    assert all(each._version > old for each, old in zip(tensors, before, strict=True))
    assert params[0].grad._version == grad_before
    reference, _ = _steps(pytorch, "Adam", {"amsgrad": True}, "float32", 1)
    assert list(optimizer.state[params[0]]) == ["step", "exp_avg", "exp_avg_sq", "max_exp_avg_sq"]
    assert [each.shape for each in params] == [tuple(each.shape) for each in reference]


def test_a_graph_notices_the_change() -> None:
    weight = flambeau.ones(5000, requires_grad=True)
    loss = (weight * weight).sum()
    weight.grad = flambeau.ones(5000)
    flambeau.optim.SGD([weight], lr=0.1).step()
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        loss.backward()


def _both_ways(scenario: Any) -> None:
    """Run a scenario with and without kernels and under PyTorch."""
    actual = scenario(flambeau)
    with numpy_only():
        reference = scenario(flambeau)
    expected = scenario(pytorch)
    for one, two, three in zip(actual, reference, expected, strict=True):
        np.testing.assert_array_equal(one, two)
        np.testing.assert_allclose(one, three, rtol=1e-5, atol=1e-6)


def _step_of(framework: Any, params: list[Any], grads: list[Any], name: str = "Adam", **options: Any) -> list[Any]:
    for param, grad in zip(params, grads, strict=True):
        param.grad = grad
    optimizer = getattr(framework.optim, name)(params, **options)
    optimizer.step()
    optimizer.step()
    return [each.detach().numpy() for each in params]


def test_layouts() -> None:
    def scenario(framework: Any) -> list[Any]:
        base = [framework.tensor(each, dtype=framework.float32) for each in _arrays(3, [(60, 70), (60, 70), (60, 70)])]
        grads = [framework.tensor(each, dtype=framework.float32) for each in _arrays(4, [(60, 70), (70, 60), (30, 70)])]
        params = [base[0], base[1].t(), base[2][::2]]
        return _step_of(framework, [each.detach().requires_grad_(True) for each in params], grads) + [base[2].numpy()]

    _both_ways(scenario)


def test_parameters_that_share_memory() -> None:
    def scenario(framework: Any) -> list[Any]:
        base = framework.tensor(_arrays(5, [(6000,)])[0], dtype=framework.float32)
        params = [base[:4000].detach().requires_grad_(True), base[2000:].detach().requires_grad_(True)]
        grads = [framework.ones(4000), framework.ones(4000)]
        return [*_step_of(framework, params, grads, "AdamW"), base.numpy()]

    _both_ways(scenario)


def test_a_gradient_that_is_the_parameter() -> None:
    def scenario(framework: Any) -> list[Any]:
        param = framework.ones(5000, requires_grad=True)
        return _step_of(framework, [param], [param.detach()], "AdamW", weight_decay=0.5)

    _both_ways(scenario)


def test_dtypes_side_by_side() -> None:
    def scenario(framework: Any) -> list[Any]:
        kinds = [framework.float32, framework.float64, framework.float32]
        arrays = _arrays(6, [(5000,), (2000,), (10,)])
        params = [
            framework.tensor(each, dtype=kind).requires_grad_(True) for each, kind in zip(arrays, kinds, strict=True)
        ]
        return _step_of(framework, params, [framework.ones_like(each) for each in params])

    _both_ways(scenario)


def test_parameters_at_different_steps() -> None:
    def scenario(framework: Any) -> list[Any]:
        params = [
            framework.tensor(each, dtype=framework.float32).requires_grad_(True) for each in _arrays(7, [(5000,)] * 3)
        ]
        optimizer = framework.optim.Adam(params)
        for step in range(4):
            for number, param in enumerate(params):
                param.grad = framework.ones(5000) if step % 2 == 0 or number != 1 else None
            optimizer.step()
        return [each.detach().numpy() for each in params]

    _both_ways(scenario)


def test_complex_parameters_and_tensors_as_numbers() -> None:
    def scenario(framework: Any) -> list[Any]:
        param = framework.ones(5000, dtype=framework.complex64).requires_grad_(True)
        results = _step_of(framework, [param], [framework.ones(5000, dtype=framework.complex64) * (1 + 2j)])
        param = framework.ones(5000).requires_grad_(True)
        return results + _step_of(framework, [param], [framework.ones(5000)], lr=framework.tensor(0.1))

    _both_ways(scenario)


def test_differentiable_steps_are_recorded() -> None:
    weight = flambeau.ones(5000, requires_grad=True)
    copy = weight.clone()
    copy.grad = flambeau.ones(5000)
    flambeau.optim.SGD([copy], lr=0.5, differentiable=True).step()
    assert copy.grad_fn is not None


def test_memory_that_may_not_be_written() -> None:
    array = np.ones(5000, np.float32)
    param = flambeau.from_numpy(array)
    array.flags.writeable = False
    if param._array.flags.writeable:
        param._array.flags.writeable = False
    with pytest.raises((ValueError, RuntimeError)):
        flambeau.optim.SGD([_with_grad(param)], lr=0.1).step()
    assert (array == 1).all()


def test_what_arrays_a_kernel_takes() -> None:
    kernels = generated("multi")

    def rule(_: None, target: Any, other: Any) -> None:
        target.add_(other)

    traced = traced_rule(rule, None, "float32", 2)
    good = np.ones((80, 80), np.float32)
    unaligned = np.zeros(4 * 6400 + 1, np.uint8)[1:].view(np.float32).reshape(80, 80)
    fixed = good.copy()
    fixed.flags.writeable = False
    for array in (
        unaligned,
        np.ones((80, 160), np.float32)[:, ::2],
        np.asfortranarray(good),
        np.ones(6400, np.float32),
    ):
        before = array.copy()
        assert not kernels.update(*traced, [array], [good])
        np.testing.assert_array_equal(array, before)
    assert not kernels.update(*traced, [fixed], [good])
    assert not kernels.update(*traced, [good.astype(np.int64)], [good.astype(np.int64)])
    assert kernels.norms([unaligned]) is None
    assert kernels.update(*traced, [np.asfortranarray(good)], [np.asfortranarray(good)])
    assert kernels.update(*traced, [good], [fixed])
    images = np.arange(4800, dtype=np.float32).reshape(4, 10, 12, 10).transpose(0, 3, 1, 2)
    other = np.ones((4, 10, 12, 10), np.float32).transpose(0, 3, 1, 2)
    assert kernels.update(*traced, [images], [other])
    np.testing.assert_array_equal(images.transpose(0, 2, 3, 1).ravel(), np.arange(1, 4801))
    assert not kernels.update(*traced, [images], [np.ascontiguousarray(other)])
    assert not kernels.update(*traced, [images[:, :9]], [other[:, :9]])
    overlapping = np.lib.stride_tricks.as_strided(np.ones(20000, np.float32), (70, 70), (8, 8))
    assert not kernels.update(*traced, [overlapping], [overlapping])
    same = np.lib.stride_tricks.as_strided(np.ones(20000, np.float32), (70, 70), (4, 4))
    assert not kernels.update(*traced, [same], [same])
    np.testing.assert_array_equal(good, 2)


def _with_grad(param: Any) -> Any:
    param.requires_grad_(True)
    param.grad = flambeau.ones(param.shape)
    return param


def test_several_threads() -> None:
    results: list[Any] = [None] * 4

    def work(number: int) -> None:
        results[number] = _content(*_steps(flambeau, "AdamW", {}, "float32", 3, [(200, 300), (7,)]))

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    with numpy_only():
        expected = _content(*_steps(flambeau, "AdamW", {}, "float32", 3, [(200, 300), (7,)]))
    for result in results:
        for one, other in zip(result, expected, strict=True):
            np.testing.assert_array_equal(one, other)


FOREACH: list[tuple[str, Any]] = [
    ("_foreach_mul_", lambda fw, one, two: (0.3,)),
    ("_foreach_mul_", lambda fw, one, two: ([0.3, 0.4, 0.5],)),
    ("_foreach_mul_", lambda fw, one, two: (fw.tensor(0.3),)),
    ("_foreach_mul_", lambda fw, one, two: (fw.tensor(0.3, dtype=fw.float64),)),
    ("_foreach_add_", lambda fw, one, two: (2,)),
    ("_foreach_add_", lambda fw, one, two: (one,)),
    ("_foreach_sub_", lambda fw, one, two: (one,)),
    ("_foreach_div_", lambda fw, one, two: (two,)),
    ("_foreach_neg_", lambda fw, one, two: ()),
    ("_foreach_abs_", lambda fw, one, two: ()),
    ("_foreach_floor_", lambda fw, one, two: ()),
    ("_foreach_zero_", lambda fw, one, two: ()),
    ("_foreach_copy_", lambda fw, one, two: (one,)),
    ("_foreach_lerp_", lambda fw, one, two: (one, 0.7)),
    ("_foreach_lerp_", lambda fw, one, two: (one, two)),
    ("_foreach_addcmul_", lambda fw, one, two: (one, two)),
    ("_foreach_addcdiv_", lambda fw, one, two: (one, two, 0.5)),
    ("_foreach_addcdiv_", lambda fw, one, two: (one, two, [0.5, 1.0, 2.0])),
    ("_foreach_maximum_", lambda fw, one, two: (one,)),
    ("_foreach_clamp_min_", lambda fw, one, two: (0.1,)),
    ("_foreach_clamp_max_", lambda fw, one, two: (one,)),
    ("_foreach_minimum_", lambda fw, one, two: (0.1,)),
]


@pytest.mark.parametrize(("name", "arguments"), FOREACH)
def test_ops_on_lists(name: str, arguments: Any) -> None:
    def scenario(framework: Any) -> list[Any]:
        lists = [
            [framework.tensor(each, dtype=framework.float32) for each in _arrays(seed, [(50, 90), (3,), ()])]
            for seed in (1, 2, 3)
        ]
        result = getattr(framework, name)(lists[0], *arguments(framework, lists[1], lists[2]))
        assert result is None or result is lists[0]
        if framework is flambeau:
            assert all(each._version == 1 for each in lists[0])
        return [each.numpy() for each in lists[0]]

    _both_ways(scenario)


def test_ops_on_lists_that_share_memory() -> None:
    def scenario(framework: Any) -> list[Any]:
        one, two = (framework.tensor(each, dtype=framework.float32) for each in _arrays(1, [(5000,), (5000,)]))
        framework._foreach_add_([one, two], [two, one])
        framework._foreach_mul_([one, one[:10]], 2.0)
        framework._foreach_add_([one[1:]], [one[:-1].clone()])
        return [one.numpy(), two.numpy()]

    _both_ways(scenario)


def test_ops_on_lists_are_recorded() -> None:
    leaf = flambeau.ones(5000, requires_grad=True)
    products = [leaf * 1, flambeau.ones(5000)]
    flambeau._foreach_mul_(products, 3.0)
    products[0].sum().backward()
    assert leaf.grad is not None
    np.testing.assert_array_equal(leaf.grad.numpy(), 3)


def test_operands_of_another_dtype() -> None:
    def scenario(framework: Any) -> list[Any]:
        tensors = [framework.ones(5000)]
        framework._foreach_add_(tensors, [framework.ones(5000, dtype=framework.int64)])
        framework._foreach_add_(tensors, [framework.ones(1)])
        return [tensors[0].numpy()]

    _both_ways(scenario)


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "bfloat16"])
def test_norms(dtype: str) -> None:
    shapes = [(300, 301), (5,), (), (0,), (16384,), (16385,)]
    ours, theirs = (
        [framework.tensor(each, dtype=getattr(framework, dtype)) for each in _arrays(8, shapes)]
        for framework in (flambeau, pytorch)
    )
    rounding = {"float32": 1e-6, "float64": 1e-14, "float16": 1e-3, "bfloat16": 1e-2}[dtype]
    for one, other in zip(flambeau._foreach_norm(ours), pytorch._foreach_norm(theirs), strict=True):
        assert str(one.dtype).split(".")[1] == dtype
        assert one.shape == ()
        np.testing.assert_allclose(one.double().numpy(), other.double().numpy(), rtol=rounding)
    total = flambeau.nn.utils.get_total_norm(ours)
    np.testing.assert_allclose(float(total), float(pytorch.nn.utils.get_total_norm(theirs)), rtol=rounding)
    with numpy_only():
        np.testing.assert_allclose(float(total), float(flambeau.nn.utils.get_total_norm(ours)), rtol=rounding)
    assert (dtype,) in dict(square_sums.compiled())


def test_norms_do_not_depend_on_the_number_of_threads() -> None:
    tensors = [flambeau.randn(123_457), flambeau.randn(3)]
    threads = flambeau.get_num_threads()
    found = []
    try:
        for number in (1, 2, 3):
            flambeau.set_num_threads(number)
            found.append(float(flambeau.nn.utils.get_total_norm(tensors)))
    finally:
        flambeau.set_num_threads(threads)
    assert len(set(found)) == 1


@pytest.mark.parametrize("scale", [1e-3, 1.0, float("inf"), float("nan")])
def test_clipping(scale: float) -> None:
    def scenario(framework: Any) -> list[Any]:
        params = [framework.zeros(shape).requires_grad_(True) for shape in ((50, 90), (7,))]
        for param, array in zip(params, _arrays(9, [(50, 90), (7,)]), strict=True):
            param.grad = framework.tensor(array, dtype=framework.float32)
        params[0].grad[0, 0] *= scale
        total = framework.nn.utils.clip_grad_norm_(params, 1.0)
        return [total.numpy(), *[each.grad.numpy() for each in params]]

    actual, expected = scenario(flambeau), scenario(pytorch)
    for one, other in zip(actual, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5)


def test_clipping_values() -> None:
    def scenario(framework: Any) -> list[Any]:
        params = [framework.zeros(shape).requires_grad_(True) for shape in ((50, 90), (7,))]
        for param, array in zip(params, _arrays(9, [(50, 90), (7,)]), strict=True):
            param.grad = framework.tensor(array, dtype=framework.float32)
        params[0].grad[0, 0] = float("nan")
        framework.nn.utils.clip_grad_value_(params, 0.5)
        return [each.grad.numpy() for each in params]

    _both_ways(scenario)


def test_clipping_gradients_of_several_dtypes_and_layouts() -> None:
    def scenario(framework: Any) -> list[Any]:
        params = [
            framework.zeros(50, 90, dtype=kind).requires_grad_(True) for kind in (framework.float32, framework.float64)
        ]
        params.append(framework.zeros(60, 50).requires_grad_(True))
        for param in params[:2]:
            param.grad = framework.full((50, 90), 0.5, dtype=param.dtype)
        params[2].grad = framework.full((120, 100), 0.5)[::2, ::2]
        total = framework.nn.utils.clip_grad_norm_(params, 1.0)
        return [total.detach().numpy(), *[each.grad.numpy() for each in params]]

    _close(scenario)


def _close(scenario: Any) -> None:
    for one, other in zip(scenario(flambeau), scenario(pytorch), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5)


def test_without_kernels() -> None:
    with numpy_only():
        assert generated("multi") is None
        params, _ = _steps(flambeau, "Adam", {}, "float32", 1)
    again, _ = _steps(flambeau, "Adam", {}, "float32", 1)
    np.testing.assert_array_equal(params[0].detach().numpy(), again[0].detach().numpy())
