"""Further names of functions, `arccos` for `acos`: to users functions of their own, as in PyTorch.

And what a `__torch_function__` is shown of a call: the function under the name that was called, and the arguments as
they were given.
"""

from __future__ import annotations

import pickle
from typing import Any

import pytest

from flambeau._dispatch.public.registry import FUNCTIONS, METHODS, load_all, resolved
from tests.support.differential import differential, outcome

CALLS = {
    "(x)": "absolute arccos arccosh arcsin arcsinh arctan arctanh fix negative special.digamma special.entr "
    "special.erf special.erfc special.erfcx special.erfinv special.exp2 special.expit special.expm1 special.gammaln "
    "special.i0 special.i0e special.i1 special.i1e special.log1p special.log_ndtr special.logit special.ndtri "
    "special.psi special.sinc trapz",
    "(x, x)": "arctan2 divide greater greater_equal less less_equal linalg.matmul multiply not_equal "
    "special.gammainc special.gammaincc special.xlogy subtract",
    "([x, x])": "concat concatenate row_stack",
    "(x, 0.2, 0.4)": "clip",
    "(x[0], x[1])": "ger",
    "(x, 0, 1)": "moveaxis",
    "(x, 2)": "linalg.matrix_power",
    "(x + 9, 2)": "special.multigammaln",
    "(2, x)": "special.polygamma",
    "(x, 0)": "special.log_softmax special.logsumexp special.softmax",
}
"""The aliases that PyTorch has too, by arguments that they take."""
SPARSE = {"dsmm": "spmm", "saddmm": "sspaddmm"}
ONLY_HERE = ["special.exp", "special.floor", "special.square"]
FUNCTION_CALLS = [f"T.{name}{given}" for given, names in CALLS.items() for name in names.split()]
TWO_OPERANDS = ["arctan2", "divide", "greater", "greater_equal", "less", "less_equal", "multiply", "not_equal"]
TWO_OPERANDS += ["subtract"]
ONE_OPERAND = ["absolute", "arccos", "arccosh", "arcsin", "arcsinh", "arctan", "arctanh", "fix", "negative"]
METHOD_NAMES = [*ONE_OPERAND, *TWO_OPERANDS, "clip", "ger", "moveaxis"]
CHANGING_NAMES = [f"{name}_" for name in METHOD_NAMES if name not in ("ger", "moveaxis")]


def test_the_table_is_complete() -> None:
    load_all()
    functions = [f"{space}.{name}".lstrip(".") for space, names in FUNCTIONS.items() for name in names]
    found = {name for name in functions if hasattr(resolved(_entry(name)), "stands_for")}
    listed = {name for names in CALLS.values() for name in names.split()}
    assert {name for name in found if not name.endswith("_")} == {*listed, *SPARSE, *ONLY_HERE}
    methods = {name for name in METHODS if hasattr(resolved(METHODS[name]), "stands_for")}
    assert methods == {*METHOD_NAMES, *CHANGING_NAMES, "saddmm"}


def _entry(full_name: str) -> Any:
    space, _, name = full_name.rpartition(".")
    return FUNCTIONS[space][name]


def watched(T: Any, log: list[Any]) -> Any:
    class Watch(T.overrides.TorchFunctionMode):  # type: ignore[misc]
        def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            log.append((func.__name__, [_shown(each) for each in args], kwargs or {}))
            return func(*args, **(kwargs or {}))

    return Watch()


def _shown(value: Any) -> Any:
    return value if isinstance(value, (int, float, str, tuple)) else type(value).__name__


def a_matrix(T: Any) -> Any:
    return T.tensor([[0.1, 0.3], [0.2, 0.7]])


@pytest.mark.parametrize("call", FUNCTION_CALLS)
@differential
def test_an_alias_is_a_function_of_its_own(T: Any, call: str) -> Any:
    x, log = a_matrix(T), []
    arguments = eval(call[call.index("(") :].replace(")", ",)"), {"x": x})
    function = eval(call[: call.index("(")], {"T": T})
    with watched(T, log):
        result = function(*arguments)
    refused = outcome(lambda: function("wrong"), f"{function.__name__}()") if len(arguments) == 1 else None
    return function.__name__, log, result, None if isinstance(arguments[0], list) else refused


@pytest.mark.parametrize("name", [*METHOD_NAMES, *CHANGING_NAMES])
@differential
def test_methods_too(T: Any, name: str) -> Any:
    x, log = a_matrix(T), []
    further: dict[str, Any] = {"clip": (0.2, 0.4), "ger": (x[0],), "moveaxis": (0, 1)}
    further |= dict.fromkeys(TWO_OPERANDS, (x,))
    tensor = x[1] if name == "ger" else x.clone() + (1 if "cosh" in name else 0)
    arguments = further.get(name.rstrip("_"), ())
    with watched(T, log):
        result = getattr(tensor, name)(*arguments)
    return getattr(T.Tensor, name).__name__, log, result


@pytest.mark.parametrize("name", ["arccos", "multiply", "special.expit", "linalg.inv", "linalg.matmul", "concat"])
@differential
def test_functions_are_found_again(T: Any, name: str) -> Any:
    space, _, last = name.rpartition(".")
    function = getattr(getattr(T, space) if space else T, last)
    return pickle.loads(pickle.dumps(function)) is function


SHOWN = """
T.linalg.inv(x)|T.sum(x)|T.sum(x, 1)|T.sum(x, dim=1)|T.cat([x, x])|T.cat([x, x], dim=1)|T.clamp(x, 0, 1)
T.clamp(x, min=0)|x.softmax(dim=1)|x.topk(2)|x.std()|T.matmul(x, x)|x.argmax()|T.linalg.norm(x)|T.linalg.svd(x)
T.where(x > 0, x, x)|T.var(x, dim=0, unbiased=False)|x.view(4)|x.view(1, 4)|x.permute(1, 0)|T.zeros_like(x)
F.layer_norm(x, (2,))|F.relu(x)|F.linear(x, x)|F.dropout(x, 0.0)|T.fft.fft(x)|T.add(x, 1, alpha=2)|x.sort()
x.to(T.float64)|F.gelu(x)|x.flatten()|x.chunk(2)|x.cumsum(0)|x.logsumexp(0)|x.mean((0, 1), keepdim=True)
T.special.logsumexp(x, dim=0)|F.scaled_dot_product_attention(x, x, x)|T.clip(x, max=1)|x.clip(0.1)
"""


@pytest.mark.parametrize("call", SHOWN.strip().replace("\n", "|").split("|"))
@differential
def test_overrides_see_the_arguments_as_they_were_given(T: Any, call: str) -> Any:
    log: list[Any] = []
    with watched(T, log):
        eval(call, {"T": T, "F": T.nn.functional, "x": a_matrix(T)})
    return log


@differential
def test_an_implementation_need_not_have_all_parameters(T: Any) -> Any:
    implementations = {
        T.mean: lambda input: "mean",
        T.cat: lambda tensors, dim=0: dim,
        T.linalg.inv: lambda A: "inverse",
    }

    class Scalar:
        @classmethod
        def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            return implementations[func](*args, **(kwargs or {}))

    return T.mean(Scalar()), T.cat([Scalar()]), T.cat([Scalar()], dim=1), T.linalg.inv(Scalar())


@differential
def test_sparse_tensors_know_aliases(T: Any) -> Any:
    sparse = T.eye(2).to_sparse()
    return T.multiply(sparse, sparse).to_dense(), sparse.negative().to_dense(), T.linalg.matmul(sparse, T.ones(2, 2))
