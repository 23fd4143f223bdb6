"""A test finds the settings of the process as they were, whatever others did."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import flambeau

from .global_state import SETTINGS, allow_settings, left_as_found
from .oracle import needs_pytorch, pytorch

OTHER: dict[str, Callable[[Any], object]] = {
    "default dtype": lambda T: T.set_default_dtype(T.float64),
    "gradients": lambda T: T.set_grad_enabled(False),
    "threads": lambda T: T.set_num_threads(T.get_num_threads() + 1),
    "deterministic": lambda T: T.use_deterministic_algorithms(True, warn_only=True),
    "every warning": lambda T: T.set_warn_always(True),
    "float32 products": lambda T: T.set_float32_matmul_precision("high"),
    "autocast": lambda T: T.set_autocast_enabled("cpu", True),
    "anomalies": lambda T: T.autograd.set_detect_anomaly(True),
    "cudnn.enabled": lambda T: setattr(T.backends.cudnn, "enabled", False),
    "cudnn.benchmark": lambda T: setattr(T.backends.cudnn, "benchmark", True),
    "cudnn.deterministic": lambda T: setattr(T.backends.cudnn, "deterministic", True),
    "mkldnn.enabled": lambda T: setattr(T.backends.mkldnn, "enabled", False),
}


@needs_pytorch
def test_every_setting_comes_back() -> None:
    libraries = (flambeau, pytorch)
    found = [{name: tell(T) for name, (tell, _) in SETTINGS.items()} for T in libraries]
    with left_as_found(*libraries):
        for T in libraries:
            for change in OTHER.values():
                change(T)
        changed = [{name: tell(T) for name, (tell, _) in SETTINGS.items()} for T in libraries]
        for before, after in zip(found, changed, strict=True):
            assert [name for name in SETTINGS if before[name] == after[name]] == []
    assert [{name: tell(T) for name, (tell, _) in SETTINGS.items()} for T in libraries] == found


@needs_pytorch
def test_flags_may_be_set_after_the_operator_database_was_imported() -> None:
    pytorch.backends.disable_global_flags()
    allow_settings(pytorch)
    pytorch.backends.cudnn.benchmark = True
    assert pytorch.backends.cudnn.benchmark
