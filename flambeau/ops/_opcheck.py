"""`torch.library.opcheck`: whether an operator does what it says."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .._core.tensor import Tensor
from ._custom import Operator, operator_named

_TESTS = ("test_schema", "test_autograd_registration", "test_faketensor", "test_aot_dispatch_dynamic")


class OpCheckError(Exception):
    """An operator does something else than it says."""


def _tensors(value: Any) -> list[Tensor]:
    if isinstance(value, Tensor):
        return [value]
    if isinstance(value, (list, tuple)):
        return [each for inner in value for each in _tensors(inner)]
    return []


def _copied(value: Any, place: str | None = None) -> Any:
    """Arguments in memory of their own, or without data."""
    if isinstance(value, Tensor):
        made: Any = value.detach()
        made = made.clone() if place is None else made.to(place)
        return made.requires_grad_(value.requires_grad) if value.requires_grad else made
    if isinstance(value, (list, tuple)):
        return type(value)(_copied(each, place) for each in value)
    return value


def _call(operator: Operator, args: Any, kwargs: dict[str, Any], place: str | None = None) -> Any:
    return operator(*_copied(args, place), **{name: _copied(each, place) for name, each in kwargs.items()})


def _check_schema(operator: Operator, args: Any, kwargs: dict[str, Any]) -> None:
    """Only what the schema says is changed, and no result is an argument unless it says so."""
    given, named = operator.schema.bind(_copied(args), {name: _copied(each) for name, each in kwargs.items()})
    positional = [each for each in operator.schema.arguments if not each.kwarg_only]
    by_name = dict(zip((each.name for each in positional), given, strict=True)) | named
    before = {name: [each.detach().clone() for each in _tensors(value)] for name, value in by_name.items()}
    results = _tensors(operator(*given, **named))
    for argument in operator.schema.arguments:
        now = _tensors(by_name[argument.name])
        same = all(
            left.equal(right) or bool(((left == right) | ((left != left) & (right != right))).all())
            for left, right in zip(before[argument.name], now, strict=True)
        )
        if not same and not argument.is_write:
            raise RuntimeError(f"Argument {argument.name} is not defined as mutable but was mutated")
        for result in results:
            aliases = any(result.untyped_storage() == each.untyped_storage() for each in now)
            if aliases and argument.alias_info is None:
                raise RuntimeError(f"Argument {argument.name} is not defined to alias output but was aliasing")


def _check_derivative(operator: Operator, args: Any, kwargs: dict[str, Any]) -> None:
    """If arguments require gradients, the derivative is registered as such, not left to what runs inside."""
    if operator._backward is None and operator._recorded is None and operator._everywhere is None:
        wanting = [each for each in _tensors([*args, *kwargs.values()]) if each.requires_grad]
        if wanting and any(each.requires_grad for each in _tensors(_call(operator, args, kwargs))):
            raise RuntimeError(f"{operator._qualname} has kernels for devices, and no derivative of its own")


def _described(results: list[Tensor]) -> list[tuple[Any, ...]]:
    return [(tuple(each.shape), each.dtype, each.stride() if each.numel() > 1 else ()) for each in results]


def _check_fake(operator: Operator, args: Any, kwargs: dict[str, Any]) -> None:
    """Without data the results have the same shapes, dtypes and strides."""
    real = _described(_tensors(_call(operator, args, kwargs)))
    fake = _described(_tensors(_call(operator, args, kwargs, "meta")))
    if real != fake:
        raise RuntimeError(
            f"When comparing the output of {operator._qualname} on FakeTensor and concrete Tensors, found mismatched "
            f"tensor metadata: (shape, dtype, strides) are {real} with data, and {fake} without"
        )


def _check_backward(operator: Operator, args: Any, kwargs: dict[str, Any]) -> None:
    """The backward pass runs without data as well, and gives gradients of the same shapes."""

    def gradients(place: str | None) -> list[Any]:
        given, named = _copied(args, place), {name: _copied(each, place) for name, each in kwargs.items()}
        wanting = [each for each in _tensors([*given, *named.values()]) if each.requires_grad]
        results = [each for each in _tensors(operator(*given, **named)) if each.requires_grad]
        if wanting and results:
            sum((each.sum() for each in results[1:]), results[0].sum()).backward()
        return [None if each.grad is None else (tuple(each.grad.shape), each.grad.dtype) for each in wanting]

    if gradients(None) != gradients("meta"):
        raise RuntimeError(f"{operator._qualname}: gradients with and without data are {gradients(None)} and others")


_CHECKS: dict[str, Callable[[Operator, Any, dict[str, Any]], None]] = dict(
    zip(_TESTS, (_check_schema, _check_derivative, _check_fake, _check_backward), strict=True)
)


def opcheck(
    op: Any,
    args: tuple[Any, ...],
    kwargs: dict[str, Any] | None = None,
    *,
    test_utils: str | tuple[str, ...] | list[str] = _TESTS,
    raise_exception: bool = True,
    atol: float | None = None,
    rtol: float | None = None,
) -> dict[str, Any]:
    """Run an operator on sample arguments and see whether it does what it says; "SUCCESS" or the error for each test.

    The schema names what it changes; the derivative is registered; without data the results look the same, and so do
    the gradients.

    Args:
        op: the operator, or its full name.
        args (tuple): sample arguments.
        kwargs (dict, optional): sample keyword arguments.
        test_utils (str or tuple of strs or list of strs): which tests to run.
        raise_exception (bool): whether the first failure is raised. Default: `True`.
        atol (float, optional): the absolute tolerance of comparisons; None takes that of the dtype.
        rtol (float, optional): the relative tolerance of comparisons; None takes that of the dtype.

    Returns:
        dict: results by test.

    Example:
        >>> @torch.library.custom_op("docs::checked", mutates_args=())
        ... def checked(x: torch.Tensor) -> torch.Tensor:
        ...     return 2 * x
        >>> @checked.register_fake
        ... def _(x):
        ...     return torch.empty_like(x)
        >>> torch.library.opcheck(checked, (torch.ones(2),), test_utils="test_schema")
        {'test_schema': 'SUCCESS'}
    """
    operator = operator_named(op)
    wanted = [test_utils] if isinstance(test_utils, str) else list(test_utils)
    if set(wanted) - set(_TESTS):
        raise ValueError(
            f"opcheck: there is no test {sorted(set(wanted) - set(_TESTS))}; there are {', '.join(_TESTS)}"
        )
    answers = {name: _outcome(name, operator, args, kwargs or {}) for name in wanted}
    for name, answer in answers.items():
        if raise_exception and isinstance(answer, Exception):
            raise OpCheckError(f"opcheck(op, ...): {name} failed with {answer}") from answer
    return answers


def _outcome(name: str, operator: Operator, args: Any, kwargs: dict[str, Any]) -> Any:
    try:
        _CHECKS[name](operator, args, kwargs)
    except Exception as error:
        return error
    return "SUCCESS"
