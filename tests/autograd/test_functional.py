"""`autograd.functional` against PyTorch's: values, forms of the answers, graphs, and every error."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import pytest

import flambeau
from tests.support.differential import describe, differences, differential, outcome


def attempt(action: Callable[[], Any], *phrases: str) -> tuple[Any, ...]:
    """`outcome` for a list of cases of which some succeed: an error must have one of the phrases."""
    result = outcome(action, *phrases)
    return tuple(result) if result[0] == "value" else result


def numbers(T: Any, *values: float, **options: Any) -> Any:
    return T.tensor(list(values), dtype=T.float64, **options)


SCALAR_FUNCTIONS = {
    "cube": lambda T, x, y: (x**3).sum() + (y**2).sum(),
    "product": lambda T, x, y: (x * x * y).sum(),
    "exponential": lambda T, x, y: (x.exp() * y.sin()).sum(),
    "quotient": lambda T, x, y: (x / (y * y + 1)).sum(),
    "linear": lambda T, x, y: x.sum() + y.sum(),
    "first only": lambda T, x, y: (x**4).sum(),
    "one element": lambda T, x, y: (x * y).prod().view(1),
    "constant": lambda T, x, y: T.tensor(1.0, dtype=T.float64),
}
FUNCTIONS = {
    "elementwise": lambda T, x, y: x * y.exp(),
    "two outputs": lambda T, x, y: ((x * y).sum(), y * y),
    "tuple of one": lambda T, x, y: (x * y,),
    "outer product": lambda T, x, y: x.view(2, 1) * y.view(1, 2),
    "second constant": lambda T, x, y: (x * y, T.ones(3, dtype=T.float64)),
    "integer output": lambda T, x, y: (x * y, (x * 2).int()),
    **SCALAR_FUNCTIONS,
}


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("create_graph", [False, True])
@differential
def test_vjp(T: Any, name: str, create_graph: bool) -> Any:
    x, y = numbers(T, 1, 2, requires_grad=create_graph), numbers(T, 0.5, -1)
    outputs = FUNCTIONS[name](T, x, y)
    v = tuple(T.ones_like(item) for item in outputs) if isinstance(outputs, tuple) else T.ones_like(outputs)
    value, product = T.autograd.functional.vjp(
        lambda x, y: FUNCTIONS[name](T, x, y), (x, y), v, create_graph=create_graph
    )
    return _plain(value), _plain(product)


@pytest.mark.parametrize("name", [name for name in FUNCTIONS if name != "integer output"])
@pytest.mark.parametrize("create_graph", [False, True])
@differential
def test_jvp(T: Any, name: str, create_graph: bool) -> Any:
    x, y = numbers(T, 1, 2, requires_grad=create_graph), numbers(T, 0.5, -1)
    value, product = T.autograd.functional.jvp(
        lambda x, y: FUNCTIONS[name](T, x, y), (x, y), (numbers(T, 1, 3), numbers(T, -1, 2)), create_graph=create_graph
    )
    return _plain(value), _plain(product)


def test_jvp_gives_zeros_for_an_integer_output() -> None:
    _, (product, zeros) = flambeau.autograd.functional.jvp(
        lambda x: (x * 2, x.int()), flambeau.tensor([1.0, 2.0]), flambeau.ones(2)
    )
    assert product.tolist() == [2.0, 2.0]
    assert zeros.tolist() == [0, 0]


@pytest.mark.parametrize("product", ["vhp", "hvp"])
@pytest.mark.parametrize("name", SCALAR_FUNCTIONS)
@pytest.mark.parametrize("create_graph", [False, True])
@differential
def test_hessian_products(T: Any, product: str, name: str, create_graph: bool) -> Any:
    x, y = numbers(T, 1, 2, requires_grad=create_graph), numbers(T, 0.5, -1, requires_grad=create_graph)
    value, vector = getattr(T.autograd.functional, product)(
        lambda x, y: SCALAR_FUNCTIONS[name](T, x, y), (x, y), (numbers(T, 1, 3), numbers(T, -1, 2)), create_graph
    )
    return _plain(value), _plain(vector)


def _plain(value: Any) -> Any:
    """Values, dtypes and whether a graph is attached: intermediate node names of an answer are not promised."""
    if isinstance(value, tuple):
        return [_plain(item) for item in value]
    return value.tolist(), str(value.dtype), tuple(value.shape), value.requires_grad


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("vectorize", [False, True])
@pytest.mark.parametrize("create_graph", [False, True])
@differential
def test_jacobian(T: Any, name: str, vectorize: bool, create_graph: bool) -> Any:
    x, y = numbers(T, 1, 2, requires_grad=create_graph), numbers(T, 0.5, -1)
    found = T.autograd.functional.jacobian(
        lambda x, y: FUNCTIONS[name](T, x, y), (x, y), create_graph=create_graph, vectorize=vectorize
    )
    # PyTorch batches all outputs together, so that there even the blocks of constants are in a graph.
    return _values(found) if vectorize else _plain(found)


def _values(value: Any) -> Any:
    return [_values(item) for item in value] if isinstance(value, tuple) else (value.tolist(), str(value.dtype))


@pytest.mark.parametrize("name", FUNCTIONS)
def test_forward_mode_jacobian_is_the_reverse_mode_one(name: str) -> None:
    inputs = numbers(flambeau, 1, 2), numbers(flambeau, 0.5, -1)

    def values(**options: Any) -> Any:
        found = flambeau.autograd.functional.jacobian(lambda x, y: FUNCTIONS[name](flambeau, x, y), inputs, **options)
        return [[block.double().tolist() for block in _row(row)] for row in _row(found)]

    found = list(differences(describe(values()), describe(values(vectorize=True, strategy="forward-mode"))))
    assert not found, found


def _row(value: Any) -> Any:
    return value if isinstance(value, tuple) else (value,)


@pytest.mark.parametrize("name", SCALAR_FUNCTIONS)
@pytest.mark.parametrize(
    "options",
    [{}, {"vectorize": True}, {"create_graph": True}, {"vectorize": True, "outer_jacobian_strategy": "forward-mode"}],
)
@differential
def test_hessian(T: Any, name: str, options: dict[str, Any]) -> Any:
    x, y = numbers(T, 1, 2, requires_grad=True), numbers(T, 0.5, -1)
    found = T.autograd.functional.hessian(lambda x, y: SCALAR_FUNCTIONS[name](T, x, y), (x, y), **options)
    forward = "outer_jacobian_strategy" in options
    return [[(block.tolist(), forward or block.requires_grad) for block in row] for row in found]


@pytest.mark.parametrize("create_graph", [False, True])
@differential
def test_one_tensor_as_two_inputs(T: Any, create_graph: bool) -> Any:
    x = numbers(T, 1, 2, requires_grad=True)
    return _plain(T.autograd.functional.vjp(lambda a, b: (a * a * b).sum(), (x, x), create_graph=create_graph))


@differential
def test_forms_and_shapes(T: Any) -> Any:
    functional = T.autograd.functional
    x, matrix = numbers(T, 1, 2, 3), T.ones(2, 3, dtype=T.float64)
    return [
        _plain(functional.jacobian(lambda a: a * a, x)),
        _plain(functional.jacobian(lambda a: (a * a,), x)),
        _plain(functional.jacobian(lambda a: (a * a, a.sum()), (x,))),
        _plain(functional.jacobian(lambda a: a.exp().sum(1), matrix)),
        _plain(functional.jacobian(lambda a: a.exp(), T.tensor(1.0))),
        _plain(functional.jacobian(lambda a: a.abs(), T.tensor([3 + 4j]))),
        _plain(functional.hessian(lambda a: a**3, T.tensor(2.0))),
        _plain(functional.vjp(lambda a: (a**2).sum(), T.tensor(2.0))),
        _plain(functional.jvp(lambda a: a * x, numbers(T, 2))),
    ]


@differential
def test_derivatives_of_the_answers(T: Any) -> Any:
    """With create_graph the answers can be differentiated by the caller's tensors, inside no_grad too."""
    functional = T.autograd.functional
    grads = []
    for compute in (
        lambda x: functional.vjp(lambda a: (a**3).sum(), x, create_graph=True)[1],
        lambda x: functional.jvp(lambda a: a**3, x, T.ones_like(x), create_graph=True)[1],
        lambda x: functional.vhp(lambda a: (a**4).sum(), x, T.ones_like(x), create_graph=True)[1],
        lambda x: functional.hvp(lambda a: (a**4).sum(), x, T.ones_like(x), create_graph=True)[1],
        lambda x: functional.jacobian(lambda a: a**3, x, create_graph=True),
        lambda x: functional.hessian(lambda a: (a**4).sum(), x, create_graph=True),
    ):
        x = numbers(T, 1, 2, requires_grad=True)
        with T.no_grad():
            answer = compute(x)
        grads.append(T.autograd.grad(answer.sum(), x)[0])
    return grads


