"""Derivatives of functions: `grad`, `vjp`, `jvp` and the matrices that they make up."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from .._core.tensor import Tensor
from .._core.text.inherited_docs import documented_like
from .._ops.create.constants import eye
from .._ops.create.like import zeros_like
from ..autograd.grad_mode import enable_grad
from ..utils._pytree import TreeSpec, tree_flatten, tree_map, tree_unflatten
from ._graph import LinearMap, Tracking
from ._vmap import check_randomness, vmap

__all__ = ["grad", "grad_and_value", "hessian", "jacfwd", "jacrev", "jvp", "linearize", "vjp"]

Func = Callable[..., Any]
Argnums = int | tuple[int, ...]


def _checked_argnums(argnums: Argnums, count: int) -> Argnums:
    if isinstance(argnums, tuple):
        if not argnums:
            raise RuntimeError("argnums must be non-empty")
        if not all(isinstance(each, int) for each in argnums):
            raise RuntimeError(f"argnums must be int or Tuple[int, ...], got: {argnums}")
        found = tuple(_checked_argnum(each, count) for each in argnums)
        if len(set(found)) != len(found):
            raise RuntimeError(f"argnums elements must be unique, got {argnums}")
        return found
    if not isinstance(argnums, int):
        raise RuntimeError(f"argnums must be int or Tuple[int, ...], got: {type(argnums)}")
    return _checked_argnum(argnums, count)


def _checked_argnum(argnum: int, count: int) -> int:
    if not -count <= argnum < count:
        raise RuntimeError(f"Got argnum={argnum}, but only {count} positional inputs")
    return argnum % count


def _chosen(args: Sequence[Any], argnums: Argnums) -> Any:
    return tuple(args[each] for each in argnums) if isinstance(argnums, tuple) else args[argnums]


def _replaced(args: Sequence[Any], argnums: Argnums, chosen: Any) -> list[Any]:
    replaced = list(args)
    for position, each in zip(argnums, chosen, strict=True) if isinstance(argnums, tuple) else [(argnums, chosen)]:
        replaced[position] = each
    return replaced


def _tensors(values: Sequence[Any]) -> Sequence[Tensor]:
    for each in values:
        if not isinstance(each, Tensor):
            raise ValueError(f"Thing passed to transform API must be Tensor, got {type(each)}")
    return values


def _split_aux(output: Any, has_aux: bool, called: str) -> tuple[Any, Any]:
    if not has_aux:
        return output, None
    if not (isinstance(output, tuple) and len(output) == 2):
        raise RuntimeError(
            f"{called}: output of function f should be a tuple: (output, aux) if has_aux is True, got {type(output)}"
        )
    return output


def _finished_aux(tracking: Tracking, aux: Any) -> Any:
    return tree_map(lambda each: tracking.finished(tracking.value_of(each)) if isinstance(each, Tensor) else each, aux)


# ----- gradients ----------------------------------------------------------------------------------------------------


def grad(func: Func, argnums: Argnums = 0, has_aux: bool = False) -> Func:
    """The function that computes the gradient of `func`, which gives one number, by its arguments `argnums`.

    With `has_aux`, `func` gives a pair, of which the second part is handed through.

    >>> flambeau.func.grad(flambeau.sin)(flambeau.tensor(0.0))
    tensor(1.)

    Args:
        func (Callable): the function to differentiate.
        argnums (int or tuple of ints): which arguments to differentiate by. Default: `0`.
        has_aux (bool): whether `func` returns a pair, of the result and of values that are passed on as they are.
            Default: `False`.

    Returns:
        a function with the arguments of `func` that returns the gradient, of the shape of the argument; with `has_aux`
        a pair.
    """
    both = grad_and_value(func, argnums, has_aux)

    @functools.wraps(func)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        gradient, value = both(*args, **kwargs)
        return (gradient, value[1]) if has_aux else gradient

    return wrapper


def grad_and_value(func: Func, argnums: Argnums = 0, has_aux: bool = False) -> Func:
    """The function that computes the gradient of `func` and its value.

    Args:
        func (Callable): the function to differentiate.
        argnums (int or tuple of ints): which arguments to differentiate by. Default: `0`.
        has_aux (bool): whether `func` returns a pair, of the result and of values that are passed on as they are.
            Default: `False`.

    Returns:
        a function with the arguments of `func` that returns the gradient and the value.

    Example:
        >>> torch.func.grad_and_value(lambda x: (x**2).sum())(torch.tensor([1.0, 2.0]))
        (tensor([2., 4.]), tensor(5.))
    """

    @functools.wraps(func)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        numbers = _checked_argnums(argnums, len(args))
        leaves, structure = tree_flatten(_chosen(args, numbers))
        tracking = Tracking(_tensors(leaves))
        with enable_grad():
            output = func(*_replaced(args, numbers, tree_unflatten(tracking.inputs, structure)), **kwargs)
        called = "grad_and_value(f)(*args)"
        output, aux = _split_aux(output, has_aux, called)
        if not isinstance(output, Tensor):
            raise RuntimeError(f"{called}: Expected f(*args) to return a Tensor, got {type(output)}")
        if output.dim():
            raise RuntimeError(
                f"{called}: Expected f(*args) to return a scalar Tensor, got tensor with {output.dim()} dims. Maybe "
                "you wanted to use the vjp or jacrev APIs instead?"
            )
        value = tracking.value_of(output)
        gradients = [tracking.finished(each) for each in tracking.gradients([value])]
        result: Any = tracking.finished(value)
        if has_aux:
            result = result, _finished_aux(tracking, aux)
        return tree_unflatten(gradients, structure), result

    return wrapper


# ----- products -----------------------------------------------------------------------------------------------------


def _outputs(output: Any, called: str) -> tuple[list[Tensor], TreeSpec]:
    leaves, structure = tree_flatten(output)
    for each in leaves:
        if not isinstance(each, Tensor):
            raise RuntimeError(
                f"{called}: expected f(*primals) to return only tensors, got unsupported type {type(each)}"
            )
    return leaves, structure


def vjp(func: Func, *primals: Any, has_aux: bool = False) -> Any:
    """`func(*primals)`, and the function of products of row vectors with the Jacobian there.

    >>> output, product = flambeau.func.vjp(flambeau.sin, flambeau.zeros(2))
    >>> product(flambeau.ones(2))
    (tensor([1., 1.]),)

    Args:
        func (Callable): the function to differentiate.
        *primals: the point.
        has_aux (bool): whether `func` returns a pair, of the result and of values that are passed on as they are.
            Default: `False`.

    Returns:
        the outputs, and a function from a row vector to its product with the Jacobian; with `has_aux` the further
        values as a third item.
    """
    called = "vjp(f, *primals)"
    leaves, structure = tree_flatten(primals)
    tracking = Tracking(_tensors(leaves))
    with enable_grad():
        output = func(*tree_unflatten(tracking.inputs, structure))
    output, aux = _split_aux(output, has_aux, called)
    results, output_structure = _outputs(output, called)
    values = [tracking.value_of(each) for each in results]
    shapes = [each.shape for each in results]
    linear = LinearMap(tracking, values, forward=False)

    def vjp_fn(*cotangents: Any, retain_graph: bool = True, create_graph: bool | None = None) -> Any:
        given = cotangents[0] if len(cotangents) == 1 else cotangents
        flat, given_structure = tree_flatten(given)
        if given_structure != output_structure:
            raise RuntimeError(
                "Expected pytree structure of cotangents to be the same as pytree structure of outputs to the "
                f"function. cotangents: {given_structure}, primal output: {output_structure}"
            )
        for number, (each, shape) in enumerate(zip(flat, shapes, strict=True)):
            if each.shape != shape:
                raise RuntimeError(
                    f"Mismatch in shape: grad_output[{number}] has a shape of {each.shape} and output[{number}] has a "
                    f"shape of {shape}."
                )
        return tree_unflatten(linear(flat), structure)

    finished = tree_unflatten([tracking.finished(each) for each in values], output_structure)
    return (finished, vjp_fn, _finished_aux(tracking, aux)) if has_aux else (finished, vjp_fn)


class _Pushforward:
    """A function's value, and the product of its Jacobian there with column vectors."""

    def __init__(self, func: Func, primals: Sequence[Any], has_aux: bool, called: str) -> None:
        leaves, self.structure = tree_flatten(primals)
        tracking = Tracking(_tensors(leaves))
        self.shapes = [each.shape for each in leaves]
        with enable_grad():
            output = func(*tree_unflatten(tracking.inputs, self.structure))
        output, aux = _split_aux(output, has_aux, called)
        self.results, self.output_structure = _outputs(output, called)
        values = [tracking.value_of(each) for each in self.results]
        self.differentiable = [each._kind.differentiable for each in self.results]
        self.linear = LinearMap(
            tracking, [each for each, does in zip(values, self.differentiable, strict=True) if does], forward=True
        )
        self.output = tree_unflatten([tracking.finished(each) for each in values], self.output_structure)
        self.aux = _finished_aux(tracking, aux) if has_aux else None

    def products(self, tangents: Sequence[Tensor]) -> list[Tensor]:
        found = iter(self.linear(tangents))
        return [
            next(found) if does else zeros_like(each)
            for each, does in zip(self.results, self.differentiable, strict=True)
        ]


