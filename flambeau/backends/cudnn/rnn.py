"""What programs set for the recurrent layers of cuDNN, and what PyTorch's own layers ask of it."""

from __future__ import annotations

from typing import Any

from ..._core.process.gpu_choices import CHOICES
from .._modules import ContextProp, check_precision, settings_class

__all__ = ["ContextProp", "Unserializable", "get_cudnn_mode", "init_dropout_state"]

fp32_precision = "tf32"
_MODES = {"RNN_RELU": 0, "RNN_TANH": 1, "LSTM": 2, "GRU": 3}


def get_cudnn_mode(mode: Any) -> int:
    """The library's number for a kind of layer."""
    if isinstance(mode, int):
        return mode
    if mode not in _MODES:
        raise ValueError(f"Unknown mode: {mode}")
    return _MODES[mode]


class Unserializable:
    """Holds what a pickle leaves behind."""

    def __init__(self, inner: Any) -> None:
        self.inner = inner

    def get(self) -> Any:
        """What is held; None after unpickling."""
        return self.inner

    def __getstate__(self) -> str:
        return "<unserializable>"

    def __setstate__(self, state: Any) -> None:
        self.inner = None


def init_dropout_state(dropout: float, train: bool, dropout_seed: int, dropout_state: dict[str, Any]) -> Any:
    """The state of the random numbers of a layer's dropout, kept in `dropout_state` by device: without one, none."""
    from ...cuda import current_device

    name = f"desc_{current_device()}"
    if dropout_state.get(name + "_seed") != dropout_seed:
        dropout_state[name] = Unserializable((dropout if train else 0.0, dropout_seed))
        dropout_state[name + "_seed"] = dropout_seed
    return dropout_state[name].get()


def _take_effect(name: str, value: Any) -> None:
    check_precision(value)
    CHOICES.shortened_networks = value == "tf32"


settings_class("CudnnRNNModule", __name__, "fp32_precision", _take_effect, init_dropout_state=init_dropout_state)