def test_empty_outputs_give_empty_jacobians() -> None:
    for vectorize in (False, True):
        found = flambeau.autograd.functional.jacobian(lambda x: x[:0], flambeau.ones(3), vectorize=vectorize)
        assert tuple(found.shape) == (0, 3)


@pytest.mark.parametrize("name", ["vjp", "jvp", "vhp", "hvp", "jacobian", "hessian"])
@differential
def test_wrong_arguments(T: Any, name: str) -> Any:
    function = getattr(T.autograd.functional, name)
    x, v = T.tensor([1.0, 2.0, 3.0]), T.ones(3)
    phrases = (
        f"The inputs given to {name} must be either a Tensor or a tuple of Tensors but the given inputs has type",
        f"The inputs given to {name} must be either a Tensor or a tuple of Tensors but the value at index 1 has type",
        f"The outputs of the user-provided function given to {name} must be either a Tensor or a tuple of Tensors",
        "only Tensors of floating point dtype can require gradients",
    )
    vector = () if name in ("jacobian", "hessian") else (v,)
    return [
        outcome(lambda: function(lambda a: a.sum(), [x], *vector), *phrases),
        outcome(lambda: function(lambda a: a.sum(), (x, 3), *vector), *phrases),
        outcome(lambda: function(lambda a: 3, x, *vector), *phrases),
        outcome(lambda: function(lambda a: [a.sum()], x, *vector), *phrases),
        outcome(lambda: function(lambda a: (a.sum(), 3), x, *vector), *phrases),
        outcome(lambda: function(lambda a: a.sum(), T.tensor([1, 2]), *vector), *phrases),
    ]


