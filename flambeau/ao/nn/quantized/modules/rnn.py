"""An LSTM whose parts are quantized."""

from __future__ import annotations

from typing import Any, NoReturn

import flambeau as torch

from ...._constructors import shown_as
from ...quantizable.modules import rnn

__all__ = ["LSTM"]


class LSTM(rnn.LSTM):
    """A quantizable LSTM after it was watched and converted."""

    _FLOAT_MODULE: Any = rnn.LSTM

    _get_name = shown_as("Quantized{}")

    @classmethod
    def from_float(cls, *args: Any, **kwargs: Any) -> NoReturn:
        """An error: the layer is watched first."""
        raise NotImplementedError(
            "It looks like you are trying to convert a non-observed LSTM module. Please, see the examples on "
            "quantizable LSTMs."
        )

    @classmethod
    def from_observed(cls, other: Any) -> LSTM:
        """The quantized layer of one that was watched."""
        if not isinstance(other, cls._FLOAT_MODULE):
            raise AssertionError(f"from_observed expects a {cls._FLOAT_MODULE.__name__}, not a {type(other).__name__}")
        made: LSTM = torch.ao.quantization.convert(other, inplace=False, remove_qconfig=True)
        made.__class__ = cls
        return made
