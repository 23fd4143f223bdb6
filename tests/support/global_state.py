"""The settings of a whole process: every test finds them as the one before it found them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

Setting = tuple[Callable[[Any], Any], Callable[[Any, Any], object]]
"""How a library tells a setting, and how it takes one."""


def _flag(backend: str, name: str) -> Setting:
    return (
        lambda T: getattr(getattr(T.backends, backend), name),
        lambda T, value: setattr(getattr(T.backends, backend), name, value),
    )


SETTINGS: dict[str, Setting] = {
    "default dtype": (lambda T: T.get_default_dtype(), lambda T, value: T.set_default_dtype(value)),
    "gradients": (lambda T: T.is_grad_enabled(), lambda T, value: T.set_grad_enabled(value)),
    "threads": (lambda T: T.get_num_threads(), lambda T, value: T.set_num_threads(value)),
    "deterministic": (
        lambda T: (T.are_deterministic_algorithms_enabled(), T.is_deterministic_algorithms_warn_only_enabled()),
        lambda T, value: T.use_deterministic_algorithms(value[0], warn_only=value[1]),
    ),
    "every warning": (lambda T: T.is_warn_always_enabled(), lambda T, value: T.set_warn_always(value)),
    "float32 products": (
        lambda T: T.get_float32_matmul_precision(),
        lambda T, value: T.set_float32_matmul_precision(value),
    ),
    "autocast": (lambda T: T.is_autocast_enabled("cpu"), lambda T, value: T.set_autocast_enabled("cpu", value)),
    "anomalies": (lambda T: T.is_anomaly_enabled(), lambda T, value: T.autograd.set_detect_anomaly(value)),
    "cudnn.enabled": _flag("cudnn", "enabled"),
    "cudnn.benchmark": _flag("cudnn", "benchmark"),
    "cudnn.deterministic": _flag("cudnn", "deterministic"),
    "mkldnn.enabled": _flag("mkldnn", "enabled"),
}


def allow_settings(pytorch: Any) -> None:
    """Let programs set PyTorch's flags again: its operator database forbids it to all who come after its import."""
    variables = pytorch.backends.disable_global_flags.__globals__  # the module in its place would not pass it on
    variables["__allow_nonbracketed_mutation_flag"] = True


@contextmanager
def left_as_found(*libraries: Any) -> Iterator[None]:
    """Put back what the body changed."""
    before = [{name: tell(T) for name, (tell, _) in SETTINGS.items()} for T in libraries]
    try:
        yield
    finally:
        for T, found in zip(libraries, before, strict=True):
            for name, (tell, take) in SETTINGS.items():
                if tell(T) != found[name]:
                    take(T, found[name])
