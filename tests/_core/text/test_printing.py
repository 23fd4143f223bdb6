"""The printed form of tensors, compared character for character with PyTorch's."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import ml_dtypes
import numpy as np
import pytest
import torch as pytorch
import torch._tensor_str as pytorch_printing
import torch.autograd.forward_ad as pytorch_forward_ad
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as numpy_strategies

from flambeau._core.device import CPU, META
from flambeau._core.dtype import float32
from flambeau._core.kind import kind_of
from flambeau._core.text import printing

FLOATS = [pytorch.float16, pytorch.bfloat16, pytorch.float32, pytorch.float64]
COMPLEX = [pytorch.complex64, pytorch.complex128]
INTEGERS = [pytorch.int8, pytorch.int16, pytorch.int32, pytorch.int64]
UNSIGNED = [pytorch.uint8, pytorch.uint16, pytorch.uint32, pytorch.uint64]
ALL_DTYPES = [pytorch.bool, *INTEGERS, *UNSIGNED, *FLOATS, *COMPLEX]

SHAPES = [
    (),
    (1,),
    (7,),
    (40,),
    (1001,),
    (0,),
    (3, 0),
    (0, 2, 1),
    (1, 1),
    (3, 4),
    (7, 30),
    (40, 40),
    (2, 3, 4),
    (8, 2, 90),
    (3, 1, 2, 5),
    (7, 7, 3, 8),
    (2, 1, 2, 3, 2),
    (7, 1, 8, 2, 10),
]

OPTIONS: list[dict[str, Any]] = [
    {},
    {"profile": "short"},
    {"profile": "full", "linewidth": 120},
    {"profile": "bogus"},
    {"precision": 0},
    {"precision": 9, "linewidth": 40},
    {"threshold": 0},
    {"threshold": 10, "edgeitems": 1},
    {"threshold": 50, "edgeitems": 5, "linewidth": 33},
    {"threshold": 5, "edgeitems": 0},
    {"edgeitems": 0},
    {"linewidth": 0},
    {"linewidth": 57.5},
    {"linewidth": 1000},
    {"sci_mode": True},
    {"sci_mode": False},
    {"sci_mode": True, "precision": 2, "linewidth": 61},
]

SPECIAL_VALUES = [math.nan, -math.nan, math.inf, -math.inf, 0.0, -0.0]


@pytest.fixture(autouse=True)
def default_settings() -> Iterator[None]:
    """Leave the process-wide settings of both libraries as they were."""
    before = printing.get_printoptions()
    set_options(profile="default")
    yield
    set_options(profile="default")
    printing.set_printoptions(**before)
    pytorch.set_default_dtype(pytorch.float32)


def set_options(**options: Any) -> None:
    libraries: list[Any] = [pytorch, printing]
    for library in libraries:
        library.set_printoptions(**options)


def as_array(tensor: pytorch.Tensor) -> np.ndarray[Any, Any]:
    tensor = tensor.detach()
    if tensor.dtype is pytorch.bfloat16:
        return tensor.to(pytorch.float32).numpy().astype(ml_dtypes.bfloat16)
    return tensor.numpy()


def as_flambeau_text(tensor: pytorch.Tensor, **extra: Any) -> str:
    return printing.format_array(
        as_array(tensor),
        dtype=str(tensor.dtype),
        default_dtype=str(pytorch.get_default_dtype()),
        requires_grad=tensor.requires_grad,
        grad_fn=None if tensor.grad_fn is None else type(tensor.grad_fn).__name__,
        **extra,
    )


def random_reals(rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray[Any, Any]:
    """Numbers of one of the kinds that print differently: small, large, whole, spread out, constant, with specials."""
    makers: list[Callable[[], Any]] = [
        lambda: rng.standard_normal(shape),
        lambda: rng.standard_normal(shape) * 10.0 ** rng.integers(-12, 12),
        lambda: np.round(rng.standard_normal(shape) * 10.0 ** rng.integers(0, 11)),
        lambda: 10.0 ** rng.uniform(-6, 6, shape),
        lambda: rng.integers(0, 2, shape) * 10.0 ** rng.integers(-6, 12),
        lambda: np.zeros(shape),
    ]
    values = np.asarray(makers[rng.integers(len(makers))]())
    if rng.random() < 0.4:
        values = np.where(rng.random(shape) < rng.random(), rng.choice(SPECIAL_VALUES, shape), values)
    return values


def random_tensor(rng: np.random.Generator, shape: tuple[int, ...], dtype: pytorch.dtype) -> pytorch.Tensor:
    if dtype is pytorch.bool:
        return pytorch.tensor(rng.integers(0, 2, shape)) != 0
    if dtype.is_complex:
        parts = [pytorch.tensor(random_reals(rng, shape)) for _ in range(2)]
        return pytorch.complex(*parts).to(dtype)
    if dtype.is_floating_point:
        return pytorch.tensor(random_reals(rng, shape)).to(dtype)
    limits = pytorch.iinfo(dtype)
    largest = min(limits.max, 10 ** int(rng.integers(1, 19)))
    return pytorch.tensor(rng.integers(0 if limits.min == 0 else -largest, largest, shape)).to(dtype)


@pytest.mark.parametrize("options", OPTIONS, ids=str)
@pytest.mark.parametrize("dtype", ALL_DTYPES, ids=str)
def test_every_dtype_shape_and_option(dtype: pytorch.dtype, options: dict[str, Any]) -> None:
    set_options(**options)
    rng = np.random.default_rng([ALL_DTYPES.index(dtype), OPTIONS.index(options)])
    for shape in SHAPES:
        tensor = random_tensor(rng, shape, dtype)
        assert as_flambeau_text(tensor) == repr(tensor)


@pytest.mark.parametrize(
    "values",
    [
        [1.0, math.nan],
        [1.5, math.nan, -math.inf],
        [1.0, -math.inf],
        SPECIAL_VALUES,
        [math.inf],
        [-0.0],
        [0.0, 1e-5],
        [1e8, 1e8],
        [1e8 + 8, 1e8],
        [1e8, 1.5e5 + 0.5],
        [1.0, 1000.0],
        [1.0, 1001.0],
        [1.5, 1500.0],
        [1.5, 1501.0],
        [1e-4],
        [1.0001e-4],
        [5e-324],
        [1.7e308, 5e-324],
        [2.5, 0.5, -0.5],
        [999999.99999, 0.99999],
        1e-5,
        1.0,
        -1.5,
        math.nan,
        [complex(1, -0.0), complex(-0.0, 0)],
        [complex(math.nan, -math.nan), complex(math.inf, -math.inf), 1.5],
        [1e10 + 1j, -2.5 - 100j, 3],
        1j,
        -1.5 - 1e-9j,
        [2**62, -1],
        True,
        [True, False],
        [[False], [True]],
    ],
    ids=str,
)
@pytest.mark.parametrize("sci_mode", [None, True, False])
@pytest.mark.parametrize("double", [False, True])
def test_chosen_values(values: Any, sci_mode: bool | None, double: bool) -> None:
    set_options(sci_mode=sci_mode)
    tensor = pytorch.tensor(values)
    if double and tensor.dtype.is_floating_point:
        tensor = pytorch.tensor(values, dtype=pytorch.float64)
    assert as_flambeau_text(tensor) == repr(tensor)


def test_the_largest_uint64_is_printed_exactly() -> None:
    tensor = pytorch.tensor([2**64 - 1, 0], dtype=pytorch.uint64)
    assert as_flambeau_text(tensor) == repr(tensor)
    assert str(2**64 - 1) in as_flambeau_text(tensor)


@pytest.mark.parametrize("default_dtype", FLOATS, ids=str)
def test_dtype_is_named_unless_it_is_obvious(default_dtype: pytorch.dtype) -> None:
    pytorch.set_default_dtype(default_dtype)
    for dtype in ALL_DTYPES:
        for shape in [(), (2,), (0,), (0, 3)]:
            tensor = pytorch.zeros(shape, dtype=dtype)
            assert as_flambeau_text(tensor) == repr(tensor)


@pytest.mark.parametrize("linewidth", range(0, 100, 7))
def test_suffixes_break_where_pytorch_breaks_them(linewidth: int) -> None:
    set_options(linewidth=linewidth)
    for length in range(1, 20):
        for dtype in (pytorch.float32, pytorch.float64):
            leaf = pytorch.full((length,), 0.5, dtype=dtype, requires_grad=True)
            for tensor in (leaf, leaf * 2, leaf.sum(), leaf.expand(2, length), leaf[:0]):
                assert as_flambeau_text(tensor) == repr(tensor)


def test_strided_and_expanded_arrays() -> None:
    base = pytorch.arange(4000.0).reshape(40, 100)
    for tensor in (base.T, base[::3, ::7], base[:, :1].expand(40, 60), base.flip(0), base[5], base[:, 3]):
        assert as_flambeau_text(tensor) == repr(tensor)


def test_only_what_is_shown_is_formatted() -> None:
    # A trillion elements that share one number: any pass over all of them would exhaust memory or time.
    tensor = pytorch.full((1, 1), 1.5).expand(10**6, 10**6)
    assert as_flambeau_text(tensor) == repr(tensor)


def test_notation_depends_only_on_what_is_shown() -> None:
    tensor = pytorch.ones(2000)
    tensor[1000] = 1e-10
    assert as_flambeau_text(tensor) == repr(tensor)
    assert "e" not in as_flambeau_text(tensor).removeprefix("tensor(")


@pytest.mark.parametrize("linewidth", [20, 80])
def test_infinite_linewidth_never_breaks_a_row(linewidth: int) -> None:
    text = printing.format_array
    values = np.arange(linewidth)
    printing.set_printoptions(linewidth=math.inf)
    assert "\n" not in text(values, dtype="torch.int64", requires_grad=True)
    printing.set_printoptions(linewidth=linewidth)
    assert "\n" in text(values, dtype="torch.int64", requires_grad=True)


@pytest.mark.parametrize(
    "calls",
    [
        [{"precision": 2}],
        [{"sci_mode": True}, {"precision": 2}],
        [{"sci_mode": True}, {"profile": "short"}],
        [{"profile": "full"}],
        [{"profile": "full"}, {"profile": "default"}],
        [{"profile": "short", "precision": 7, "edgeitems": 4}],
        [{"threshold": 5, "linewidth": 100}, {"profile": "unknown", "precision": 1}],
        [{}],
    ],
    ids=str,
)
def test_options_accumulate_as_in_pytorch(calls: list[dict[str, Any]]) -> None:
    for options in calls:
        set_options(**options)
    assert printing.get_printoptions() == pytorch_printing.get_printoptions()


def test_printoptions_restores_after_an_error() -> None:
    set_options(precision=3, sci_mode=True)
    before = printing.get_printoptions()

    def fail_inside() -> None:
        with printing.printoptions(precision=1, profile="full"):
            assert printing.get_printoptions()["precision"] == 1
            assert printing.get_printoptions()["threshold"] == math.inf
            raise KeyError

    with pytest.raises(KeyError):
        fail_inside()
    assert printing.get_printoptions() == before


PLAIN_KIND = kind_of(float32, CPU)
META_KIND = kind_of(float32, META)
"""Says that no sign is still to be taken: that is all that printing asks of a kind."""


def stand_in(tensor: pytorch.Tensor) -> Any:
    """An object with the attributes of a Flambeau tensor that `tensor_repr` reads."""
    return SimpleNamespace(
        _array=None if tensor.is_meta else as_array(tensor),
        _kind=META_KIND if tensor.is_meta else PLAIN_KIND,
        shape=tensor.shape,
        dtype=tensor.dtype,
        device=tensor.device,
        requires_grad=tensor.requires_grad,
        grad_fn=tensor.grad_fn,
    )


@pytest.mark.parametrize("shape", [(), (0,), (2,), (2, 3)], ids=str)
@pytest.mark.parametrize("dtype", ALL_DTYPES, ids=str)
def test_meta_tensors_show_their_size(shape: tuple[int, ...], dtype: pytorch.dtype) -> None:
    tensor = pytorch.empty(shape, dtype=dtype, device="meta")
    assert printing.tensor_repr(stand_in(tensor)) == repr(tensor)


def test_history_of_meta_and_cpu_tensors() -> None:
    for device in ("meta", "cpu"):
        leaf = pytorch.zeros(2, 3, device=device, requires_grad=True)
        for tensor in (leaf, leaf * 2, leaf.detach(), leaf.to(pytorch.float64).sum()):
            assert printing.tensor_repr(stand_in(tensor)) == repr(tensor)


def test_device_other_than_cpu_is_named() -> None:
    tensor = stand_in(pytorch.ones(2, dtype=pytorch.int32))
    tensor.device = pytorch.device("cuda", 0)
    assert printing.tensor_repr(tensor) == "tensor([1, 1], device='cuda:0', dtype=torch.int32)"


def test_default_dtype_is_passed_on() -> None:
    pytorch.set_default_dtype(pytorch.float64)
    for tensor in (pytorch.ones(2), pytorch.ones(2, dtype=pytorch.float32)):
        assert printing.tensor_repr(stand_in(tensor), default_dtype=pytorch.float64) == repr(tensor)


def test_overwritten_history_is_invalid() -> None:
    base = pytorch.ones(4, requires_grad=True) * 1
    view, _ = base.chunk(2)
    with pytorch.no_grad():
        base.mul_(2)

    class WithoutHistory:
        _array = as_array(view)
        _kind = PLAIN_KIND
        shape, dtype, device, requires_grad = view.shape, view.dtype, view.device, True

        @property
        def grad_fn(self) -> Any:
            return view.grad_fn

    with pytest.raises(RuntimeError):
        _ = view.grad_fn
    assert printing.tensor_repr(WithoutHistory()) == repr(view)


def test_subclasses_are_indented_under_their_name() -> None:
    class Measurement(pytorch.Tensor):
        pass

    for shape in [(2,), (2, 3), (3, 40), (0, 2)]:
        plain = pytorch.full(shape, 0.25, dtype=pytorch.float64)
        expected = repr(plain.as_subclass(Measurement))
        assert printing.tensor_repr(stand_in(plain), prefix="Measurement(") == expected


@pytest.mark.parametrize("contents", ["", "abc", "two\nlines", "x" * 70])
def test_contents_replace_the_values(contents: str) -> None:
    tensors: list[Any] = [
        pytorch.ones(2, requires_grad=True),
        pytorch.ones(2, dtype=pytorch.int64),
        pytorch.empty(0, 3, dtype=pytorch.float64),
        pytorch.empty(2, device="meta", dtype=pytorch.int64),
    ]
    for tensor in tensors:
        assert printing.tensor_repr(stand_in(tensor), contents=contents) == tensor.__repr__(tensor_contents=contents)


@pytest.mark.filterwarnings("ignore:`torch.jit.script` is deprecated:DeprecationWarning")  # from PyTorch's own import
@pytest.mark.parametrize("shape", [(2,), (2, 3), (4, 20)], ids=str)
def test_tangents_of_dual_tensors(shape: tuple[int, ...]) -> None:
    forward_ad: Any = pytorch_forward_ad
    for dtype in (pytorch.float32, pytorch.float64):
        primal, tangent = pytorch.full(shape, 0.5, dtype=dtype), pytorch.full(shape, 1e-7, dtype=dtype)
        with forward_ad.dual_level():
            expected = repr(forward_ad.make_dual(primal, tangent))
        assert printing.tensor_repr(stand_in(primal), tangent=tangent) == expected


def test_inference_tensors_print_like_others() -> None:
    with pytorch.inference_mode():
        tensor = pytorch.full((2, 2), 1.5, dtype=pytorch.float64)
        assert as_flambeau_text(tensor) == repr(tensor)


print_options = st.fixed_dictionaries(
    {
        "precision": st.integers(0, 10),
        "threshold": st.integers(0, 40),
        "edgeitems": st.integers(0, 4),
        "linewidth": st.integers(0, 130),
        "sci_mode": st.sampled_from([None, True, False]),
    }
)
small_arrays = st.sampled_from([np.float16, np.float32, np.float64, np.complex64, np.complex128, np.int64]).flatmap(
    lambda dtype: numpy_strategies.arrays(
        dtype, numpy_strategies.array_shapes(min_dims=0, max_dims=5, min_side=0, max_side=7)
    )
)


@settings(max_examples=300, deadline=None, derandomize=True)
@given(array=small_arrays, options=print_options)
def test_any_array_with_any_options(array: np.ndarray[Any, Any], options: dict[str, Any]) -> None:
    set_options(**options)
    tensor = pytorch.from_numpy(array)
    assert printing.format_array(array, dtype=str(tensor.dtype)) == repr(tensor)
