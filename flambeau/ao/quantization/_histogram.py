"""`HistogramObserver`: a range for codes that leaves out rare numbers where that makes the others more precise."""

from __future__ import annotations

import warnings
from typing import Any

import flambeau as torch

from .._constructors import RANGE_WITH_FACTORY, takes
from .observer import UniformQuantizationObserverBase
from .utils import is_per_tensor

_STEP = 1e-5
"""The share of the numbers that is left out at a time."""


class HistogramObserver(UniformQuantizationObserverBase):
    """Counts numbers in bins, and looks for the range whose codes make the smallest square error."""

    min_val: Any
    max_val: Any
    histogram: Any

    @takes("bins=2048", RANGE_WITH_FACTORY)
    def __init__(self, options: dict[str, Any]) -> None:
        if not is_per_tensor(options["qscheme"]):
            raise NotImplementedError("HistogramObserver's qscheme only support torch.per_tensor_symmetric and torch.per_tensor_affine.")  # noqa: E501  # fmt: skip
        if options["is_dynamic"]:
            raise NotImplementedError("HistogramObserver doesn't support dynamic quantization")
        bins = options.pop("bins")
        super().__init__(**options)
        self.bins = bins
        place, dtype = options["factory_kwargs"] or {}, options["dtype"]
        self.register_buffer("histogram", torch.zeros(bins, **place))
        self.register_buffer("min_val", torch.tensor(float("inf"), **place))
        self.register_buffer("max_val", torch.tensor(float("-inf"), **place))
        self.dst_nbins = 2 ** (torch.finfo(dtype).bits if dtype.is_floating_point else 8 * dtype.itemsize)
        self.upsample_rate = 16

    # ----- what was seen -------------------------------------------------------------------------------------------

    def forward(self, x_orig: Any) -> Any:
        """Count the numbers of a tensor, and give it back."""
        x = x_orig.detach()
        if x.numel() and not bool(x.isfinite().all()):
            warnings.warn("torch.inf detected in input tensor, ignoring input", stacklevel=2)
            x = x[x.abs() != float("inf")]
        if x.numel() == 0:
            return x_orig
        low, high = torch.aminmax(x)
        if self.min_val == float("inf") or self.max_val == float("-inf"):
            self.reset_histogram(x, low, high)
            return x_orig
        low, high = torch.min(self.min_val, low), torch.max(self.max_val, high)
        counted = torch.histc(x, self.bins, min=low.item(), max=high.item())
        self.histogram.copy_(self._in_bins_of(low, high) + counted)
        self.min_val.copy_(low)
        self.max_val.copy_(high)
        return x_orig

    def reset_histogram(self, x: Any, min_val: Any, max_val: Any) -> None:
        """Begin with the numbers of a tensor."""
        self.min_val.copy_(min_val)
        self.max_val.copy_(max_val)
        self.histogram.copy_(torch.histc(x, self.bins, min=min_val.item(), max=max_val.item()))

    def _in_bins_of(self, low: Any, high: Any) -> Any:
        """What was counted, in the bins of a wider range."""
        if low == self.min_val and high == self.max_val:
            return self.histogram
        if self.min_val == self.max_val:
            return torch.histc(self.min_val, self.bins, min=low.item(), max=high.item()) * self.histogram.sum()
        fine = self.bins * self.upsample_rate
        counts = self.histogram.repeat_interleave(self.upsample_rate) / self.upsample_rate
        width = (self.max_val - self.min_val) / fine
        middles = torch.linspace(self.min_val.item(), self.max_val.item(), fine + 1)[:-1] + 0.5 * width
        edges = torch.linspace(low.item(), high.item(), self.bins + 1)
        bins = (torch.bucketize(middles, edges, right=True) - 1).clamp(0, self.bins - 1)
        return torch.bincount(bins, weights=counts, minlength=self.bins)

    # ----- the range -----------------------------------------------------------------------------------------------

    def _error(self, first: int, last: int) -> float:
        """The square error of codes that span the bins from `first` to `last`, numbers spread evenly in their bins."""
        width = (self.max_val.item() - self.min_val.item()) / self.bins
        code_width = width * (last - first + 1) / self.dst_nbins
        if code_width == 0.0:
            return 0.0
        begin = (torch.arange(self.bins) - first) * width
        end = begin + width
        most = self.dst_nbins - 1
        code_of_begin = torch.div(begin, code_width, rounding_mode="floor").clamp(0, most)
        code_of_end = torch.div(end, code_width, rounding_mode="floor").clamp(0, most)
        density = self.histogram / width

        def cubes(start: Any, stop: Any) -> Any:
            return density * ((stop * stop * stop - start * start * start) / 3)

        half = torch.tensor(code_width / 2)
        error = torch.zeros(self.bins)
        error += cubes(begin - (code_of_begin + 0.5) * code_width, torch.ones(self.bins) * (code_width / 2))
        error += (code_of_end - code_of_begin - 1) * cubes(-half, half)
        error += cubes(-half, end - (code_of_end * code_width + code_width / 2))
        return float(error.sum().item())

    def _non_linear_param_search(self) -> tuple[Any, Any]:
        """The range with the smallest error that is met while rare numbers are left out, at one end or the other."""
        width = (self.max_val - self.min_val) / self.bins
        total = self.histogram.sum().item()
        seen = self.histogram.cumsum(0).tolist()
        below, above, first, last, smallest = 0.0, 1.0, 0, self.bins - 1, float("inf")
        while below < above:
            next_below, next_above = below + _STEP, above - _STEP
            left, right = first, last
            while left < last and seen[left] < next_below * total:
                left += 1
            while right > first and seen[right] > next_above * total:
                right -= 1
            next_first, next_last = first, last
            if left - first > last - right:
                next_first, below = left, next_below
            else:
                next_last, above = right, next_above
            if (next_first, next_last) == (first, last):
                continue
            error = self._error(next_first, next_last)
            if error > smallest:
                break
            smallest, first, last = error, next_first, next_last
        return self.min_val + width * first, self.min_val + width * (last + 1)

    def calculate_qparams(self) -> Any:
        """The scale and the zero point for what was seen."""
        if self.min_val == float("inf") and self.max_val == float("-inf"):
            warnings.warn("must run observer before calling calculate_qparams. Returning default scale and zero point ", stacklevel=2)  # noqa: E501  # fmt: skip
            return torch.tensor([1.0]), torch.tensor([0])
        if self.bins != len(self.histogram):
            raise AssertionError("The number of bins in histogram should be equal to the number of bins supplied")
        return self._calculate_qparams(*self._non_linear_param_search())

    def extra_repr(self) -> str:
        """The ends of the range."""
        return f"min_val={self.min_val}, max_val={self.max_val}"
