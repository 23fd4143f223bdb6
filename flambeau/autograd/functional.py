"""Derivatives of functions: products with the Jacobian and the Hessian, and the matrices themselves.

Every function here takes `func` and its `inputs`, a tensor or a tuple of tensors, and answers in the same form: a
single tensor for a single tensor, a tuple for a tuple.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from .._core.tensor import Tensor
from .._core.text.inherited_docs import documented_like
from .._dispatch.public.overrides import has_override, run_override
from .._dispatch.public.registry import public_function
from .._ops.create.constants import eye
from .._ops.create.like import ones_like, zeros_like
from .._ops.shape.join import stack
from . import forward_ad, grad
from .grad_mode import enable_grad

Tensors = tuple[Tensor, ...]
OptionalTensors = tuple[Tensor | None, ...]

__all__ = ["hessian", "hvp", "jacobian", "jvp", "vhp", "vjp"]

Func = Callable[..., Any]

_OUTPUTS = "outputs of the user-provided function"


def vjp(func: Func, inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False) -> tuple[Any, Any]:
    """The outputs of `func`, and the product of the row vector `v` with its Jacobian.

    >>> import flambeau
    >>> flambeau.autograd.functional.vjp(lambda x: (x * x).sum(), flambeau.tensor([1., 2.]))
    (tensor(5.), tensor([2., 4.]))

    Args:
        func (Callable): the function to differentiate.
        inputs: the point: a tensor, or a tuple of tensors.
        v: the vector, of the shape of the inputs or outputs; it may be left out where that has one element.
        create_graph (bool): whether the gradients can be differentiated again. Default: `False`.
        strict (bool): whether an output that does not depend on an input raises an error, in place of giving zeros.
            Default: `False`.

    Returns:
        the outputs, and a product for each input.
    """
    with enable_grad():
        inputs, single_input = _prepare_inputs(inputs, "vjp", create_graph)
        outputs, single_output = _call(func, inputs, "vjp", strict)
        if v is None:
            if len(outputs) != 1 or outputs[0].nelement() != 1:
                raise RuntimeError(
                    "The vector v can only be None if the user-provided function returns a single Tensor with a"
                    " single element."
                )
            vector: OptionalTensors = (None,)
        else:
            vector = _prepare_vector(v, outputs, "vjp", single_output)
        product = _grad(outputs, inputs, vector, create_graph)
        filled = _fill(product, inputs, create_graph, strict, _MISSING_OUTPUT, _CONSTANT_JACOBIAN)
    return _answer(outputs, single_output, create_graph), _answer(filled, single_input, create_graph)


@documented_like(vjp)
def jvp(func: Func, inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False) -> tuple[Any, Any]:
    """The outputs of `func`, and the product of its Jacobian with the column vector `v`.

    The vector-Jacobian product is linear in its vector, so that differentiating it by that vector gives the other
    product: any function with a twice differentiable backward has one, with no forward-mode formula.

    >>> import flambeau
    >>> x = flambeau.tensor([1., 2.])
    >>> flambeau.autograd.functional.jvp(lambda x: x * x, x, flambeau.ones(2))
    (tensor([1., 4.]), tensor([2., 4.]))

    Returns:
        the outputs, and a product for each of them.
    """
    with enable_grad():
        vector, _, inputs = _prepare_inputs_and_vector(inputs, v, "jvp", create_graph)
        outputs, single_output = _call(func, inputs, "jvp", strict)
        row = tuple(zeros_like(output, requires_grad=True) for output in _differentiable(outputs))
        gradient = _grad(_differentiable(outputs), inputs, row, create_graph=True)
        _check_present(gradient, strict, _MISSING_OUTPUT)
        gradient = _zeros_for_none(gradient, inputs)
        found = iter(_grad(gradient, row, vector, create_graph))
        product = tuple(next(found) if _is_differentiable(output) else None for output in outputs)
        filled = _fill(product, outputs, create_graph, strict, _MISSING_ROW, _CONSTANT_JACOBIAN)
    return _answer(outputs, single_output, create_graph), _answer(filled, single_output, create_graph)


@documented_like(vjp)
def vhp(func: Func, inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False) -> tuple[Any, Any]:
    """The value of the scalar function `func`, and the product of the row vector `v` with its Hessian.

    >>> import flambeau
    >>> flambeau.autograd.functional.vhp(lambda x: (x ** 3).sum(), flambeau.tensor([1., 2.]), flambeau.ones(2))
    (tensor(9.), tensor([ 6., 12.]))

    Returns:
        the value, and a product for each input.
    """
    with enable_grad():
        vector, single_input, inputs = _prepare_inputs_and_vector(inputs, v, "vhp", create_graph)
        output, gradient = _scalar_gradient(func, inputs, "vhp", strict)
        product = _grad(gradient, inputs, vector, create_graph)
        filled = _fill(product, inputs, create_graph, strict, _MISSING_GRADIENT, _CONSTANT_HESSIAN)
    return _answer((output,), True, create_graph), _answer(filled, single_input, create_graph)


@documented_like(vjp)
def hvp(func: Func, inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False) -> tuple[Any, Any]:
    """The value of the scalar function `func`, and the product of its Hessian with the column vector `v`.

    It differentiates once more than `vhp`, which gives the same for every function with a symmetric Hessian.

    >>> import flambeau
    >>> flambeau.autograd.functional.hvp(lambda x: (x ** 3).sum(), flambeau.tensor([1., 2.]), flambeau.ones(2))
    (tensor(9.), tensor([ 6., 12.]))

    Returns:
        the value, and a product for each input.
    """
    with enable_grad():
        vector, single_input, inputs = _prepare_inputs_and_vector(inputs, v, "hvp", create_graph)
        output, gradient = _scalar_gradient(func, inputs, "hvp", strict)
        row = tuple(zeros_like(item, requires_grad=True) for item in inputs)
        row_product = _grad(gradient, inputs, row, create_graph=True)
        _check_present(row_product, strict, _MISSING_GRADIENT)
        row_product = _zeros_for_none(row_product, inputs)
        product = _grad(row_product, row, vector, create_graph)
        filled = _fill(product, inputs, create_graph, strict, _MISSING_HESSIAN_ROW, _CONSTANT_HESSIAN)
    return _answer((output,), True, create_graph), _answer(filled, single_input, create_graph)


def jacobian(
    func: Func,
    inputs: Any,
    create_graph: bool = False,
    strict: bool = False,
    vectorize: bool = False,
    strategy: str = "reverse-mode",
) -> Any:
    """The Jacobian of `func`: for one input and one output, a tensor of the output's shape followed by the input's.

    Several outputs give a tuple over the outputs, several inputs a tuple over the inputs, both a tuple of tuples.

    >>> import flambeau
    >>> flambeau.autograd.functional.jacobian(lambda x: x * x, flambeau.tensor([1., 2.]))
    tensor([[2., 0.],
            [0., 4.]])

    Args:
        func (Callable): the function to differentiate.
        inputs: the point: a tensor, or a tuple of tensors.
        create_graph (bool): whether the gradients can be differentiated again. Default: `False`.
        strict (bool): whether an output that does not depend on an input raises an error, in place of giving zeros.
            Default: `False`.
        vectorize (bool): whether to compute all rows at once by `vmap`, which is quicker and takes more memory.
            Default: `False`.
        strategy (str): "reverse-mode", or "forward-mode", which needs `vectorize=True` and suits functions of few
            inputs. Default: `"reverse-mode"`.

    Returns:
        Tensor, or tuples of Tensors: one block for each output and input.
    """
    if strategy not in ("forward-mode", "reverse-mode"):
        raise AssertionError(
            'Expected strategy to be either "forward-mode" or "reverse-mode". Hint: forward mode costs one pass for'
            " each input element, reverse mode one for each output element."
        )
    if strategy == "forward-mode":
        _check_forward_mode_options(create_graph, strict, vectorize)
        return _forward_jacobian(func, inputs)
    with enable_grad():
        prepared, single_input = _prepare_inputs(inputs, "jacobian", create_graph)
        outputs, single_output = _call(func, prepared, "jacobian", strict)
        if vectorize and strict:
            raise RuntimeError(
                "torch.autograd.functional.jacobian: `strict=True` and `vectorized=True` are not supported together."
                " Please either set `strict=False` or `vectorize=False`."
            )
        rows = _rows_at_once if vectorize else _rows_one_by_one
        matrix = tuple(
            tuple(
                column.view(tuple(output.shape) + tuple(item.shape))
                for column, item in zip(rows(index, output, prepared, create_graph, strict), prepared, strict=True)
            )
            for index, output in enumerate(outputs)
        )
    answers = tuple(_answer(row, single_input, create_graph) for row in matrix)
    return answers[0] if single_output else answers


@documented_like(jacobian)
def hessian(
    func: Func,
    inputs: Any,
    create_graph: bool = False,
    strict: bool = False,
    vectorize: bool = False,
    outer_jacobian_strategy: str = "reverse-mode",
) -> Any:
    """The Hessian of the scalar function `func`: for one input, a tensor of the input's shape twice over.

    Several inputs give a tuple of tuples; entry `[i][j]` holds the derivatives by input `i` and input `j`.

    >>> import flambeau
    >>> flambeau.autograd.functional.hessian(lambda x: (x ** 3).sum(), flambeau.tensor([1., 2.]))
    tensor([[ 6.,  0.],
            [ 0., 12.]])

    Args:
        outer_jacobian_strategy (str): "reverse-mode", or "forward-mode", which needs `vectorize=True`. Default:
            `"reverse-mode"`.

    Returns:
        Tensor, or tuples of Tensors: one block for each pair of inputs.
    """
    inputs, single_input = _as_tuple(inputs, "inputs", "hessian")
    if outer_jacobian_strategy not in ("forward-mode", "reverse-mode"):
        raise AssertionError('Expected strategy to be either "forward-mode" or "reverse-mode".')

    def scalar_function(*items: Tensor) -> Tensor:
        outputs, single_output = _as_tuple(func(*items), _OUTPUTS, "hessian")
        if strict:
            _check_outputs(outputs)
        return _single_scalar(outputs, single_output, "hessian")

    def gradient_function(*items: Tensor) -> Tensors:
        if outer_jacobian_strategy == "forward-mode":
            items = tuple(item.requires_grad_() for item in items)
        gradient: Tensors = jacobian(scalar_function, items, create_graph=True)
        # A one-element output of shape (1,) would put that extra 1 in front of every block.
        gradient = tuple(block.view(item.shape) for block, item in zip(gradient, items, strict=True))
        if strict:
            _check_depends_on_inputs(gradient)
        return gradient

    matrix: tuple[Tensors, ...] = jacobian(
        gradient_function, inputs, create_graph, strict, vectorize, outer_jacobian_strategy
    )
    return matrix[0][0] if single_input else matrix


# Messages of strict mode; {} is the number of the input or output.
_MISSING_OUTPUT = (
    "The output of the user-provided function is independent of input {}. This is not allowed in strict mode."
)
_MISSING_ROW = (
    "The gradient with respect to the input is independent of entry {} in the grad_outputs when using the double"
    " backward trick to compute forward mode gradients. This is not allowed in strict mode."
)
_MISSING_GRADIENT = (
    "The jacobian of the user-provided function is independent of input {}. This is not allowed in strict mode."
)
_MISSING_HESSIAN_ROW = (
    "The hessian of the user-provided function is independent of entry {} in the grad_jacobian. This is not allowed"
    " in strict mode."
)
_CONSTANT_JACOBIAN = (
    "The jacobian of the user-provided function is independent of input {}. This is not allowed in strict mode when"
    " create_graph=True."
)
_CONSTANT_HESSIAN = (
    "The hessian of the user-provided function is independent of input {}. This is not allowed in strict mode when"
    " create_graph=True."
)


def _as_tuple(value: Any, argument: str, caller: str) -> tuple[Tensors, bool]:
    """`value` as a tuple of tensors, and whether it was a single tensor."""
    if isinstance(value, Tensor):
        return (value,), True
    expected = f"The {argument} given to {caller} must be either a Tensor or a tuple of Tensors but the"
    if not isinstance(value, tuple):
        raise TypeError(f"{expected} given {argument} has type {type(value)}.")
    for index, item in enumerate(value):
        if not isinstance(item, Tensor):
            raise TypeError(f"{expected} value at index {index} has type {type(item)}.")
    return value, False


def _prepare_inputs(inputs: Any, caller: str, create_graph: bool) -> tuple[Tensors, bool]:
    items, single = _as_tuple(inputs, "inputs", caller)
    return tuple(_separate(item, create_graph) for item in items), single


def _separate(item: Tensor, create_graph: bool) -> Tensor:
    """A tensor of its own for each input, so that one passed twice is still two variables."""
    if create_graph and item.requires_grad:
        return item.view_as(item)  # connected: the answer can be differentiated by the caller's tensor
    return item.detach().requires_grad_()


def _prepare_inputs_and_vector(inputs: Any, v: Any, caller: str, create_graph: bool) -> tuple[Tensors, bool, Tensors]:
    """The vector over the inputs, whether the input is a single tensor, and the inputs."""
    items, single = _prepare_inputs(inputs, caller, create_graph)
    if v is not None:
        return _prepare_vector(v, items, caller, single), single, items
    if len(items) != 1 or items[0].nelement() != 1:
        raise RuntimeError(
            "The vector v can only be None if the input to the user-provided function is a single Tensor with a"
            " single element."
        )
    return (ones_like(items[0]),), single, items


def _prepare_vector(v: Any, like: Tensors, caller: str, single: bool) -> Tensors:
    vector, _ = _as_tuple(v, "v", caller)
    if len(vector) != len(like):
        if single:
            raise RuntimeError("The given v should contain a single Tensor.")
        raise RuntimeError(f"v is a tuple of invalid length: should be {len(like)} but got {len(vector)}.")
    for index, (entry, other) in enumerate(zip(vector, like, strict=True)):
        if entry.shape != other.shape:
            where = "" if single else f"Entry {index} in "
            raise RuntimeError(f"{where}v has invalid size: should be {other.shape} but got {entry.shape}.")
    return vector


def _call(func: Func, inputs: Tensors, caller: str, strict: bool) -> tuple[Tensors, bool]:
    outputs, single = _as_tuple(func(*inputs), _OUTPUTS, caller)
    if strict:
        _check_outputs(outputs)
    return outputs, single


def _check_outputs(outputs: Tensors) -> None:
    for index, output in enumerate(outputs):
        if not output.requires_grad:
            raise RuntimeError(
                f"Output {index} of the user-provided function does not require gradients. The outputs must be"
                " computed in a differentiable manner from the input when running in strict mode."
            )


def _single_scalar(outputs: Tensors, single: bool, caller: str) -> Tensor:
    if not single:
        raise RuntimeError(f"The function given to {caller} should return a single Tensor")
    if outputs[0].nelement() != 1:
        raise RuntimeError(f"The Tensor returned by the function given to {caller} should contain a single element")
    return outputs[0]


def _scalar_gradient(func: Func, inputs: Tensors, caller: str, strict: bool) -> tuple[Tensor, Tensors]:
    """The value of a scalar function, and its gradient as a differentiable function of the inputs."""
    output = _single_scalar(*_call(func, inputs, caller, strict), caller)
    gradient = _grad((output,), inputs, (None,), create_graph=True)
    _check_present(gradient, strict, _MISSING_OUTPUT)
    filled = _zeros_for_none(gradient, inputs)
    if strict:
        _check_depends_on_inputs(filled)
    return output, filled


def _check_depends_on_inputs(gradient: Tensors) -> None:
    for index, entry in enumerate(gradient):
        if not entry.requires_grad:
            raise RuntimeError(
                "While computing the hessian, found that the jacobian of the user-provided function with respect to"
                f" input {index} is independent of the input. This is not allowed in strict mode. The function must"
                " be twice differentiable and not linear in this input."
            )


def _is_differentiable(tensor: Tensor) -> bool:
    return bool(tensor.dtype.is_floating_point or tensor.dtype.is_complex)


def _differentiable(tensors: Tensors) -> Tensors:
    return tuple(tensor for tensor in tensors if _is_differentiable(tensor))


def _grad(outputs: Tensors, inputs: Tensors, vector: OptionalTensors, create_graph: bool) -> OptionalTensors:
    """`autograd.grad` that leaves out the outputs without a graph, and gives None where nothing connects."""
    connected = [(output, entry) for output, entry in zip(outputs, vector, strict=True) if output.requires_grad]
    if not connected:
        return (None,) * len(inputs)
    found: OptionalTensors = grad(
        tuple(output for output, _ in connected),
        inputs,
        tuple(entry for _, entry in connected),
        create_graph=create_graph,
        retain_graph=True,
        allow_unused=True,
    )
    return found


def _check_present(found: OptionalTensors, strict: bool, message: str) -> None:
    if strict:
        for index, entry in enumerate(found):
            if entry is None:
                raise RuntimeError(message.format(index))


def _zeros_for_none(found: OptionalTensors, like: Tensors) -> Tensors:
    return tuple(zeros_like(other) if entry is None else entry for entry, other in zip(found, like, strict=True))


def _fill(
    found: OptionalTensors, like: Tensors, create_graph: bool, strict: bool, missing: str, constant: str
) -> Tensors:
    """Zeros where nothing connects; in strict mode, an error there and where the answer cannot be differentiated."""
    _check_present(found, strict, missing)
    filled = _zeros_for_none(found, like)
    if strict and create_graph:
        for index, entry in enumerate(filled):
            if not entry.requires_grad:
                raise RuntimeError(constant.format(index))
    return filled


def _answer(tensors: Tensors, single: bool, create_graph: bool) -> Any:
    """The caller's view of a result: in the form of the argument, and without a graph unless one was asked for."""
    if not create_graph:
        tensors = tuple(tensor.detach() for tensor in tensors)
    return tensors[0] if single else tensors