def jvp(func: Func, primals: Any, tangents: Any, *, strict: bool = False, has_aux: bool = False) -> Any:
    """`func(*primals)` and the product of its Jacobian there with `tangents`.

    >>> flambeau.func.jvp(flambeau.sin, (flambeau.tensor(0.0),), (flambeau.tensor(2.0),))
    (tensor(0.), tensor(2.))

    Args:
        func (Callable): the function to differentiate.
        primals: the point.
        tangents: the vector, in the structure of `primals`.
        strict (bool): whether an output that does not depend on an input raises an error, in place of giving zeros.
            Default: `False`.
        has_aux (bool): whether `func` returns a pair, of the result and of values that are passed on as they are.
            Default: `False`.

    Returns:
        the outputs and the product; with `has_aux` the further values as a third item.
    """
    called = "jvp(f, primals, tangents)"
    if not isinstance(primals, tuple):
        raise RuntimeError(f"{called}: Expected primals to be a tuple. E.g. it should be valid to call f(*primals).")
    leaves, structure = tree_flatten(primals)
    flat, given_structure = tree_flatten(tangents)
    if given_structure != structure:
        raise RuntimeError(
            f"{called}: Expected primals and tangents to have the same python structure. For example, if primals is a "
            f"tuple of 3 tensors, tangents also must be. Got primals with structure {structure} and tangents with "
            f"structure {given_structure}"
        )
    for name, values in (("primals", leaves), ("tangents", flat)):
        if not values:
            raise RuntimeError(f"{called}: Expected {name} to contain at least one Tensor.")
        for each in values:
            if not isinstance(each, Tensor):
                raise RuntimeError(f"{called}: Expected {name} to be a tuple of Tensors, got {type(each)}")
    for primal, tangent in zip(leaves, flat, strict=True):
        if primal.shape != tangent.shape:
            raise RuntimeError(
                "Trying to set a forward gradient that has a different size than that of the original Tensor, this is "
                f"not supported. Tensor is of size {list(primal.shape)} while the given forward gradient is of size "
                f"{list(tangent.shape)}."
            )
    pushforward = _Pushforward(func, primals, has_aux, called)
    products = tree_unflatten(pushforward.products(flat), pushforward.output_structure)
    return (pushforward.output, products, pushforward.aux) if has_aux else (pushforward.output, products)


