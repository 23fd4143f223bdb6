"""Arguments that PyTorch refuses, which would be easy to accept in silence: the same exception, and its words."""

from __future__ import annotations

import functools
import io
from collections.abc import Callable
from typing import Any

import pytest

from ..support.differential import differential, outcome

Refused = dict[str, tuple[Callable[[Any], Any], str]]


def _parameter(T: Any) -> Any:
    parameter = T.nn.Parameter(T.ones(2, 2))
    parameter.grad = T.ones(2, 2)
    return parameter


def _data(T: Any) -> Any:
    import torch.utils.data  # noqa: F401  (an attribute of PyTorch from now on)

    return T.utils.data


def _by_its_transpose(x: Any) -> Any:
    return x.add_(x.t())


REFUSED: Refused = {
    "a text where a number is unused": (
        lambda T: T.poisson_nll_loss(T.ones(2), T.ones(2), True, False, "a", 1),
        "must be float, not str",
    ),
    "a number for a flag of linalg": (lambda T: T.linalg.ldl_factor(T.eye(2), hermitian=1), "must be bool, not int"),
    "a number for a flag of a function in Python": (lambda T: T.unique(T.ones(3), sorted=1), "must be bool, not int"),
    "a number for a flag of a factory": (lambda T: T.zeros(2, requires_grad=1), "must be bool, not int"),
    "a text for a flag of backward": (
        lambda T: T.ones((), requires_grad=True).backward(retain_graph="a"),
        "cannot be interpreted as an integer",
    ),
    "a kernel that is absent, of a number": (lambda T: T.cudnn_convolution_relu(1), "must be Tensor, not int"),
    "an operator of a text": (lambda T: T.ops.aten.slice(T.ones(3), 0, "a"), "aten::slice() Expected a value of"),
    "a complex number for a real one": (
        lambda T: T.histc(T.ones(3), 3, min=1j),
        "value cannot be converted to type double without overflow",
    ),
    "sizes beyond 64 bits": (lambda T: T.nn.Linear(2**63, 2), "Overflow when unpacking long long"),
    "a tensor for a size": (lambda T: T.nn.Linear(T.ones(2, 3), 2), "Tensor"),
    "a size that is no number": (lambda T: T.UntypedStorage("a"), "tried to construct a storage from a sequence (str)"),
    "a number of parts beyond 64 bits": (lambda T: T.ones(3).chunk(2**63), "Overflow when unpacking long long"),
    "a dimension below 64 bits": (lambda T: T.ones(3).chunk(1, -(2**63) - 1), "Overflow when unpacking long long"),
    "a power beyond 64 bits": (lambda T: T.linalg.matrix_power(T.eye(2), 2**63), "Overflow when unpacking long long"),
    "corners for a mode without": (
        lambda T: T.nn.functional.interpolate(T.ones(1, 1, 4), 2, align_corners=3),
        "align_corners option can only be set",
    ),
    "a number for corners": (
        lambda T: T.nn.functional.interpolate(T.ones(1, 1, 4), 2, mode="linear", align_corners=3),
        "align_corners",
    ),
    "a list for a mode": (
        lambda T: T.nn.functional.interpolate(T.ones(1, 1, 4), 2, mode=[]),
        "Only 3D, 4D and 5D input Tensors supported",
    ),
    "a list for a mode of sampling": (
        lambda T: T.nn.functional.grid_sample(T.ones(1, 1, 2, 2), T.ones(1, 1, 1, 2), mode=[]),
        "expected mode to be",
    ),
    "a complex probability": (lambda T: T.nn.functional.dropout(T.ones(2), 1j), ""),
    "no number for a probability": (lambda T: T.nn.functional.dropout(T.ones(2), float("nan")), "between 0 and 1"),
    "a number for a type": (lambda T: T.ones(2).type(3), "dtype must be a type, str, or dtype object"),
    "a number for a flag of a parameter": (lambda T: T.nn.Parameter(T.ones(2), 1), "must be bool, not int"),
    "a number for a flag of a scalar": (lambda T: T.scalar_tensor(1, requires_grad=1), "must be bool, not int"),
    "a number for a layout": (lambda T: T.normal(0.0, 1.0, (2,), layout=3), "layout"),
    "a masked sum of no dimension": (lambda T: T.masked.sum(T.ones(3), 2**63), "Dimension out of range"),
    "a masked product of no dimension": (lambda T: T.masked.prod(T.ones(3), -7), "Dimension out of range"),
    "a number for a flag of a masked sum": (lambda T: T.masked.logsumexp(T.ones(3), 0, keepdim=1), "must be bool"),
    "two indices for one element": (
        lambda T: T.zeros(()).index_add(0, T.tensor([0, 0]), T.ones(())),
        "Dimension specified as 0 but tensor has no dimensions",
    ),
    "a text for the dimensions of a nuclear norm": (lambda T: T.norm(T.ones(2, 2), "nuc", "a"), "linalg_matrix_norm()"),
    "a text for a gradient": (
        lambda T: T.ones(3).backward("a"),
        "gradients can be either Tensors or None, but got str",
    ),
    "no gradient for a tensor": (
        lambda T: T.ones((), requires_grad=True).backward(()),
        "got 1 tensors and 0 gradients",
    ),
    "a flag of two bytes": (lambda T: T.ones((), requires_grad=True).backward(retain_graph=256), ""),
    "no flag": (
        lambda T: T.ones((), requires_grad=True).backward(create_graph=None),
        "cannot be interpreted as an integer",
    ),
    "the gradient of a text": (lambda T: T.autograd.backward("a"), "Expected output to be a torch.Tensor"),
    "long numbers of rows": (
        lambda T: T.linalg.lu_solve(T.eye(2), T.tensor([1, 2]), T.ones(2, 1)),
        "pivots should be a Tensor of scalar type torch.int32",
    ),
    "rows for one of three matrices": (
        lambda T: T.linalg.lu_solve(T.eye(2).expand(3, 2, 2), T.tensor([1, 2], dtype=T.int32), T.ones(3, 2, 1)),
        "Expected LU.shape[:-1] and pivots.shape to be the same",
    ),
    "a number for a plateau's mode": (
        lambda T: T.optim.lr_scheduler.ReduceLROnPlateau(T.optim.SGD([T.ones(2)], 1.0), 3),
        "str",
    ),
    "eye of a float": (lambda T: T.eye(2.5), "must be int, not float"),
    "eye of a bool": (lambda T: T.eye(True), "must be int, not bool"),
    "eye of a string": (lambda T: T.eye("a"), "must be int, not str"),
    "randperm of a float": (lambda T: T.randperm(2.5), "must be int, not float"),
    "full with a number for the size": (lambda T: T.full(2, 3), "must be tuple of ints, not int"),
    "new_full with a number for the size": (lambda T: T.ones(1).new_full(2, 3), "must be tuple of ints, not int"),
    "randint with a number for the size": (lambda T: T.randint(5, 2), "must be tuple of ints, not int"),
    "ones of a bool": (lambda T: T.ones(True), "must be tuple of ints, not bool"),
    "ones with a format": (lambda T: T.ones(2, memory_format=T.contiguous_format), "memory_format"),
    "a bool among sizes": (lambda T: T.ones(2, 2).view(True, 4), "bool"),
    "repeat of a bool": (lambda T: T.ones(2, 2).repeat(True), "bool"),
    "flip of a bool": (lambda T: T.ones(2, 2).flip(True), "bool"),
    "the nuclear norm in three dimensions": (lambda T: T.ones(2, 2, 2).norm("nuc"), "dim must be a 2-tuple"),
    "a norm of no known name": (lambda T: T.ones(2, 2).norm("foo"), "Order foo not supported"),
    "a device of no known type": (lambda T: T.nn.Module().to("foo"), "device type at start of device string: foo"),
    "a norm that is a word": (lambda T: T.nn.utils.clip_grad_norm_([_parameter(T)], 1.0, "a"), "could not convert"),
    "a largest norm that is a word": (lambda T: T.nn.utils.clip_grad_norm_([_parameter(T)], "a"), "could not convert"),
    "one decay rate of two": (lambda T: T.optim.Adam([_parameter(T)], betas=(0.9,)), "out of range"),
    "no tuple of decay rates": (lambda T: T.optim.AdamW([_parameter(T)], betas=0.9), "not subscriptable"),
    "a timeout without workers": (lambda T: list(_data(T).DataLoader([1], timeout=3)), "timeout == 0"),
    "a bool among the dimensions of a variance": (lambda T: T.ones(3).var(True, False), "bool"),
    "a deviation by a bool and a correction": (lambda T: T.std(T.ones(3), True, correction=1), "bool"),
    "a stride beyond 32 bits": (
        lambda T: T.nn.functional.max_pool2d(T.ones(1, 1, 4, 4), 2, stride=2**31),
        "value cannot be converted to type int without overflow",
    ),
    "a stride of means beyond 32 bits": (
        lambda T: T.nn.functional.avg_pool3d(T.ones(1, 1, 4, 4, 4), 2, stride=(1, 1, 10**15)),
        "value cannot be converted to type int without overflow",
    ),
    "a slice of memory written twice, without a warning before": (
        lambda T: T.ones(1, 3).expand(3, 3).index_reduce_(0, T.tensor([0, 1]), T.ones(2, 3), "prod"),
        "more than one element of the written-to tensor refers to a single memory location",
    ),
    "a matrix changed by its own transpose": (
        lambda T: _by_its_transpose(T.eye(3)),
        "some elements of the input tensor and the written-to tensor refer to a single memory location",
    ),
    "a number where bytes choose": (
        lambda T: T.ones(3).__setitem__(T.tensor([1, 0, 1], dtype=T.uint8), 5),
        "masked_fill_ only supports boolean masks, but got mask with dtype unsigned char",
    ),
    "hypot with a number": (lambda T: T.hypot(T.ones(2), 2), "must be Tensor, not int"),
    "hypot_ with a number": (lambda T: T.ones(2).hypot_(2), "must be Tensor, not int"),
    "addcmul of bools": (lambda T: T.addcmul(*[T.ones(2, dtype=T.bool)] * 3), "not implemented for 'Bool'"),
    "addcmul_ of bools": (
        lambda T: T.ones(2, dtype=T.bool).addcmul_(*[T.ones(2, dtype=T.bool)] * 2),
        "not implemented for 'Bool'",
    ),
    "addcmul by a word": (lambda T: T.addcmul(*[T.ones(2)] * 3, value="a"), "must be Number, not str"),
    "addcmul by a complex number": (lambda T: T.addcmul(*[T.ones(2)] * 3, value=1j), "without overflow"),
    "threshold of bools": (
        lambda T: T.nn.functional.threshold(T.ones(2, dtype=T.bool), 0, 1),
        "\"threshold_cpu\" not implemented for 'Bool'",
    ),
    "kl_div with whole numbers as target": (
        lambda T: T.nn.functional.kl_div(T.ones(2), T.ones(2, dtype=T.int64), reduction="sum"),
        "Integral inputs not supported",
    ),
    "kl_div of bools": (
        lambda T: T.nn.functional.kl_div(T.ones(2, dtype=T.bool), T.ones(2), reduction="sum"),
        "Integral inputs not supported",
    ),
    "a file of text": (lambda T: T.load(io.StringIO("abc")), "Expected bytes, got str"),
    "relu6 of bools": (lambda T: T.nn.functional.relu6(T.ones(2, dtype=T.bool)), "Bool inputs not supported"),
    "relu6 of complex numbers": (
        lambda T: T.nn.functional.relu6(T.ones(2, dtype=T.complex64)),
        "not supported for complex types",
    ),
    "hardtanh of complex numbers": (
        lambda T: T.nn.functional.hardtanh(T.ones(2, dtype=T.complex64)),
        "not supported for complex types",
    ),
    "hardtanh of unsigned numbers": (
        lambda T: T.nn.functional.hardtanh(T.ones(2, dtype=T.uint8)),
        "unsigned type with negative limits",
    ),
    "pow of two numbers": (lambda T: T.pow(2, 3), "invalid combination of arguments"),
    "an optional tensor that is a number": (
        lambda T: T.nn.functional.layer_norm(T.ones(2, 2), (2,), 1),
        "must be Tensor, not int",
    ),
    "a name twice": (lambda T: T.softmax(T.ones(2), dim=0, axis=0), "argument"),
}