def _rows_one_by_one(index: int, output: Tensor, inputs: Tensors, create_graph: bool, strict: bool) -> Iterator[Tensor]:
    """For each input, the derivatives of every element of `output`, stacked: one backward for each element."""
    rows = []
    for element in output.reshape(-1):
        found = _grad((element,), inputs, (None,), create_graph)
        missing = f"Output {index} of the user-provided function is independent of input {{}}. This is not allowed in"
        rows.append(_fill(found, inputs, create_graph, strict, missing + " strict mode.", _CONSTANT_JACOBIAN))
    for position, item in enumerate(inputs):
        yield _stacked([row[position] for row in rows]) if rows else item.new_zeros((0, *item.shape))


def _stacked(rows: list[Tensor]) -> Tensor:
    """Rows as a matrix, by the function that users' classes see."""
    if has_override(rows):
        stacked: Tensor = run_override(public_function("", "stack"), rows, (rows,), {})
        return stacked
    return stack(rows)


def _rows_at_once(index: int, output: Tensor, inputs: Tensors, create_graph: bool, strict: bool) -> Iterator[Tensor]:
    """For each input, the derivatives of every element of `output`: one backward over the batch of unit vectors."""
    count = output.nelement()
    found: OptionalTensors = (None,) * len(inputs)
    if output.requires_grad and count:
        basis = eye(count, dtype=output.dtype, device=output.device).view(count, *output.shape)
        found = grad(
            (output,),
            inputs,
            (basis,),
            create_graph=create_graph,
            retain_graph=True,
            allow_unused=True,
            is_grads_batched=True,
        )
    for entry, item in zip(found, inputs, strict=True):
        yield item.new_zeros((count, *item.shape)) if entry is None else entry


