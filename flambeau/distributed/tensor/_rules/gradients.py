"""`autograd.grad` and `autograd.backward` of distributed tensors: each process differentiates its part."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ....autograd import backward, grad
from .._dtensor import DTensor, made


def grad_of(outputs: Sequence[Any], inputs: Sequence[Any], *, grad_outputs: Any = None, **options: Any) -> Any:
    """The gradients of distributed inputs, laid out as those of their `.grad`."""
    found = grad(_starts(outputs), [_part(each) for each in inputs], _given(outputs, grad_outputs), **options)
    return tuple(
        made(each, like._layout.of_gradient()) if isinstance(like, DTensor) and each is not None else each
        for each, like in zip(found, inputs, strict=True)
    )


def backward_of(tensors: Any, *, grad_tensors: Any = None, inputs: Any = None, **options: Any) -> None:
    """Adds to the gradients of the leaves."""
    outputs = (tensors,) if isinstance(tensors, DTensor) else tensors
    wanted = (inputs,) if isinstance(inputs, DTensor) else inputs
    parts = None if wanted is None else [_part(each) for each in wanted]
    backward(_starts(outputs), _given(outputs, grad_tensors), inputs=parts, **options)


def _starts(outputs: Sequence[Any]) -> list[Any]:
    return [each._start_of_backward() if isinstance(each, DTensor) else each for each in outputs]


def _part(value: Any) -> Any:
    return value._local_tensor if isinstance(value, DTensor) else value


def _given(outputs: Sequence[Any], gradients: Any) -> Any:
    """The parts of the gradients of `outputs`, moved to where each process needs them."""
    if gradients is None:
        return None
    listed = (gradients,) if isinstance(gradients, DTensor) else gradients
    return [
        each._redistributed(output._layout.of_gradient().placements).value
        if isinstance(each, DTensor) and isinstance(output, DTensor)
        else each
        for each, output in zip(listed, outputs, strict=True)
    ]
