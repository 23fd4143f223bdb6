"""Optimizers and learning-rate schedules.

>>> weight = flambeau.zeros(2, requires_grad=True)
>>> optimizer = flambeau.optim.SGD([weight], lr=0.1, momentum=0.9)
>>> scheduler = flambeau.optim.lr_scheduler.StepLR(optimizer, step_size=1, gamma=0.5)
>>> optimizer.zero_grad()
>>> (weight - 1).square().sum().backward()
>>> optimizer.step()
>>> scheduler.step()
>>> weight, scheduler.get_last_lr()
(tensor([0.2000, 0.2000], requires_grad=True), [0.05])
"""

from __future__ import annotations

import importlib
from typing import Any, ClassVar

from . import lr_scheduler as lr_scheduler
from ._adafactor import Adafactor
from ._muon import Muon
from .adadelta import Adadelta
from .adagrad import Adagrad
from .adam import Adam
from .adamax import Adamax
from .adamw import AdamW
from .asgd import ASGD
from .lbfgs import LBFGS
from .nadam import NAdam
from .optimizer import Optimizer
from .radam import RAdam
from .rmsprop import RMSprop
from .rprop import Rprop
from .sgd import SGD
from .sparse_adam import SparseAdam

__all__ = [
    "ASGD",
    "LBFGS",
    "SGD",
    "Adadelta",
    "Adafactor",
    "Adagrad",
    "Adam",
    "AdamW",
    "Adamax",
    "Muon",
    "NAdam",
    "Optimizer",
    "RAdam",
    "RMSprop",
    "Rprop",
    "SparseAdam",
    "lr_scheduler",
    "swa_utils",
]

Adafactor.__module__ = Muon.__module__ = __name__  # where PyTorch's pickles say that they are


def __getattr__(name: str) -> Any:
    if name == "swap_in_optimizer_params_and_state":
        return getattr(importlib.import_module("._swap_in", __name__), name)
    # `swa_utils` needs modules, which most programs have by then, and a script without them does not.
    if name in ("swa_utils", "_multi_tensor"):
        return importlib.import_module(f".{name}", __name__)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