def _check_forward_mode_options(create_graph: bool, strict: bool, vectorize: bool) -> None:
    if not vectorize:
        raise NotImplementedError(
            "Computing Jacobian using forward-AD or forward-over-reverse Hessian is only implemented for"
            " `vectorize=True`."
        )
    if create_graph:
        raise NotImplementedError(
            'torch.autograd.functional.jacobian: `create_graph=True` and `strategy="forward-mode"` are not supported'
            ' together (yet). Please either set `create_graph=False` or `strategy="reverse-mode"`.'
        )
    if strict:
        raise RuntimeError(
            'torch.autograd.functional.jacobian: `strict=True` and `strategy="forward-mode"` are not supported'
            ' together (yet). Please either set `strict=False` or `strategy="reverse-mode"`.'
        )


def _forward_jacobian(func: Func, inputs: Any) -> Any:
    """The Jacobian by forward mode, one call of `func` for each element of the inputs."""
    items, single_input = _as_tuple(inputs, "inputs", "jacobian")
    outputs, single_output = _as_tuple(func(*(item.detach() for item in items)), _OUTPUTS, "jacobian")
    matrix: list[list[Tensor]] = [[] for _ in outputs]
    for position, item in enumerate(items):
        columns: list[list[Tensor]] = [[] for _ in outputs]
        for unit in eye(item.nelement(), dtype=item.dtype, device=item.device):
            tangents = _tangents(func, items, position, unit.view(item.shape))
            for column, tangent, output in zip(columns, tangents, outputs, strict=True):
                column.append(zeros_like(output) if tangent is None else tangent)
        for blocks, column, output in zip(matrix, columns, outputs, strict=True):
            stacked = stack(column, dim=-1) if column else output.new_zeros((*output.shape, 0))
            blocks.append(stacked.view(tuple(output.shape) + tuple(item.shape)))
    answers = tuple(_answer(tuple(blocks), single_input, create_graph=False) for blocks in matrix)
    return answers[0] if single_output else answers


def _tangents(func: Func, items: Tensors, position: int, tangent: Tensor) -> OptionalTensors:
    with forward_ad.dual_level():
        duals = [item.detach() for item in items]
        duals[position] = forward_ad.make_dual(duals[position], tangent)
        outputs, _ = _as_tuple(func(*duals), _OUTPUTS, "jacobian")
        return tuple(forward_ad.unpack_dual(output).tangent for output in outputs)
