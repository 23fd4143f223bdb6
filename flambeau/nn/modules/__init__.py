"""The layers and containers of `flambeau.nn`, one file for each family, which lists its names in its `__all__`."""

# ruff: noqa: F403
from __future__ import annotations

from typing import TYPE_CHECKING

from .activation import *
from .adaptive import *
from .batchnorm import *
from .channelshuffle import *
from .container import *
from .conv import *
from .distance import *
from .dropout import *
from .flatten import *
from .fold import *
from .instancenorm import *
from .linear import *
from .linear_cross_entropy_options import LinearCrossEntropyOptions as LinearCrossEntropyOptions
from .loss import *
from .module import Module as Module
from .normalization import *
from .padding import *
from .pixelshuffle import *
from .pooling import *
from .rnn import *
from .sparse import *
from .transformer import *
from .upsampling import *

if not TYPE_CHECKING:  # for a type checker, the imports above are public as they stand
    __all__ = [name for name, value in sorted(globals().items()) if isinstance(value, type)]