@documented_like(vjp)
def linearize(func: Func, *primals: Any) -> tuple[Any, Func]:
    """`func(*primals)`, and the linear function that approximates it there: the product with its Jacobian.

    >>> output, linear = flambeau.func.linearize(flambeau.exp, flambeau.tensor(0.0))
    >>> linear(flambeau.tensor(3.0))
    tensor(3.)

    Returns:
        the outputs, and a function of tangents.
    """
    pushforward = _Pushforward(func, primals, False, "linearize(f, *primals)")

    def jvp_fn(*tangents: Any) -> Any:
        flat, given_structure = tree_flatten(tangents)
        if given_structure != pushforward.structure:
            raise RuntimeError(
                f"Expected the tangents {given_structure} to have the same structure as the primals "
                f"{pushforward.structure}"
            )
        for number, (each, shape) in enumerate(zip(flat, pushforward.shapes, strict=True)):
            if each.shape != shape:
                raise RuntimeError(
                    f"tangent:{number} with shape {each.shape} in flattened pytree doesn't match the shape {shape} of "
                    "the corresponding primal."
                )
        return tree_unflatten(pushforward.products(flat), pushforward.output_structure)

    return pushforward.output, jvp_fn


# ----- matrices -----------------------------------------------------------------------------------------------------


def _basis(tensors: Sequence[Tensor]) -> tuple[list[Tensor], list[int]]:
    """For all unit vectors of the tensors together, one after the other, the parts in each; and their numbers."""
    sizes = [each.numel() for each in tensors]
    total = sum(sizes)
    parts = []
    start = 0
    for each, size in zip(tensors, sizes, strict=True):
        rows = eye(total, dtype=each.dtype, device=each.device).narrow(1, start, size)
        parts.append(rows.reshape(total, *each.shape))
        start += size
    return parts, sizes


