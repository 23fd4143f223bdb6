"""Modules in one, whose weights are rounded in training, under the names of `torch.ao.nn.intrinsic.qat`."""

from .modules import *  # noqa: F403
from .modules import __all__ as __all__