@pytest.mark.parametrize("name", REFUSED)
@differential
def test_what_is_refused(T: Any, name: str) -> Any:
    action, words = REFUSED[name]
    return outcome(lambda: action(T), words)


@pytest.mark.parametrize(
    "function", ["sum", "mean", "prod", "all", "any", "amax", "amin", "argmax", "cumsum", "logsumexp"]
)
@pytest.mark.parametrize("dim", [True, 1.0, "0"])
@differential
def test_dimensions_are_ints(T: Any, function: str, dim: Any) -> Any:
    return outcome(lambda: getattr(T.ones(2, 2), function)(dim=dim))


@pytest.mark.parametrize(
    "loss", ["mse_loss", "huber_loss", "smooth_l1_loss", "l1_loss", "binary_cross_entropy_with_logits"]
)
@pytest.mark.parametrize("dtype", ["bool", "uint8", "int64", "float64", "complex64"])
@pytest.mark.parametrize("reduction", ["none", "mean"])
@differential
def test_dtypes_of_losses(T: Any, loss: str, dtype: str, reduction: str) -> Any:
    floats, others = T.tensor([0.25, 1.0]), T.tensor([0, 1]).to(getattr(T, dtype))
    function = getattr(T.nn.functional, loss)
    pairs = [(others, others), (others, floats), (floats, others)]

    def loss_of(pair: tuple[Any, Any]) -> Any:
        result = function(*pair, reduction=reduction)
        return result.dtype, result.to(T.float32)  # where dtypes mix, PyTorch computes parts of it in the lesser one

    return [outcome(functools.partial(loss_of, pair)) for pair in pairs]


