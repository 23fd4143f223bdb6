"""The kernels behind `flambeau.reproducible("batch")`: each form of a product, a sum or a step gives the same bits."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import flambeau
from flambeau import nn
from flambeau._backends.cpu.indexing.gather import add_slices
from flambeau._backends.cpu.linalg import fixed_order, over_samples

F = nn.functional


@pytest.fixture(autouse=True, params=[1, 2])
def at_batch(request: pytest.FixtureRequest) -> Iterator[None]:
    before = flambeau.get_num_threads()
    flambeau.set_num_threads(request.param)
    with flambeau.reproducible("batch"):
        yield
    flambeau.set_num_threads(before)


def numbers(*shape: int, dtype: Any = np.float32) -> Any:
    return np.random.default_rng(0).standard_normal(shape).astype(dtype)


def bits(tensor: Any) -> bytes:
    return np.ascontiguousarray(tensor.detach()._array).tobytes()


# ----- products -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(("depth", "columns"), [(900, 70), (385, 16), (64, 200), (33, 2)])
def test_rows_are_the_same_among_any_number_and_in_any_layout(depth: int, columns: int, dtype: Any) -> None:
    left, right = numbers(70, depth, dtype=dtype), numbers(depth, columns, dtype=dtype)
    whole = fixed_order.product(left, right)
    apart = numbers(depth, 2 * columns, dtype=dtype)[:, ::2]
    apart[...] = right
    for rows in (1, 2, 5, 8, 16, 17, 40, 70):
        part = left[:rows]
        for one in (part, np.asfortranarray(part)):
            for other in (right, np.asfortranarray(right), apart):
                assert fixed_order.product(one, other).tobytes() == whole[:rows].tobytes(), rows
    batch = np.stack([left, left[::-1]])
    assert fixed_order.product(batch, np.stack([right, right])).tobytes() == fixed_order.product(batch, right).tobytes()


@pytest.mark.parametrize("rows", [1, 3, 8, 70])
def test_the_products_of_steps_are_those_of_matrices(rows: int) -> None:
    weight, state = numbers(96, 50), numbers(rows, 50)
    out = np.empty((rows, 96), np.float32)
    fixed_order.step_product(weight.T)(state, None, out)
    assert out.tobytes() == fixed_order.product(state, weight.T).tobytes()


@pytest.mark.parametrize("steps", [1, 7, 64, 1030])
def test_sums_of_samples_are_trees_of_chains(steps: int) -> None:
    left, right = numbers(11, steps, 70), numbers(11, steps, 130)[:, :, ::-1]

    def summed(first: int, last: int) -> Any:
        if last - first == 1:
            return fixed_order.product(left[first].T, right[first])
        middle = (first + last) // 2
        return summed(first, middle) + summed(middle, last)

    found = over_samples.samples_product(left, right)
    assert found.tobytes() == summed(0, 11).tobytes()
    turned = np.ascontiguousarray(left.transpose(0, 2, 1)).transpose(0, 2, 1)  # whose rows are apart
    assert over_samples.samples_product(turned, right).tobytes() == found.tobytes()


@pytest.mark.parametrize("shape", [(6, 5, 12), (6, 2, 3, 12)])
def test_gradients_of_linear_layers_do_not_depend_on_who_looks(shape: tuple[int, ...]) -> None:
    flambeau.manual_seed(0)
    for bias in (True, False):
        layer, x = nn.Linear(12, 9, bias=bias), flambeau.randn(*shape)

        def gradient(x: Any, layer: Any = layer, **options: Any) -> Any:
            return flambeau.autograd.grad(layer(x).sin().sum(), layer.weight, **options)[0]

        wanted = bits(gradient(x))
        looked = layer(x)
        assert looked.grad_fn is not None
        assert looked.grad_fn.next_functions
        assert bits(flambeau.autograd.grad(looked.sin().sum(), layer.weight)[0]) == wanted
        assert bits(gradient(x, create_graph=True)) == wanted
        assert bits(gradient(x.transpose(0, 1).contiguous().transpose(0, 1))) == wanted
        with flambeau.profiler.profile():
            assert bits(gradient(x)) == wanted
        compiled = flambeau.compile(gradient)
        assert all(bits(compiled(x)) == wanted for _ in range(4))
        halves = [gradient(part) for part in x.chunk(2)]
        assert bits(halves[0] + halves[1]) == wanted


def test_gradients_may_be_asked_for_at_another_level() -> None:
    flambeau.manual_seed(0)
    layer, x = nn.Linear(12, 9), flambeau.randn(6, 5, 12)
    looked = layer(x)
    assert looked.grad_fn is not None
    assert looked.grad_fn.next_functions
    wanted = flambeau.autograd.grad(layer(x).sin().sum(), layer.weight)[0]
    loss = looked.sin().sum()
    with flambeau.reproducible(None):
        found = flambeau.autograd.grad(loss, layer.weight)[0]
    assert flambeau.allclose(found, wanted, 1e-5, 1e-5)


# ----- sums -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("length", [1, 15, 16, 17, 40, 1030])
def test_zeros_at_the_end_change_no_sum(length: int, dtype: Any) -> None:
    rows, more = numbers(5, length, 9, dtype=dtype), numbers(5, length, dtype=dtype)
    wanted = fixed_order.chain(rows, (1,), False), fixed_order.chain(more, (1,), False)
    assert np.allclose(wanted[0], rows.sum(1, np.float64), 1e-6, 1e-6)
    for zeros in (1, 3, 16, 50):
        padded = np.pad(rows, ((0, 0), (0, zeros), (0, 0))), np.pad(more, ((0, 0), (0, zeros)))
        found = [fixed_order.chain(each, (1,), False) for each in padded]
        assert [each.tobytes() for each in found] == [each.tobytes() for each in wanted]


SUMS: list[tuple[tuple[int, ...], tuple[int, ...]]] = [
    ((6, 5, 7), (0, 1)), ((6, 5, 7), (0, 2)), ((6, 5, 7), (1, 2)), ((6, 3, 5, 7), (0, 2)), ((6, 3, 5, 7), (1, 3)),
    ((6, 40), (1,)), ((6, 40), (0,)),
]  # fmt: skip


@pytest.mark.parametrize(("shape", "dims"), SUMS)
def test_sums_of_a_sample_are_those_of_the_sample_alone(shape: tuple[int, ...], dims: tuple[int, ...]) -> None:
    x = flambeau.from_numpy(numbers(*shape))
    if 0 in dims:  # sums of samples are added, first those of the first and the second half
        halves = [part.sum(dims) for part in x.chunk(2)]
        assert bits(x.sum(dims)) == bits(halves[0] + halves[1])
        others = [each for each in dims if each]
        assert bits(x[:1].sum(dims)) == bits(x[:1].sum(others) if others else x[:1])
        return
    for part in (x[2:3], x.flip(0)[3:4], x.transpose(-1, -2).contiguous().transpose(-1, -2)[2:3]):
        assert bits(part.sum(dims)) == bits(x.sum(dims)[2:3])


@pytest.mark.parametrize("name", ["softmax", "log_softmax"])
def test_hidden_columns_at_the_end_change_no_row(name: str) -> None:
    x = flambeau.from_numpy(numbers(12, 37))
    function = getattr(F, name)
    alone = function(x, -1)
    for hidden in (1, 11, 30):
        among = function(F.pad(x, (0, hidden), value=-float("inf")), -1)[:, :37]
        assert bits(among) == bits(alone)
    assert bits(function(x[3:4], -1)) == bits(alone[3:4])


def test_keys_that_nobody_sees_change_no_attention() -> None:
    flambeau.manual_seed(0)
    q, k, v = (flambeau.randn(3, 2, 45, 8) for _ in range(3))
    wanted = F.scaled_dot_product_attention(q, k, v)
    keys, values = (F.pad(each, (0, 0, 0, 150)) for each in (k, v))
    mask = flambeau.zeros(45, 195).masked_fill(flambeau.arange(195) >= 45, -float("inf"))
    assert bits(F.scaled_dot_product_attention(q, keys, values, attn_mask=mask)) == bits(wanted)
    for at in (0, 17, 44):
        assert bits(F.scaled_dot_product_attention(q[1:2, :, at : at + 1], k[1:2], v[1:2])) == bits(
            wanted[1:2, :, at : at + 1]
        )


def test_rows_are_added_one_after_the_other() -> None:
    values, places = numbers(900, 33), np.arange(900) * 7919 % 41
    found, wanted = np.zeros((41, 33), np.float32), np.zeros((41, 33), np.float32)
    assert add_slices(found, 0, places, values)
    np.add.at(wanted, places, values)
    assert found.tobytes() == wanted.tobytes()


# ----- elementwise ops and layers -------------------------------------------------------------------------------------

ELEMENTWISE: dict[str, Callable[[Any], Any]] = {
    name: getattr(flambeau, name)
    for name in ("exp", "log1p", "tanh", "sigmoid", "sin", "erf", "rsqrt", "expm1", "atan", "lgamma", "digamma")
} | {
    "gelu": F.gelu,
    "silu": F.silu,
    "softplus": F.softplus,
    "mish": F.mish,
    "pow": lambda x: (x.abs() + 0.1) ** 1.3,
    "addcdiv": lambda x: flambeau.addcdiv(x, x, x.abs() + 0.7, value=3.14),
    "in place": lambda x: x.clone().mul_(0.3).tanh_(),
    "in place, apart": lambda x: flambeau.cat([x, x], -1)[..., : x.shape[-1]].tanh_(),
    "with a row": lambda x: flambeau.atan2(x, x[:1].detach() * 0 + 0.7),
    "apart": lambda x: flambeau.cat([x, x], -1)[..., 5:21].tanh(),
}


@pytest.mark.parametrize("name", ELEMENTWISE)
@pytest.mark.parametrize("dtype", [flambeau.float32, flambeau.float64], ids=str)
def test_elements_and_their_gradients_are_the_same_at_every_size(name: str, dtype: Any) -> None:
    x = flambeau.from_numpy(numbers(500, 21)).to(dtype)

    def run(part: Any) -> tuple[bytes, ...]:
        part = part.detach().requires_grad_()
        result = ELEMENTWISE[name](part)
        return bits(result), bits(flambeau.autograd.grad(result.sum(), part)[0])

    whole = run(x)
    for start, end in [(0, 1), (7, 9), (300, 499)]:
        for found, wanted in zip(run(x[start:end]), whole, strict=True):
            size = len(wanted) // 500
            assert found == wanted[start * size : end * size]


@pytest.mark.parametrize("function", [lambda x: x.prod(-1), lambda x: x.cumprod(-1)], ids=["prod", "cumprod"])
def test_zeros_of_other_samples_change_no_gradient(function: Callable[[Any], Any]) -> None:
    x = flambeau.from_numpy(numbers(7, 5))
    x[3, 2] = 0

    def run(part: Any) -> Any:
        part = part.detach().requires_grad_()
        return flambeau.autograd.grad(function(part).sum(), part)[0]

    whole = run(x)
    for at in range(7):
        assert bits(run(x[at : at + 1])) == bits(whole[at : at + 1])
        one = x[at].double()
        for place in range(5):  # the slope along one element, which it is linear in
            step = flambeau.zeros(5, dtype=flambeau.float64)
            step[place] = 1
            slope = (function(one + step) - function(one)).sum()
            assert flambeau.allclose(whole[at, place].double(), slope, 1e-4, 1e-5)


@pytest.mark.parametrize("kind", [nn.LSTM, nn.GRU, nn.RNN], ids=lambda kind: kind.__name__)
@pytest.mark.parametrize("bidirectional", [False, True], ids=["forward", "both ways"])
def test_packed_sequences_are_those_of_the_sample_alone(kind: Any, bidirectional: bool) -> None:
    flambeau.manual_seed(0)
    layer, x = kind(6, 10, 2, batch_first=True, bidirectional=bidirectional), flambeau.randn(4, 9, 6)
    lengths = [9, 7, 7, 2]

    def run(part: Any, lengths: list[int]) -> tuple[Any, Any]:
        part = part.detach().requires_grad_()
        packed = nn.utils.rnn.pack_padded_sequence(part, lengths, batch_first=True)
        result = nn.utils.rnn.pad_packed_sequence(layer(packed)[0], batch_first=True, total_length=9)[0]
        return result, flambeau.autograd.grad(result.sin().sum(), part)[0]

    whole = run(x, lengths)
    for at, length in enumerate(lengths):
        for found, wanted in zip(run(x[at : at + 1], [length]), whole, strict=True):
            assert bits(found) == bits(wanted[at : at + 1])
        alone = layer(x[at : at + 1, :length])[0]
        assert bits(alone) == bits(whole[0][at : at + 1, :length])


CONVOLUTIONS: dict[str, Callable[..., Any]] = {
    "3x3": lambda x, w: F.conv2d(x, w, padding=1),
    "stride": lambda x, w: F.conv2d(x, w, stride=2),
    "dilation": lambda x, w: F.conv2d(x, w, dilation=2),
    "transposed": lambda x, w: F.conv_transpose2d(x, w.transpose(0, 1), stride=2),
    "one row": lambda x, w: F.conv1d(x[:, :, 0], w[:, :, 0], padding=1),
    "by channels": lambda x, w: F.conv2d(x, w[:20, :1], groups=20),
    "channels last": lambda x, w: F.conv2d(x.to(memory_format=flambeau.channels_last), w),
}


@pytest.mark.parametrize("name", CONVOLUTIONS)
@pytest.mark.parametrize("size", [5, 30])
def test_images_are_those_of_the_image_alone(name: str, size: int) -> None:
    flambeau.manual_seed(0)
    x, w = flambeau.randn(8, 20, size, size), flambeau.randn(24, 20, 3, 3).requires_grad_()

    def run(part: Any) -> tuple[Any, Any, Any]:
        part = part.detach().requires_grad_()
        result = CONVOLUTIONS[name](part, w)
        return result, *flambeau.autograd.grad(result.sin().sum(), (part, w))

    *whole, of_weight = run(x)
    for start, end in [(0, 1), (3, 5)]:
        for found, wanted in zip(run(x[start:end]), whole, strict=False):
            assert bits(found) == bits(wanted[start:end])
    halves = [run(part)[2] for part in x.chunk(2)]
    assert bits(halves[0] + halves[1]) == bits(of_weight)
    wanted = flambeau.autograd.grad(CONVOLUTIONS[name](x.double(), w.double()).sin().sum(), w)[0]
    assert flambeau.allclose(of_weight, wanted.float(), 1e-3, 1e-3)
