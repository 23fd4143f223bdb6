"""Building blocks of neural networks."""

from __future__ import annotations

from typing import Any

from .._core.names.absent import Table
from . import attention as attention
from . import functional as functional
from . import init as init
from . import modules as modules
from . import parallel as parallel
from . import parameter as parameter
from . import utils as utils
from .modules import *  # noqa: F403
from .parallel import DataParallel as DataParallel
from .parameter import Buffer as Buffer
from .parameter import Parameter as Parameter
from .parameter import UninitializedBuffer as UninitializedBuffer
from .parameter import UninitializedParameter as UninitializedParameter

__getattr__, __dir__ = (
    Table(__name__).submodules("backends common_types cpp grad intrinsic qat quantizable quantized").parts()
)


def factory_kwargs(kwargs: dict[str, Any] | None) -> dict[str, Any]:
    """What of a module's keyword arguments is meant for factory functions: `device`, `dtype`, `memory_format`.

    They may also come in a dictionary `factory_kwargs`, but not in both ways at once; other names are an error.

    Args:
        kwargs (dict, optional): keyword arguments; None means none.

    Returns:
        dict: those for factory functions.

    Example:
        >>> sorted(torch.nn.factory_kwargs({"device": "cpu", "dtype": torch.float64}).items())
        [('device', 'cpu'), ('dtype', torch.float64)]
    """
    if kwargs is None:
        return {}
    plain = {"device", "dtype", "memory_format"}
    unexpected = kwargs.keys() - plain - {"factory_kwargs"}
    if unexpected:
        raise TypeError(f"unexpected kwargs {unexpected}")
    chosen = dict(kwargs.get("factory_kwargs", {}))
    for name in plain & kwargs.keys():
        if name in chosen:
            raise TypeError(f"{name} specified twice, in **kwargs and in factory_kwargs")
        chosen[name] = kwargs[name]
    return chosen
