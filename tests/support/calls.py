"""Random calls of public functions, most of them wrong: as text, so that both modules can run and report them."""

from __future__ import annotations

import random
import warnings
from typing import Any

import torch as pytorch

import flambeau
from tests.support.differential import describe, differences

# Each function with the kinds of its arguments: t tensor, d dimension, s size, n number, i index tensor, l list of
# tensors, b boolean. A name that starts with a dot is a method.
FUNCTIONS: tuple[tuple[str, str], ...] = tuple(
    (name, kinds)
    for kinds, names in {
        "t": "abs neg exp log sqrt sin tanh sigmoid floor sign reciprocal isnan logical_not bitwise_not erf square "
        "relu sum mean prod max min std var median argmax any all norm numel nonzero trace diag t triu flatten clone "
        "cumsum inverse det .item .tolist .contiguous .double .bool .view .T .mT .squeeze .detach .unbind .exp_ "
        ".zero_ .t_",
        "td": "sum mean prod max min amax amin argmax argmin cumsum cumprod softmax log_softmax logsumexp std var any "
        "all sort argsort flip squeeze unsqueeze unbind select topk median mode norm roll count_nonzero chunk split "
        "logcumsumexp diff .size .stride glu tensor_split",
        "tdb": "sum mean max min argmax std var sort",
        "tt": "add sub mul div pow maximum minimum atan2 eq lt ge logical_and bitwise_and remainder fmod floor_divide "
        "matmul mm mv dot outer bmm where masked_select dist equal allclose isclose cross kron .add_ .mul_ .copy_ "
        ".div_ .expand_as .view_as .type_as .sub_ .pow_ .bitwise_or_ inner vdot hypot copysign heaviside "
        "nn.functional.linear nn.functional.mse_loss nn.functional.l1_loss nn.functional.cross_entropy "
        "nn.functional.binary_cross_entropy nn.functional.nll_loss",
        "tn": "add sub mul div pow remainder floor_divide eq clamp .fill_ .add_ .mul_ .pow_ full_like tril diagonal "
        "bitwise_left_shift nn.functional.leaky_relu nn.functional.dropout .repeat .index_fill_",
        "tnn": "clamp addcmul .clamp_ nan_to_num diagonal",
        "ts": "reshape .view .expand permute .repeat tile broadcast_to .new_zeros roll flip moveaxis",
        "tss": ".as_strided",
        "tssn": "as_strided",
        "tdd": "transpose select flatten swapaxes movedim diagonal topk roll narrow .unfold split chunk",
        "tddd": "narrow .unfold diagonal cumsum",
        "tdi": "index_select gather take_along_dim index_fill repeat_interleave",
        "tdit": "index_add index_copy scatter scatter_add .index_add_ .scatter_",
        "ti": "take nn.functional.one_hot bincount searchsorted .__getitem__ repeat_interleave",
        "tit": ".__setitem__ .put_ .index_put_ index_put",
        "ttt": "where addmm addcmul addcdiv lerp baddbmm addmv addbmm clamp nn.functional.linear",
        "l": "cat stack hstack vstack block_diag broadcast_tensors meshgrid cartesian_prod",
        "ld": "cat stack",
        "s": "zeros ones rand randn full arange eye randperm tensor as_tensor",
        "nn": "arange full linspace randint eye",
        "nnn": "arange linspace logspace randint",
    }.items()
    for name in names.split()
)

