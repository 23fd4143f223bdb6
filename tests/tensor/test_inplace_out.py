"""In-place forms and `out=`: identity, versions, resizing, dtypes, aliasing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.support.differential import differential, outcome, supported, warned

UNARY = [
    "abs", "neg", "exp", "log", "sqrt", "sin", "cos", "tanh", "sigmoid", "relu", "floor", "ceil", "round",
    "trunc", "sign", "square", "reciprocal", "rsqrt", "erf", "log1p", "expm1", "atan", "frac", "exp2", "log2",
    "sinh",
]  # fmt: skip
BINARY = ["add", "sub", "mul", "div", "pow", "atan2", "fmod", "remainder", "floor_divide", "hypot", "copysign"]
COMPARISONS = ["eq", "ne", "lt", "le", "gt", "ge"]


@differential
@pytest.mark.parametrize("name", UNARY)
def test_unary_in_place(T: Any, name: str) -> Any:
    tensor = T.tensor([0.5, 1.5, 2.0])
    view = tensor[1:]
    pointer = tensor.data_ptr()
    result = getattr(tensor, name + "_")()
    return result is tensor, tensor, view, tensor.data_ptr() == pointer, tensor._version


@differential
@pytest.mark.parametrize("name", [name for name in UNARY if name != "relu"])  # relu has no out=
def test_unary_out(T: Any, name: str) -> Any:
    source = T.tensor([0.5, 1.5, 2.0])
    out = T.empty(3)
    result = getattr(T, name)(source, out=out)
    # Functions that map integers to integers take no other dtype than their own. The others compute in float32: what
    # they store in float64 is compared as such.
    double = outcome(lambda: getattr(T, name)(source, out=T.empty(3, dtype=T.float64)).float())
    return result is out, out, out._version, double, getattr(T, name)(source, out=source) is source, source


@differential
@pytest.mark.parametrize("name", BINARY + COMPARISONS)
def test_binary_in_place(T: Any, name: str) -> Any:
    method = name + "_"
    tensors = [T.tensor([4.0, 9.0, 2.5]) for _ in range(3)]
    other = T.tensor([2.0, 3.0, 2.5])
    same = getattr(tensors[0], method)(other) is tensors[0]
    observed = {"same": same, "tensor": tensors[0], "version": tensors[0]._version}
    if name not in ("atan2", "hypot"):
        getattr(tensors[1], method)(2)
        observed["number"] = tensors[1]
    getattr(tensors[2][::2], method)(T.tensor([2.0, 2.0]))
    return observed | {"part": tensors[2], "part version": tensors[2]._version}


@differential
@pytest.mark.parametrize("name", BINARY + COMPARISONS)
def test_binary_out(T: Any, name: str) -> Any:
    a, b = T.tensor([4.0, 9.0, 2.5]), T.tensor([2.0, 3.0, 2.5])
    out = T.empty(3) if name in BINARY else T.empty(3, dtype=T.bool)
    result = getattr(T, name)(a, b, out=out)
    transposed = T.empty(3, 2).t() if name in BINARY else T.empty(3, 2, dtype=T.bool).t()
    getattr(T, name)(a, T.ones(2, 1) * 2, out=transposed)
    return result is out, out, transposed, transposed.stride()


OPERATORS: dict[str, Callable[[Any, Any], Any]] = {
    "+=": lambda a, b: a.__iadd__(b),
    "-=": lambda a, b: a.__isub__(b),
    "*=": lambda a, b: a.__imul__(b),
    "/=": lambda a, b: a.__itruediv__(b),
    "//=": lambda a, b: a.__ifloordiv__(b),
    "%=": lambda a, b: a.__imod__(b),
    "**=": lambda a, b: a.__ipow__(b),
    "&=": lambda a, b: a.__iand__(b),
    "|=": lambda a, b: a.__ior__(b),
    "^=": lambda a, b: a.__ixor__(b),
    "<<=": lambda a, b: a.__ilshift__(b),
    ">>=": lambda a, b: a.__irshift__(b),
}


@differential
@pytest.mark.parametrize("operator", OPERATORS)
@pytest.mark.parametrize("name", ["int64", "float32"])
def test_augmented_assignment(T: Any, operator: str, name: str) -> Any:
    def run(other: Any) -> Any:
        tensor = T.tensor([12, 5]).to(getattr(T, name))
        result = outcome(lambda: OPERATORS[operator](tensor, other))
        return result, result[1] is tensor

    return run(2), run(T.tensor([2, 3]).to(getattr(T, name)))


@differential
def test_filling_methods(T: Any) -> Any:
    def of(action: Callable[[Any], Any]) -> Any:
        tensor = T.arange(6.0).view(2, 3)
        result = outcome(lambda: action(tensor))
        return tensor, result[0], result[1] is tensor, tensor._version

    return {
        "zero_": of(lambda t: t.zero_()),
        "fill_": of(lambda t: t.fill_(7)),
        "fill_ tensor": of(lambda t: t.fill_(T.tensor(7))),
        "fill_ vector": of(lambda t: t.fill_(T.ones(2))),
        "copy_": of(lambda t: t.copy_(T.ones(3))),
        "copy_ int": of(lambda t: t.copy_(T.arange(6).view(2, 3))),
        "clamp_": of(lambda t: t.clamp_(1, 4)),
        "clamp_ min": of(lambda t: t.clamp_(min=2)),
        "clamp_max_": of(lambda t: t.clamp_max_(2)),
        "masked_fill_": of(lambda t: t.masked_fill_(t > 2, 0)),
        "index_fill_": of(lambda t: t.index_fill_(1, T.tensor([0]), 9)),
        "scatter_": of(lambda t: t.scatter_(1, T.tensor([[0], [2]]), 9.0)),
        "index_add_": of(lambda t: t.index_add_(0, T.tensor([1]), T.ones(1, 3))),
        "addcmul_": of(lambda t: t.addcmul_(T.ones(3), T.ones(3), value=2)),
        "lerp_": of(lambda t: t.lerp_(T.ones(2, 3), 0.5)),
        "fill_diagonal_": of(lambda t: t.fill_diagonal_(5)),
        "tril_": of(lambda t: t.tril_()),
        "cumsum_": of(lambda t: t.cumsum_(1)),
        "t_": of(lambda t: t.t_()),
        "transpose_": of(lambda t: t.transpose_(0, 1)),
        "unsqueeze_": of(lambda t: t.unsqueeze_(0)),
        "squeeze_": of(lambda t: t.squeeze_()),
        "logical_not_": of(lambda t: t.logical_not_()),
        "bitwise_not_": of(lambda t: t.bitwise_not_()),
        "nan_to_num_": of(lambda t: t.nan_to_num_()),
        "add_ alpha": of(lambda t: t.add_(T.ones(3), alpha=3)),
        "addmm_": of(lambda t: t.addmm_(T.ones(2, 2), T.ones(2, 3))),
        "detach_": of(lambda t: t.detach_()),
        "requires_grad_": of(lambda t: t.requires_grad_()),
        "swap": of(lambda t: t.swapaxes_(0, 1)),
        "as_strided_": of(lambda t: t.as_strided_((2, 2), (1, 2))),
    }


# --- out= -------------------------------------------------------------------------------------------------------


@differential
@pytest.mark.parametrize("shape", [(10,), (2,), (3, 2)], ids=["larger", "smaller", "other shape"])
def test_out_of_the_wrong_size_is_resized_with_a_warning(T: Any, shape: tuple[int, ...]) -> Any:
    out = T.zeros(shape)
    phrase = "An output with one or more elements was resized"
    return warned(lambda: T.add(T.ones(2, 3), 1, out=out), phrase), out


@differential
def test_out_without_elements_is_resized_in_silence(T: Any) -> Any:
    out = T.empty(0)
    return warned(lambda: T.add(T.ones(2, 3), 1, out=out)), out


@differential
@pytest.mark.parametrize("name", ["sum", "mean", "matmul", "cat", "stack", "cumsum", "index_select", "where", "gather"])
def test_out_of_other_families(T: Any, name: str) -> Any:
    a = T.arange(4.0).view(2, 2)
    calls: dict[str, Callable[[Any], Any]] = {
        "sum": lambda out: T.sum(a, 0, out=out),
        "mean": lambda out: T.mean(a, 0, out=out),
        "matmul": lambda out: T.matmul(a, a, out=out),
        "cat": lambda out: T.cat([a, a], out=out),
        "stack": lambda out: T.stack([a, a], out=out),
        "cumsum": lambda out: T.cumsum(a, 1, out=out),
        "index_select": lambda out: T.index_select(a, 0, T.tensor([1]), out=out),
        "where": lambda out: T.where(a > 1, a, a, out=out),
        "gather": lambda out: T.gather(a, 0, T.tensor([[0, 1]]), out=out),
    }
    fresh = T.empty(0)
    return calls[name](fresh) is fresh, fresh, outcome(lambda: calls[name](T.empty(0, dtype=T.int64)))


@differential
def test_out_of_functions_with_several_results(T: Any) -> Any:
    a = T.tensor([[3.0, 1.0], [2.0, 5.0]])
    values, indices = T.empty(0), T.empty(0, dtype=T.int64)
    result = T.max(a, 1, out=(values, indices))
    sorted_values, sorted_indices = T.empty(0), T.empty(0, dtype=T.int64)
    T.sort(a, 1, out=(sorted_values, sorted_indices))
    return values, indices, result.values is values, sorted_values, sorted_indices


@differential
def test_out_must_fit(T: Any) -> Any:
    a = T.ones(2)
    leaf = T.ones(2, requires_grad=True)
    phrase = "result type Float can't be cast to the desired output type"
    return {
        "int": outcome(lambda: T.add(a, a, out=T.empty(2, dtype=T.int64)), phrase + " Long"),
        "bool": outcome(lambda: T.exp(a, out=T.empty(2, dtype=T.bool)), phrase + " Bool"),
        "double": T.add(a, a, out=T.empty(2, dtype=T.float64)),
        "half": T.add(a, a, out=T.empty(2, dtype=T.float16)),
        "complex": T.add(a, a, out=T.empty(2, dtype=T.complex64)),
        "comparison into float": T.eq(a, a, out=T.empty(2)),
        "comparison into int": T.eq(a, a, out=T.empty(2, dtype=T.int32)),
        "leaf operand": outcome(lambda: T.add(leaf, a, out=T.empty(2)), "don't support automatic differentiation"),
        "leaf out": outcome(lambda: T.add(a, a, out=leaf), "don't support automatic differentiation"),
        "list": outcome(lambda: T.add(a, a, out=[1]), ""),
        "meta": outcome(lambda: T.add(a, a, out=T.empty(2, device="meta")), ""),
        "expanded": outcome(lambda: T.add(a, a, out=T.empty(1).expand(2)), "unsupported operation"),
    }


@differential
def test_out_inside_no_grad(T: Any) -> Any:
    leaf = T.ones(2, requires_grad=True)
    with T.no_grad():
        out = T.add(leaf, 1, out=T.empty(2))
        T.mul(leaf, 3, out=leaf)
    return out, leaf


# --- aliasing ---------------------------------------------------------------------------------------------------


@differential
def test_operands_that_alias_the_target(T: Any) -> Any:
    same = T.arange(4.0)
    same.add_(same)
    matrix = T.arange(9.0).view(3, 3)
    partial = T.arange(6.0)
    phrase = (
        "unsupported operation: some elements of the input tensor and the written-to tensor refer to a single memory"
    )
    return {
        "same": same,
        "out is input": T.mul(same, same, out=same),
        "overlap": outcome(lambda: partial[1:].add_(partial[:-1]), phrase),
        "overlap out": outcome(lambda: T.add(partial[:-1], 1, out=partial[1:]), phrase),
        "disjoint": partial[:3].add_(partial[3:]),
        "broadcast of itself": outcome(lambda: matrix.add_(matrix[0]), phrase),
        "transposed": outcome(lambda: matrix.mul_(matrix.t()), phrase),
        "copy": outcome(lambda: partial[1:].copy_(partial[:-1])),
    }


@differential
def test_cat_refuses_an_overlapping_out(T: Any) -> Any:
    base = T.arange(6.0)
    return outcome(lambda: T.cat([base[:3], base[:3]], out=base), "unsupported operation")


@differential
def test_versions(T: Any) -> Any:
    tensor = T.zeros(3)
    versions = [tensor._version]
    actions: list[Callable[[], Any]] = [
        lambda: tensor.add_(1),
        lambda: tensor[0].fill_(2),
        lambda: tensor.__setitem__(1, 5),
        lambda: tensor.copy_(T.ones(3)),
        lambda: T.add(tensor, 1, out=tensor),
        lambda: tensor.detach().mul_(2),
        lambda: tensor.data.mul_(2),
        lambda: tensor.clone().mul_(2),
        lambda: tensor.add(1),
        lambda: tensor.zero_(),
        lambda: tensor.requires_grad_(),
    ]
    for action in actions:
        action()
        versions.append(tensor._version)
    return versions


@differential
def test_in_place_and_gradients(T: Any) -> Any:
    leaf = T.ones(3, requires_grad=True)
    result = leaf * 2
    result.mul_(3)
    result[0] = 0
    result.sum().backward()
    phrase = "a leaf Variable that requires grad is being used in an in-place operation"
    with T.no_grad():
        leaf.add_(1)
    return {
        "result": result,
        "grad": leaf.grad,
        "leaf": leaf,
        "refused": outcome(lambda: leaf.add_(1), phrase),
        "view of a leaf": outcome(
            lambda: leaf[0].zero_(), "a view of a leaf Variable that requires grad is being used"
        ),
        "zero_": outcome(lambda: leaf.zero_(), phrase),
    }


@differential
def test_fill_diagonal(T: Any) -> Any:
    leaf = T.ones(3, 4, requires_grad=True)
    filled = (leaf * 2).fill_diagonal_(5)
    filled.sum().backward()
    return {
        "wide": T.zeros(2, 4).fill_diagonal_(1),
        "tall": T.zeros(7, 3).fill_diagonal_(1),
        "wrapped": T.zeros(9, 3).fill_diagonal_(1, wrap=True),
        "wrapped end": T.zeros(5, 3).fill_diagonal_(1, wrap=True),
        "cube": T.zeros(3, 3, 3).fill_diagonal_(2),
        "part": T.zeros(4, 4)[1:, ::2].fill_diagonal_(3),
        "gradient": (filled, leaf.grad),
        "vector": outcome(lambda: T.zeros(3).fill_diagonal_(1), "dimensions must larger than 1"),
        "box": outcome(lambda: T.zeros(2, 3, 4).fill_diagonal_(1), "all dimensions of input must be of equal length"),
    }


@differential
@pytest.mark.parametrize("name", ["sum", "prod", "cumsum", "cumprod"])
@pytest.mark.parametrize("target", ["bool", "int32", "float16", "float64", "complex64"])
def test_sums_are_computed_in_the_dtype_of_out(T: Any, name: str, target: str) -> Any:
    tensor = T.tensor([[0.75, 1.5], [2.5, 3.0]])
    function, dtype = getattr(T, name), getattr(T, target)
    return supported(lambda: function(tensor, 0, out=T.empty(0, dtype=dtype))), outcome(
        lambda: function(tensor, 0, dtype=T.int64, out=T.empty(0, dtype=dtype))
    )


@differential
def test_an_empty_out_takes_the_layout_of_the_result(T: Any) -> Any:
    x, y = T.arange(12.0).reshape(3, 4).t(), T.arange(120.0).reshape(2, 3, 4, 5).permute(0, 2, 3, 1)
    functions = [
        lambda out: T.add(x, 1, out=out),
        lambda out: T.exp(y, out=out),
        lambda out: T.where(x > 5, x, x, out=out),
        lambda out: T.lerp(x, x + 1, 0.5, out=out),
        lambda out: T.cumsum(x, 0, out=out),
        lambda out: T.sum(y, 1, out=out),
        lambda out: T.cat([x, x], out=out),
        lambda out: T.tril(x, out=out),
        lambda out: T.linalg.cholesky(x.t() @ x + 100 * T.eye(3), out=out),
        lambda out: T.cholesky(x.t() @ x + 100 * T.eye(3), out=out),
    ]
    return [function(T.empty(0)) for function in functions]
