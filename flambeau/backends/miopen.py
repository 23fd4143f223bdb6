"""AMD's library of layers, which this build does not use."""

from __future__ import annotations

from ._flags import setters
from ._modules import settings_class

immediate = False
set_flags, flags = setters(globals(), immediate=False)

settings_class("MiopenModule", __name__, "immediate")
