"""Optimizers that are asked to update many tensors at once, under the names of `torch.optim._multi_tensor`."""

from __future__ import annotations

import functools
from typing import Any

from . import ASGD as _ASGD
from . import SGD as _SGD
from . import Adadelta as _Adadelta
from . import Adagrad as _Adagrad
from . import Adam as _Adam
from . import Adamax as _Adamax
from . import AdamW as _AdamW
from . import NAdam as _NAdam
from . import RAdam as _RAdam
from . import RMSprop as _RMSprop
from . import Rprop as _Rprop


def _of_many(cls: type) -> Any:
    """The class with `foreach=True`."""

    initialize: Any = cls.__dict__["__init__"]
    return type(cls.__name__, (cls,), {"__init__": functools.partialmethod(initialize, foreach=True)})


ASGD, SGD, Adadelta, Adagrad, Adam, Adamax = map(_of_many, (_ASGD, _SGD, _Adadelta, _Adagrad, _Adam, _Adamax))
AdamW, NAdam, RAdam, RMSprop, Rprop = map(_of_many, (_AdamW, _NAdam, _RAdam, _RMSprop, _Rprop))
