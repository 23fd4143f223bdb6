"""TorchScript for phones, under the names of `torch.utils.mobile_optimizer`."""

from __future__ import annotations

import enum

from .._core.names.absent import Table

__getattr__, __dir__ = (
    Table(__name__)
    .absent("programs are not rewritten for phones", functions="generate_mobile_module_lints optimize_for_mobile")
    .parts()
)


class LintCode(enum.Enum):
    """What may be wrong with a model for phones."""

    BUNDLED_INPUT = 1
    REQUIRES_GRAD = 2
    DROPOUT = 3
    BATCHNORM = 4
