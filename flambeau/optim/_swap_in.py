"""Other parameters and states in an optimizer for a while."""

from __future__ import annotations

import contextlib
from collections import defaultdict
from collections.abc import Iterator
from typing import Any

from .._core.tensor import Tensor
from .optimizer import Optimizer


@contextlib.contextmanager
def swap_in_optimizer_params_and_state(
    optimizer: Optimizer, swapin_parameters: dict[str, Tensor], swapin_optim_state: dict[str, Any]
) -> Iterator[None]:
    """In this block the optimizer has these parameters, in the order of its own, and this state, as `state_dict` says.

    Tensors are taken as they are, so that steps change the ones given; the optimizer's own come back at the end.

    >>> weight, other = flambeau.ones(1, requires_grad=True), flambeau.zeros(1, requires_grad=True)
    >>> optimizer, other.grad = flambeau.optim.SGD([weight], lr=0.1), flambeau.ones(1)
    >>> with flambeau.optim.swap_in_optimizer_params_and_state(optimizer, {"w": other}, optimizer.state_dict()):
    ...     optimizer.step()
    >>> weight, other
    (tensor([1.], requires_grad=True), tensor([-0.1000], requires_grad=True))
    """
    given = list(swapin_parameters.values())
    count = sum(len(group["params"]) for group in optimizer.param_groups)
    if len(given) != count:
        raise ValueError(f"the optimizer has {count} parameters, but {len(given)} are swapped in")
    groups_before, state_before = optimizer.param_groups, optimizer.state
    numbers = [number for group in swapin_optim_state["param_groups"] for number in group["params"]]
    by_number = dict(zip(numbers, given, strict=True))
    optimizer.param_groups = [
        {**group, "params": [by_number[number] for number in group["params"]]}
        for group in swapin_optim_state["param_groups"]
    ]
    optimizer.state = defaultdict(
        dict, {by_number[number]: dict(values) for number, values in swapin_optim_state["state"].items()}
    )
    try:
        yield
    finally:
        optimizer.param_groups, optimizer.state = groups_before, state_before