@documented_like(grad)
def jacrev(
    func: Func,
    argnums: Argnums = 0,
    *,
    has_aux: bool = False,
    chunk_size: int | None = None,
    _preallocate_and_copy: bool = False,
) -> Func:
    """The function that computes the Jacobian of `func` by its arguments `argnums`, row by row.

    >>> flambeau.func.jacrev(flambeau.sin)(flambeau.zeros(2))
    tensor([[1., 0.],
            [0., 1.]])

    Args:
        chunk_size (int, optional): how many rows to compute at once; None computes all together.

    Returns:
        a function with the arguments of `func` that returns the Jacobian, of the output's shape followed by the
        input's.
    """
    if not (chunk_size is None or chunk_size > 0):
        raise ValueError("jacrev: `chunk_size` should be greater than 0.")

    @functools.wraps(func)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        numbers = _checked_argnums(argnums, len(args))
        chosen = _chosen(args, numbers)

        def of_chosen(values: Any) -> Any:
            return func(*_replaced(args, numbers, values), **kwargs)

        found = vjp(of_chosen, chosen, has_aux=has_aux)
        output, product = found[0], found[1]
        outputs, output_structure = tree_flatten(output)
        inputs, structure = tree_flatten(chosen)
        parts, sizes = _basis(outputs)

        def row(*cotangents: Tensor) -> Any:
            return tuple(tree_flatten(product(tree_unflatten(cotangents, output_structure)))[0])

        if sum(sizes):
            columns = vmap(row, chunk_size=chunk_size)(*parts)
        else:
            columns = tuple(each.new_zeros((0, *each.shape)) for each in inputs)
        blocks = []
        start = 0
        for each, size in zip(outputs, sizes, strict=True):
            block = [
                column.narrow(0, start, size).reshape((*each.shape, *given.shape))
                for column, given in zip(columns, inputs, strict=True)
            ]
            blocks.append(tree_unflatten(block, structure))
            start += size
        jacobian = tree_unflatten(blocks, output_structure)
        return (jacobian, found[2]) if has_aux else jacobian

    return wrapper


@documented_like(jacrev)
def jacfwd(func: Func, argnums: Argnums = 0, has_aux: bool = False, *, randomness: str = "error") -> Func:
    """The function that computes the Jacobian of `func` by its arguments `argnums`, column by column.

    >>> flambeau.func.jacfwd(flambeau.sin)(flambeau.zeros(2))
    tensor([[1., 0.],
            [0., 1.]])

    Args:
        randomness (str): what random functions do: "error", "same" or "different" numbers for each example. Default:
            `"error"`.
    """
    check_randomness(randomness)

    @functools.wraps(func)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        numbers = _checked_argnums(argnums, len(args))
        chosen = _chosen(args, numbers)

        def of_chosen(values: Any) -> Any:
            return func(*_replaced(args, numbers, values), **kwargs)

        pushforward = _Pushforward(of_chosen, (chosen,), has_aux, "jvp(f, primals, tangents)")
        inputs, structure = tree_flatten(chosen)
        parts, sizes = _basis(inputs)
        outputs = tree_flatten(pushforward.output)[0]

        def column(*tangents: Tensor) -> Any:
            return tuple(pushforward.products(tangents))

        if sum(sizes):
            rows = vmap(column, randomness=randomness, out_dims=-1)(*parts)
        else:
            rows = tuple(each.new_zeros((*each.shape, 0)) for each in outputs)
        blocks = []
        for each, row in zip(outputs, rows, strict=True):
            block = []
            start = 0
            for given, size in zip(inputs, sizes, strict=True):
                block.append(row.narrow(-1, start, size).reshape((*each.shape, *given.shape)))
                start += size
            blocks.append(tree_unflatten(block, structure))
        jacobian = tree_unflatten(blocks, pushforward.output_structure)
        return (jacobian, pushforward.aux) if has_aux else jacobian

    return wrapper


@documented_like(grad)
def hessian(func: Func, argnums: Argnums = 0) -> Func:
    """The function that computes the second derivatives of `func` by its arguments `argnums`.

    >>> flambeau.func.hessian(lambda x: (x ** 3).sum())(flambeau.ones(2))
    tensor([[6., 0.],
            [0., 6.]])

    Returns:
        a function with the arguments of `func` that returns the matrix of second derivatives.
    """
    return jacfwd(jacrev(func, argnums), argnums)
