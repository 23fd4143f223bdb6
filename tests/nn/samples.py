"""Small models that several files of tests use."""

from __future__ import annotations

from collections import OrderedDict
from typing import Any


def small(T: Any) -> Any:
    """A module with one member of each kind."""

    class Small(T.nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.w = T.nn.Parameter(T.ones(2))
            self.register_buffer("b", T.zeros(2))
            self.register_buffer("count", T.tensor(3), persistent=False)
            self.lin = T.nn.Linear(2, 2)
            self.x = 1

        def forward(self, input: Any) -> Any:
            return self.lin(input) * self.w + self.b

    return Small()


def tree(T: Any) -> Any:
    """Modules within modules; one shared, one missing, one shared parameter."""
    nn = T.nn
    shared = nn.Linear(2, 2)
    model = nn.Sequential(OrderedDict(a=shared, b=nn.Sequential(nn.BatchNorm1d(2), nn.ReLU()), c=shared, d=None))
    model.tied = nn.Linear(2, 2, bias=False)
    model.tied.weight = shared.weight
    return model
