"""Checks an answer to the lesson about strides."""

from __future__ import annotations

from typing import Any

import flambeau

from ..checking import Steps, Wrong, asked_for

STEPS = Steps()
torch: Any = flambeau


def _geometry(answer: Any, shape: tuple[int, ...], strides: tuple[int, ...], size: int) -> tuple[Any, Any]:
    found = asked_for(answer, "window_geometry")(shape, strides, size)
    if not (isinstance(found, tuple) and len(found) == 2 and all(isinstance(each, (tuple, list)) for each in found)):
        raise Wrong(f"window_geometry returns two tuples, a shape and strides; yours returns {found!r}.")
    return tuple(found[0]), tuple(found[1])


@STEPS.step("the shape is right")
def shape(answer: Any) -> None:
    """How many windows there are."""
    got, _ = _geometry(answer, (5,), (4,), 3)
    if len(got) != 2:
        raise Wrong(f"The windows of a vector are a matrix, [windows, size]; your shape is {got}.")
    if got != (3, 3):
        raise Wrong(f"5 numbers have 3 windows of 3: they begin at 0, 1 and 2. The shape is (3, 3), yours is {got}.")
    got, _ = _geometry(answer, (2, 5), (20, 4), 2)
    if got != (2, 4, 2):
        raise Wrong(
            f"For an array of shape (2, 5) and size 2 the shape is (2, 4, 2), the first dimension kept; yours is {got}."
        )


@STEPS.step("the strides are right, and stay inside the memory")
def strides(answer: Any) -> None:
    """Strides, on a plain and on a spread array."""
    for given, step, where in (((5,), (4,), "one after the other"), ((5,), (16,), "16 bytes apart")):
        sizes, got = _geometry(answer, given, step, 3)
        last = sum((count - 1) * each for count, each in zip(sizes, got, strict=False))
        if len(got) != 2 or last > 4 * step[0]:
            raise Wrong(
                f"Strides {got} lead {last} bytes behind the first element, the last one lies at {4 * step[0]}: "
                "out of bounds."
            )
        if got != (step[0], step[0]):
            raise Wrong(
                f"The elements lie {where}: the next window begins {step[0]} bytes further, and so does the next "
                "element of a "
                f"window. The strides are {(step[0], step[0])}, yours are {got}. The array's own strides say how "
                "far apart "
                "its elements are; do not assume 4 bytes."
            )
    _, got = _geometry(answer, (2, 5), (20, 4), 2)
    if got != (20, 4, 4):
        raise Wrong(
            f"For strides (20, 4) the windows' are (20, 4, 4): earlier dimensions keep theirs; yours are {got}."
        )


@STEPS.step("it is a view: no number is copied")
def shares_memory(answer: Any) -> None:
    """Values, and writes through the view."""
    windows = asked_for(answer, "windows", "primitive")
    x = torch.arange(10.0)[::2]
    result = windows(x, 3)
    if result.tolist() != [[0.0, 2.0, 4.0], [2.0, 4.0, 6.0], [4.0, 6.0, 8.0]]:
        raise Wrong(f"The windows of [0, 2, 4, 6, 8] are wrong: {result.tolist()}.")
    x[2] = 100.0
    if result[0, 2].item() != 100.0 or result.untyped_storage().data_ptr() != x.untyped_storage().data_ptr():
        raise Wrong(
            "Writing to the array does not show in the windows: they are a copy. Give as_strided the array itself."
        )
    if result._base is None:
        raise Wrong("The engine does not know that the result shares memory: keep view=True in the decorator.")


@STEPS.step("the gradient adds what an element got in all its windows")
def gradient(answer: Any) -> None:
    """The gradient of a sum, of single windows, and of batches."""
    windows = asked_for(answer, "windows", "primitive")
    x = torch.arange(4.0, dtype=torch.float64, requires_grad=True)
    (got,) = torch.autograd.grad(windows(x, 3).sum(), x)
    if got.tolist() == [1.0, 1.0, 1.0, 1.0]:
        raise Wrong(
            "Elements 1 and 2 are in two windows each and get two gradients: add them, do not put one over the other."
        )
    if got.tolist() != [1.0, 2.0, 2.0, 1.0]:
        raise Wrong(f"The gradient of windows(x, 3).sum() for four elements is [1, 2, 2, 1]; yours is {got.tolist()}.")
    batch = torch.randn(2, 5, dtype=torch.float64, requires_grad=True)
    weights = torch.randn(2, 4, 2, dtype=torch.float64)
    if not torch.autograd.gradcheck(lambda t: windows(t, 2) * weights, (batch,), raise_exception=False):
        raise Wrong(
            "gradcheck finds another gradient: element i of window w is element w + i of the array, in every row."
        )


@STEPS.step("a change of the view in place reaches the array, and its gradient")
def change_in_place(answer: Any) -> None:
    """The engine's view bookkeeping works with the op."""
    windows = asked_for(answer, "windows", "primitive")
    leaf = torch.ones(4, dtype=torch.float64, requires_grad=True)
    x = leaf * 1
    windows(x, 2)[0].mul_(3)
    if x.tolist() != [3.0, 3.0, 1.0, 1.0]:
        raise Wrong(f"windows(x, 2)[0].mul_(3) should make x [3, 3, 1, 1]; it is {x.tolist()}.")
    (got,) = torch.autograd.grad(x.sum(), leaf)
    if got.tolist() != [3.0, 3.0, 1.0, 1.0]:
        raise Wrong(f"After that change the gradient of x.sum() is [3, 3, 1, 1]; yours is {got.tolist()}.")
