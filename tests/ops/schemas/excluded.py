"""Schemas that are not asked of Flambeau, each family with its reason."""

from __future__ import annotations

import re

SPACES = ("aten", "prims", "quantized_decomposed")
"""Namespaces whose operators programs, compilers, exporters and quantisers call by name."""

_REASONS = {
    r"aten::.*(cudnn|miopen|cuda|cufft|cslt|triton|mps).*": "another device's",
    r"aten::(_test_|_foobar).*": "PyTorch's own tests'",
    r"aten::(save|from_file|_print)(\..*)?": "writes or reads files, or prints",
    r"aten::.*(mkldnn|nnpack|fbgemm|xla|vulkan|semi_structured|philox|overrideable).*": "a library's or a device's",
    r"aten::(to_here|owner|owner_name|is_owner|confirmed_by_owner|local_value|get_gradients|wait)": "of remote values",
}


UNSTABLE = frozenset(
    f"aten::{name}"
    for name in (
        "detach_", "empty.out", "empty_like.out", "empty_permuted.out", "empty_strided.out", "new_empty.out",
        "new_empty_strided.out", "_linalg_eigh.eigenvalues", "linalg_eig.out", "linalg_eigh.eigvals", "_version",
    )
)  # fmt: skip
"""Results that hold what memory held, vectors whose signs are open, and calls that depend on how tensors were made."""


def excluded(name: str) -> str | None:
    """Why a schema does not count; None if it does."""
    if name in UNSTABLE:
        return "without a result that is the same from run to run"
    return next((reason for pattern, reason in _REASONS.items() if re.fullmatch(pattern, name)), None)