@pytest.mark.parametrize("optimizer", ["Adam", "AdamW", "Adamax", "NAdam", "RAdam", "SparseAdam"])
@pytest.mark.parametrize("betas", [(0.9,), (), 0.9, (0.9, "a"), (0.9, 1.0)], ids=str)
@differential
def test_decay_rates(T: Any, optimizer: str, betas: Any) -> Any:
    return outcome(lambda: getattr(T.optim, optimizer)([_parameter(T)], betas=betas))[:2]


@pytest.mark.parametrize("name", ["ones", "zeros", "empty", "full", "rand", "randn"])
@differential
def test_factories_take_no_names(T: Any, name: str) -> Any:
    arguments = ((2,), 3) if name == "full" else (2,)
    return outcome(lambda: getattr(T, name)(*arguments, names=("N",)), "names")


@differential
def test_what_is_not_refused(T: Any) -> Any:
    """What the other operand may know; what PyTorch looks at less closely; numbers beyond every factorial."""

    class Operand:
        def __matmul__(self, other: Any) -> str:
            return "left"

        def __rmatmul__(self, other: Any) -> str:
            return "right"

    x = T.ones(2, 2)
    return (
        x @ Operand(),
        Operand() @ x,
        outcome(lambda: x @ 3, "unsupported operand type"),
        T.Tensor.__rmatmul__(x, 3) is NotImplemented,
        T.zeros(1, 1).expand(2, True),
        T.empty((2, True)).shape,
        T.polygamma(1000, T.tensor([0.5, 1.0, 3.0], dtype=T.float64)),
        T.tensor([1.0], device=b"cpu"),
        outcome(lambda: T.tensor([1.0], device=b"a"), "device type at start of device string: a"),
        T.nn.functional.max_unpool1d(T.ones(1, 1, 1), T.zeros(1, 1, 1, dtype=T.int64), 1.5, 2, 0, (1, 1, 2)),
    )


@differential
def test_truth_values_are_not_shifted(T: Any) -> Any:
    truth, numbers = T.tensor([True, False]), T.tensor([1, 2])
    shifts = T.bitwise_left_shift, T.bitwise_right_shift
    return [(outcome(lambda f=f: f(truth, truth)), f(truth, numbers), f(truth, 1), f(numbers, truth)) for f in shifts]


@differential
def test_named_results_are_made_of_sequences(T: Any) -> Any:
    kind = T.return_types.max
    made = kind((1, 2))
    return (
        made.values, made.indices, kind([1, 2]), kind(each for each in (3, 4)), type(T.ones(2).max(0))(made),
        [outcome(lambda wrong=wrong: kind(wrong)) for wrong in ((1,), (1, 2, 3), 3, None)],
    )  # fmt: skip
