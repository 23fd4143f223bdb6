"""Fake tensors: shape, strides, dtype and device without data, beside PyTorch's."""

from __future__ import annotations

import copy
import importlib
import warnings
from itertools import islice
from typing import Any

import pytest
from flambeau._subclasses.fake_tensor import (
    DataDependentOutputException,
    DynamicOutputShapeException,
    FakeTensor,
    FakeTensorMode,
)

import flambeau

from ...conformance.checks import arguments
from ...conformance.entries import Entry, entries
from ...conformance.translate import translate
from ...support.allocations import counted_allocations
from ...support.differential import compare, outcome


def _fakes(torch: Any) -> Any:
    return importlib.import_module(f"{torch.__name__}._subclasses.fake_tensor")


def _about(x: Any) -> tuple[Any, ...]:
    return tuple(x.shape), x.stride(), str(x.dtype), str(x.device), x.requires_grad, x.is_leaf, repr(x)


PROGRAMS = {
    "views": lambda torch: torch.empty(4, 6).t()[1:3].unsqueeze(0).expand(5, -1, -1),
    "arithmetic": lambda torch: torch.ones(3, 1) * torch.zeros(4, dtype=torch.int64) + 1,
    "in place": lambda torch: torch.zeros(3).add_(1)[:2].mul_(2),
    "products": lambda torch: torch.randn(2, 3, 4) @ torch.randn(4, 5),
    "layers": lambda torch: torch.nn.Sequential(torch.nn.Linear(3, 5), torch.nn.ReLU())(torch.rand(2, 3)),
    "images": lambda torch: torch.nn.Conv2d(3, 8, 3)(torch.rand(2, 3, 9, 9)),
    "statistics": lambda torch: torch.nn.BatchNorm1d(4)(torch.rand(7, 4)),
    "dropout": lambda torch: torch.nn.functional.dropout(torch.rand(7, 4)),
    "data": lambda torch: torch.tensor([[1, 2], [3, 4]]),
    "arrays": lambda torch: torch.arange(10, dtype=torch.float64),
    "joined": lambda torch: torch.cat([torch.empty(2, 3), torch.zeros(1, 3)]),
    "gathered": lambda torch: torch.empty(5, 3)[torch.tensor([0, 2])],
    "on a GPU": lambda torch: torch.ones(2, 3, device="cuda", dtype=torch.bfloat16),
    "to the CPU": lambda torch: torch.ones(2, 3, device="cuda").cpu(),
    "a number of the CPU": lambda torch: torch.ones(2, 3, device="cuda") + torch.ones(()),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_shapes_propagate(name: str) -> None:
    def scenario(torch: Any) -> Any:
        with _fakes(torch).FakeTensorMode():
            result = PROGRAMS[name](torch)
        assert isinstance(result, _fakes(torch).FakeTensor)
        return _about(result)

    compare(scenario)


READS = {
    "item": lambda x: x.sum().item(),
    "bool": lambda x: bool(x.sum() > 0),
    "int": lambda x: int(x[0, 0]),
    "tolist": lambda x: x.tolist(),
    "equal": lambda x: x.equal(x),
    "allclose": lambda x: x.allclose(x),
    "nonzero": lambda x: x.nonzero(),
    "mask": lambda x: x[x > 0],
    "masked_select": lambda x: x.masked_select(x > 0),
    "unique": lambda x: x.unique(),
}


@pytest.mark.parametrize("inside", [True, False])
@pytest.mark.parametrize("name", READS)
def test_what_needs_elements_is_refused(name: str, inside: bool) -> None:
    def scenario(torch: Any) -> Any:
        mode = _fakes(torch).FakeTensorMode()
        with mode:
            x = torch.rand(2, 3)
            if inside:
                with pytest.raises(RuntimeError) as error:
                    READS[name](x)
                return error.type.__name__
        with pytest.raises(RuntimeError) as error:
            READS[name](x)
        return error.type.__name__

    compare(scenario)


def test_numbers_that_the_program_knows_can_be_read() -> None:
    def scenario(torch: Any) -> Any:
        with _fakes(torch).FakeTensorMode():
            x = torch.tensor(3)
            return x.item(), x.tolist()

    compare(scenario)


def test_fakes_of_real_tensors() -> None:
    def scenario(torch: Any) -> Any:
        mode = _fakes(torch).FakeTensorMode()
        real = torch.randn(3, 4, requires_grad=True).t()
        leaf = torch.randn(3, requires_grad=True)
        fake = mode.from_tensor(leaf)
        parameter = mode.from_tensor(torch.nn.Parameter(torch.ones(2)))
        assert mode.from_tensor(leaf) is fake
        assert isinstance(parameter, torch.nn.Parameter)
        assert isinstance(parameter, _fakes(torch).FakeTensor)
        outside = (fake + 1).exp()
        outside.sum().backward()
        return _about(fake), _about(mode.from_tensor(real.detach())), _about(outside), _about(fake.grad)

    compare(scenario)


def test_real_tensors_are_refused_unless_allowed() -> None:
    def scenario(torch: Any) -> Any:
        real = torch.ones(2)
        message = "Please convert all Tensors to FakeTensors first"
        with pytest.raises(AssertionError, match=message), _fakes(torch).FakeTensorMode():
            real + 1
        with _fakes(torch).FakeTensorMode(allow_non_fake_inputs=True):
            return _about(real + 1)

    compare(scenario)


def test_gradients_and_optimizers() -> None:
    with FakeTensorMode():
        model = flambeau.nn.Sequential(flambeau.nn.Linear(8, 16), flambeau.nn.LayerNorm(16), flambeau.nn.Linear(16, 3))
        optimizer = flambeau.optim.AdamW(model.parameters())
        for _ in range(2):
            optimizer.zero_grad()
            loss = flambeau.nn.functional.cross_entropy(
                model(flambeau.rand(4, 8)), flambeau.zeros(4, dtype=flambeau.int64)
            )
            loss.backward()
            optimizer.step()
    assert all(isinstance(each.grad, FakeTensor) and each.grad.shape == each.shape for each in model.parameters())
    assert isinstance(loss, FakeTensor)


def test_a_model_of_any_size_takes_no_memory() -> None:
    def forward() -> Any:
        with FakeTensorMode():
            layer = flambeau.nn.TransformerEncoderLayer(65536, 64, 262144, device="cuda", dtype=flambeau.bfloat16)
            return layer(flambeau.rand(512, 64, 65536, device="cuda", dtype=flambeau.bfloat16))

    forward()
    with counted_allocations() as sizes:
        result = forward()
    assert (result.shape, str(result.device), result.dtype) == ((512, 64, 65536), "cuda:0", flambeau.bfloat16)
    assert max(sizes, default=0) < 4096


def test_copies_of_modules_are_fake() -> None:
    with FakeTensorMode():
        copied = copy.deepcopy(flambeau.nn.Linear(2, 3))
    assert isinstance(copied.weight, FakeTensor)
    assert (copied.weight.shape, copied.weight.requires_grad) == ((3, 2), True)


def test_the_mode_is_left_even_by_an_error() -> None:
    with pytest.raises(DynamicOutputShapeException), FakeTensorMode():
        flambeau.ones(3).nonzero()
    assert flambeau.ones(3).tolist() == [1, 1, 1]
    assert not isinstance(flambeau.ones(3), FakeTensor)


def test_signs_still_to_be_taken() -> None:
    def scenario(torch: Any) -> Any:
        fakes = _fakes(torch)
        with fakes.FakeTensorMode():
            x = torch.ones(2, 3, dtype=torch.complex64)
            found = [x.conj(), x.conj().imag, x.conj() + 1, x.conj().t()[0], torch.fft.ifft(torch.ones(4))]
        return [(isinstance(each, fakes.FakeTensor), each.is_conj(), each.is_neg(), each.shape) for each in found]

    compare(scenario)


_SAMPLE = [each for each in entries() if each.dtypes and "native_batch_norm" not in each.name][::9]
"""Outside of training those return empty statistics, but not without data: so does PyTorch."""


@pytest.mark.parametrize("entry", _SAMPLE, ids=repr)
def test_entries_of_the_operator_database(entry: Entry) -> None:
    """Of real tensors and of their fakes ops make results that lie alike."""
    for sample in islice(entry.samples(entry.main_dtype), 2):
        try:
            args, kwargs = translate(arguments(sample))
        except NotImplementedError:
            continue
        mode = FakeTensorMode()
        fake = sample.transform(lambda each: each)
        fake_args, fake_kwargs = translate(arguments(fake))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            expected = _tensors(entry.op(*args, **kwargs))
            if any(each.layout is not flambeau.strided for each in (*expected, *_tensors([list(args)]))):
                continue
            with mode:
                try:
                    found = entry.op(*_faked(mode, list(fake_args)), **_faked(mode, fake_kwargs))
                except (DataDependentOutputException, DynamicOutputShapeException):
                    continue
        for real, shape in zip(expected, _tensors(found), strict=True):
            assert isinstance(shape, FakeTensor)
            assert (shape.shape, shape.dtype, shape.device) == (real.shape, real.dtype, real.device)


def _faked(mode: FakeTensorMode, value: Any) -> Any:
    if isinstance(value, flambeau.Tensor):
        return mode.from_tensor(value)
    if isinstance(value, (list, tuple)):
        return type(value)([_faked(mode, each) for each in value])
    return {name: _faked(mode, each) for name, each in value.items()} if isinstance(value, dict) else value


def _tensors(value: Any) -> list[Any]:
    if isinstance(value, flambeau.Tensor):
        return [value]
    return [each for item in value for each in _tensors(item)] if isinstance(value, (list, tuple)) else []


def test_results_are_of_the_class() -> None:
    """Results, views, parameters and gradients are `FakeTensor`s, inside of the mode and outside."""

    def scenario(torch: Any) -> Any:
        fakes = _fakes(torch)

        def names(*tensors: Any) -> list[str]:
            return [type(each).__name__ for each in tensors]

        with fakes.FakeTensorMode() as mode:
            x = torch.ones(3, 4)
            layer = torch.nn.Linear(4, 2)
            out = layer(x)
            out.sum().backward()
            inside = names(
                x, x + 1, out, layer.weight, layer.weight.grad, x.detach(), x[0], out.data, *x.unbind(), *x.max(0),
                torch.nn.Parameter(x),
            )  # fmt: skip
            modes = [each.fake_mode is mode for each in (x, out, layer.weight)]
            counted = isinstance(layer.weight, torch.nn.Parameter), isinstance(layer.weight, fakes.FakeTensor)
        outside = names(x + 1, x @ x.t(), x.view(12), x.clone(), x.split(2)[0], torch.ones(2))
        return inside, modes, counted, outside, str(x.fake_device), fakes.FakeTensor.__mro__[1].__name__

    compare(scenario)


def test_fake_forms_of_real_tensors() -> None:
    def scenario(torch: Any) -> Any:
        mode = _fakes(torch).FakeTensorMode()
        real = torch.nn.Parameter(torch.ones(3))
        fake = mode.from_tensor(real)
        again = mode.from_tensor(real) is fake, fake.fake_mode is mode
        return type(fake).__name__, isinstance(fake, torch.nn.Parameter), fake.requires_grad, fake.is_leaf, again

    compare(scenario)


def test_what_fake_tensors_refuse_to_meet() -> None:
    def scenario(torch: Any) -> Any:
        fakes = _fakes(torch)
        with fakes.FakeTensorMode():
            x = torch.ones(2)
            apart = outcome(lambda: torch.ones(2, device="cuda") + torch.ones(2), "at least two devices")
            shown = repr(torch.nn.Parameter(torch.ones(2)))
        with fakes.FakeTensorMode():
            mixed = outcome(lambda: x + 1, "Mixing fake modes")
        return apart, mixed, shown, type(x + 1).__name__

    compare(scenario)