_FLOATS = (
    *("T.ones(2, 3)", "T.arange(6.0).reshape(2, 3)", "T.arange(6.0).reshape(3, 2).t()", "T.tensor(1.5)", "T.ones(3)"),
    *("T.tensor([float('nan'), float('inf'), -float('inf')])", "T.zeros(0, 3)", "T.zeros(3, 0)", "T.zeros(0)"),
    *("T.ones(1, 3).expand(2, 3)", "T.ones(2, 2, 3)", "T.ones(3, 3)", "T.full((2, 3), -0.5)", "T.ones(2, 1)"),
)
_POOLS: dict[str, tuple[str, ...]] = {
    "t": (
        *_FLOATS,
        *_FLOATS,
        *("T.arange(6).reshape(2, 3)", "T.tensor([True, False, True])", "T.tensor([[1 + 2j, 3j, 0]])", "T.arange(3)"),
        *(
            "T.ones(2, 3, dtype=T.float64)",
            "T.ones(2, 3, dtype=T.int32)",
            "T.zeros(2, 3, dtype=T.uint8)",
            "T.tensor(2)",
        ),
        *("None", "[1.0, 2.0]", "3.5", "'x'"),
    ),
    "d": (
        "0",
        "1",
        "-1",
        "-2",
        "0",
        "1",
        "2",
        "-3",
        "5",
        "-7",
        "None",
        "1.5",
        "'x'",
        "True",
        "(0, 1)",
        "(0, 0)",
        "[0, -1]",
    ),
    "s": (
        *(
            "(2, 3)",
            "(3, 2)",
            "(-1,)",
            "(6,)",
            "(3, -2)",
            "(-1, -1)",
            "(0,)",
            "6",
            "-1",
            "(2, 2.5)",
            "'a'",
            "None",
            "()",
        ),
        *("(2, 3, 1)", "(1, 2, 3)", "(0, 1)", "(1, 0)", "(1, 1)", "(0, 0)", "[2, -1]", "(4, 5)", "(2**62, 2**62)"),
    ),
    "n": (
        *(
            "0",
            "1",
            "-1",
            "2",
            "3",
            "2.5",
            "-0.5",
            "float('nan')",
            "float('inf')",
            "2**63",
            "2**70",
            "1j",
            "True",
            "None",
        ),
        *("'3'", "[1]", "T.tensor(2)", "T.ones(2)"),
    ),
    "i": (
        *("T.tensor([0, 1])", "T.tensor([5])", "T.tensor([-1])", "T.tensor([0.5])", "T.tensor([], dtype=T.int64)", "0"),
        *(
            "T.tensor([[0]])",
            "T.tensor(0)",
            "T.tensor([True, False])",
            "T.tensor([[0, 1, 1]])",
            "7",
            "None",
            "'a'",
            "[0, 1]",
        ),
        *(
            "slice(0, 1)",
            "slice(None, None, -1)",
            "...",
            "(0, 0)",
            "(0, 0, 0, 0)",
            "T.tensor([2, 2], dtype=T.int32)",
            "1.5",
        ),
        *("(T.tensor([0]),)", "(T.tensor([9]), T.tensor([0]))", "T.tensor([[True, False, True], [False, True, True]])"),
    ),
    "l": (
        *(
            "[]",
            "[T.ones(2, 3)]",
            "[T.ones(2, 3), T.ones(3)]",
            "[T.ones(2, 3), T.ones(2, 3)]",
            "(T.ones(2), T.arange(3))",
        ),
        *(
            "[1]",
            "None",
            "T.ones(2, 3)",
            "[T.ones(2), None]",
            "[T.tensor(1), T.tensor(2.5)]",
            "[T.zeros(0), T.ones(2, 3)]",
        ),
        *("[T.arange(2), T.tensor([True])]", "[T.ones(2, 3), T.ones(3, 3)]", "'ab'"),
    ),
    "b": ("True", "False", "True", "False", "None", "2", "'x'"),
}


# PyTorch looks at the types of all arguments before at anything else, at dtypes rather late: a call with several faults
# may be refused for another one here.
_FIRST_LOOK = ("TypeError", "AttributeError", "OverflowError", "ValueError")
_REFUSALS = ("TypeError", "RuntimeError", "IndexError", "ValueError", "NotImplementedError")


def write_call(seed: int) -> tuple[str, str]:
    """The function and the call of this seed, always the same."""
    choose = random.Random(seed)
    name, kinds = choose.choice(FUNCTIONS)
    arguments = [choose.choice(_POOLS[kind]) for kind in kinds]
    chance = choose.random()
    if chance < 0.06 and len(arguments) > 1:
        arguments.pop()
    elif chance < 0.12:
        arguments.append(choose.choice(_POOLS[choose.choice("tdn")]))
    elif chance < 0.18:
        arguments[choose.randrange(len(arguments))] = choose.choice(_POOLS[choose.choice("tdsnil")])
    if name.startswith("."):
        first, *arguments = arguments
        return name, f"({first}){name}" + ("" if name in (".T", ".mT") else f"({', '.join(arguments)})")
    return name, f"T.{name}({', '.join(arguments)})"


def outcome_of(call: str, module: Any) -> tuple[Any, str, str]:
    """The description of a call's result, or None, the type of the error and what it said."""
    module.manual_seed(0)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return describe(eval(call, {"T": module})), "", ""
    except Exception as error:
        return None, type(error).__name__, str(error)


def disagreement(call: str) -> str | None:
    """How Flambeau's answer to a call differs from PyTorch's; None if it does not."""
    expected, error, said = outcome_of(call, pytorch)
    actual, our_error, we_said = outcome_of(call, flambeau)
    if not error:
        if our_error:
            return f"{str(expected)[:150]} in PyTorch, {our_error} in Flambeau ({we_said[:150]})"
        return next(differences(expected, actual), None)
    if our_error:
        if error == our_error or (
            our_error in _REFUSALS and (error in _FIRST_LOOK or our_error == "NotImplementedError")
        ):
            return None
        return f"{error} in PyTorch ({said[:150]}), {our_error} in Flambeau ({we_said[:150]})"
    no_kernel = error == "NotImplementedError" or "not implemented for" in said
    if no_kernel or error == "OverflowError":  # integers beyond 64 bits are numbers like any other here
        return None
    return f"{error} in PyTorch ({said[:150]}), {str(actual)[:150]} in Flambeau"
