"""Sums, products and joins as modules: so they can be watched, and computed on codes later."""

from __future__ import annotations

from typing import Any

import flambeau as torch
from flambeau import nn

from .utils import output_parameters, requantized

__all__ = ["FXFloatFunctional", "FloatFunctional", "QFunctional"]


class _Functions:
    """The functions, each of whose results passes `_finish`."""

    def _finish(self, result: Any, like: Any) -> Any:
        raise NotImplementedError

    def _plain(self, value: Any) -> Any:
        return value

    def add(self, x: Any, y: Any) -> Any:
        """The sum `x + y`, of floats or of codes."""
        return self._finish(torch.add(self._plain(x), self._plain(y)), x)

    def mul(self, x: Any, y: Any) -> Any:
        """The product `x * y`, of floats or of codes."""
        return self._finish(torch.mul(self._plain(x), self._plain(y)), x)

    def matmul(self, x: Any, y: Any) -> Any:
        """The product of matrices `x @ y`, of floats or of codes."""
        return self._finish(torch.matmul(self._plain(x), self._plain(y)), x)

    def add_relu(self, x: Any, y: Any) -> Any:
        """The sum `relu(x + y)`, of floats or of codes."""
        return self._finish(torch.relu(torch.add(self._plain(x), self._plain(y))), x)

    def cat(self, x: Any, dim: int = 0) -> Any:
        """Tensors joined along a dimension."""
        return self._finish(torch.cat([self._plain(each) for each in x], dim), x[0])


class FloatFunctional(_Functions, nn.Module):
    """The functions on floats; an observer sees their results."""

    def __init__(self) -> None:
        nn.Module.__init__(self)
        self.activation_post_process: Any = nn.Identity()

    def forward(self, x: Any) -> Any:
        """An error: call one of the functions."""
        raise RuntimeError("FloatFunctional is not intended to use the 'forward'. Please use the underlying operation")

    def _finish(self, result: Any, like: Any) -> Any:
        return self.activation_post_process(result)

    def add_scalar(self, x: Any, y: float) -> Any:
        """`x + y` with a number."""
        return torch.add(x, y)

    def mul_scalar(self, x: Any, y: float) -> Any:
        """`x * y` with a number."""
        return torch.mul(x, y)


class FXFloatFunctional(_Functions, nn.Module):
    """The functions on floats, unseen."""

    def forward(self, x: Any) -> Any:
        """An error: call one of the functions."""
        raise RuntimeError(
            "FXFloatFunctional is not intended to use the 'forward'. Please use the underlying operation"
        )

    def _finish(self, result: Any, like: Any) -> Any:
        return result

    def add_scalar(self, x: Any, y: float) -> Any:
        """`x + y` with a number."""
        return torch.add(x, y)

    def mul_scalar(self, x: Any, y: float) -> Any:
        """`x * y` with a number."""
        return torch.mul(x, y)


class QFunctional(_Functions, nn.Module):
    """The functions on codes; results have one scale and one zero point."""

    def __init__(self) -> None:
        nn.Module.__init__(self)
        self.scale = 1.0
        self.zero_point = 0
        self.activation_post_process: Any = nn.Identity()

    def _save_to_state_dict(self, destination: Any, prefix: str, keep_vars: bool) -> None:
        super()._save_to_state_dict(destination, prefix, keep_vars)
        destination[prefix + "scale"] = torch.tensor(self.scale)
        destination[prefix + "zero_point"] = torch.tensor(self.zero_point)

    def _load_from_state_dict(self, state_dict: Any, prefix: str, *further: Any) -> None:
        self.scale = float(state_dict.pop(prefix + "scale"))
        self.zero_point = int(state_dict.pop(prefix + "zero_point"))
        super()._load_from_state_dict(state_dict, prefix, *further)

    def extra_repr(self) -> str:
        """Scale and zero point."""
        return f"scale={self.scale}, zero_point={self.zero_point}"

    def _plain(self, value: Any) -> Any:
        return value.dequantize()

    def _finish(self, result: Any, like: Any) -> Any:
        return self.activation_post_process(requantized(result, like, self.scale, self.zero_point))

    def forward(self, x: Any) -> Any:
        """An error: call one of the functions."""
        raise RuntimeError("Functional is not intended to use the 'forward'. Please use the underlying operation")

    def add_scalar(self, x: Any, y: float) -> Any:
        """`x + y` with a number, which moves the zero point."""
        return torch.ops.quantized.add(x, y)

    def mul_scalar(self, x: Any, y: float) -> Any:
        """`x * y` with a number, which changes the scale."""
        return torch.ops.quantized.mul(x, y)

    @classmethod
    def from_float(cls, mod: Any, use_precomputed_fake_quant: bool = False) -> QFunctional:
        """The functions on codes for those on floats that were watched."""
        if type(mod) is not FloatFunctional:
            raise AssertionError("QFunctional.from_float expects an instance of FloatFunctional")
        made = cls()
        made.scale, made.zero_point = output_parameters(mod)
        return made