@pytest.mark.parametrize("name", ["vjp", "jvp", "vhp", "hvp"])
@differential
def test_wrong_vectors(T: Any, name: str) -> Any:
    function = getattr(T.autograd.functional, name)
    x, v = T.tensor([1.0, 2.0, 3.0]), T.ones(3)

    def one(a: Any) -> Any:
        return a * a if name in ("vjp", "jvp") else (a * a).sum()

    def two(a: Any, b: Any) -> Any:
        return (a * b, a) if name == "vjp" else (a * b).sum()

    phrases = (
        "The vector v can only be None if the user-provided function returns a single Tensor with a single element.",
        "The vector v can only be None if the input to the user-provided function is a single Tensor with a single",
        "v has invalid size: should be torch.Size([3]) but got torch.Size([2]).",
        "The given v should contain a single Tensor.",
        f"The v given to {name} must be either a Tensor or a tuple of Tensors but the given v has type",
        "v is a tuple of invalid length: should be 2 but got 1.",
        "Entry 1 in v has invalid size: should be torch.Size([3]) but got torch.Size([2]).",
    )
    return [
        attempt(lambda: _plain(function(one, x)), *phrases),
        attempt(lambda: _plain(function(one, x, T.ones(2))), *phrases),
        attempt(lambda: _plain(function(one, x, (v, v))), *phrases),
        attempt(lambda: _plain(function(one, x, [v])), *phrases),
        attempt(lambda: _plain(function(one, x, 3)), *phrases),
        attempt(lambda: _plain(function(two, (x, x), (v,))), *phrases),
        attempt(lambda: _plain(function(two, (x, x), (v, T.ones(2)))), *phrases),
    ]


STRICT_PHRASES = (
    "Output 0 of the user-provided function does not require gradients.",
    "Output 1 of the user-provided function does not require gradients.",
    "The output of the user-provided function is independent of input 1. This is not allowed in strict mode.",
    "Output 0 of the user-provided function is independent of input 1. This is not allowed in strict mode.",
    "is independent of input 0. This is not allowed in strict mode when create_graph=True.",
    "found that the jacobian of the user-provided function with respect to input 0 is independent of the input.",
    "found that the jacobian of the user-provided function with respect to input 1 is independent of the input.",
    "The function given to",
    "`strict=True` and `vectorized=True` are not supported together",
)


