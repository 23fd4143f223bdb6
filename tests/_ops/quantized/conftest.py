"""What all tests of quantized tensors need."""

from __future__ import annotations

from tests.support.quantized import warned_before  # noqa: F401  it runs before every test