@pytest.mark.parametrize("name", ["vjp", "jvp", "vhp", "hvp", "jacobian", "hessian", "vectorized"])
@differential
def test_strict(T: Any, name: str) -> Any:
    x = T.tensor([1.0, 2.0, 3.0])
    calls = {
        "constant": (lambda a, b: T.tensor(1.0), {}),
        "linear": (lambda a, b: a.sum() + b.sum(), {}),
        "linear with graph": (lambda a, b: a.sum() + b.sum(), {"create_graph": True}),
        "independent": (lambda a, b: (a**3).sum(), {}),
        "linear in one": (lambda a, b: (a**3).sum() + b.sum(), {}),
        "no mixed terms": (lambda a, b: (a**3).sum() + (b**3).sum(), {}),
        "one constant output": (lambda a, b: ((a * b).sum(), T.tensor(1.0)), {}),
        "good": (lambda a, b: (a**2 * b**2).sum(), {}),
    }
    found = []
    for func, options in calls.values():
        inputs = tuple(T.tensor([1.0, 2.0, 3.0], requires_grad=True) for _ in range(2))
        vector: tuple[Any, ...] = ((x, x),)
        if name == "vjp":
            result = func(x, x)
            vector = (tuple(T.ones_like(item) for item in result) if isinstance(result, tuple) else T.tensor(1.0),)
        if name in ("jacobian", "hessian", "vectorized"):
            vector = ()
        extra = {"vectorize": True} if name == "vectorized" else {}
        function = getattr(T.autograd.functional, "jacobian" if name == "vectorized" else name)
        call = functools.partial(function, func, inputs, *vector, strict=True, **options, **extra)
        found.append(attempt(lambda call=call: _plain(call()), *STRICT_PHRASES))
    return found


@pytest.mark.parametrize("name", ["vhp", "hvp", "hessian"])
@differential
def test_hessians_need_one_scalar(T: Any, name: str) -> Any:
    function = getattr(T.autograd.functional, name)
    x = T.tensor([1.0, 2.0])
    vector = () if name == "hessian" else (T.ones(2),)
    phrases = (
        f"The function given to {name} should return a single Tensor",
        f"The Tensor returned by the function given to {name} should contain a single element",
    )
    return [
        attempt(lambda: _plain(function(lambda a: (a.sum(),), x, *vector)), *phrases),
        attempt(lambda: _plain(function(lambda a: a * a, x, *vector)), *phrases),
    ]


@differential
def test_strategies(T: Any) -> Any:
    functional = T.autograd.functional
    x = T.tensor([1.0, 2.0])
    phrases = (
        'Expected strategy to be either "forward-mode" or "reverse-mode".',
        "only implemented for `vectorize=True`",
        '`create_graph=True` and `strategy="forward-mode"` are not supported together (yet)',
        '`strict=True` and `strategy="forward-mode"` are not supported together (yet)',
    )

    def jacobian(**options: Any) -> Any:
        return attempt(lambda: _plain(functional.jacobian(lambda a: a * a, x, **options)), *phrases)

    def hessian(**options: Any) -> Any:
        return attempt(lambda: functional.hessian(lambda a: (a**3).sum(), x, **options).tolist(), *phrases)

    forward = {"vectorize": True, "strategy": "forward-mode"}
    outer = {"vectorize": True, "outer_jacobian_strategy": "forward-mode"}
    return [
        jacobian(strategy="sideways"),
        jacobian(strategy="forward-mode"),
        jacobian(**forward),
        jacobian(create_graph=True, **forward),
        jacobian(strict=True, **forward),
        hessian(outer_jacobian_strategy="sideways"),
        hessian(outer_jacobian_strategy="forward-mode"),
        hessian(**outer),
        hessian(create_graph=True, **outer),
        hessian(strict=True, **outer),
    ]


@pytest.mark.parametrize("vectorize", [False, True])
@differential
def test_classes_of_users_are_kept(T: Any, vectorize: bool) -> Any:
    class Own(T.Tensor):
        pass

    x, functional = T.ones(2).as_subclass(Own), T.autograd.functional
    results = [
        functional.jacobian(lambda x: x * 2, x, vectorize=vectorize),
        functional.hessian(lambda x: (x * x).sum(), x, vectorize=vectorize),
        functional.jacobian(lambda a: a * x, T.ones(2), vectorize=vectorize),
        *functional.vjp(lambda x: x * 2, x, T.ones(2)),
        *functional.jvp(lambda x: x * 2, x, T.ones(2)),
        *functional.hvp(lambda x: (x * x).sum(), x, T.ones(2)),
        T.func.grad(lambda x: (x * 2).sum())(x),
        T.func.jacrev(lambda x: x * 2)(x),
        T.func.jacfwd(lambda x: x * 2)(x),
        T.func.vmap(T.func.grad(lambda x: (x * 2).sum()))(x),
    ]
    return [(type(each) is Own, each.tolist()) for each in results]
