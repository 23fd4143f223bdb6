"""Where public functions differ from PyTorch's, for their docstrings: a sentence for all that differ alike."""

from __future__ import annotations

from functools import cache

OF_FUNCTIONS: dict[str, str] = {
    "at infinities and poles it has the limit, where PyTorch's formula or its derivative gives NaN": """
        erf erfc digamma polygamma nn.functional.gelu nn.functional.mish asinh atanh angle special_log_ndtr special.zeta
        pow logit nn.functional.glu ldexp special.modified_bessel_k1 special.scaled_modified_bessel_k0
        special.scaled_modified_bessel_k1 special.chebyshev_polynomial_u special.chebyshev_polynomial_v
        special.chebyshev_polynomial_w special.shifted_chebyshev_polynomial_u special.shifted_chebyshev_polynomial_w
        special.hermite_polynomial_h special.hermite_polynomial_he special.laguerre_polynomial_l
        special.legendre_polynomial_p""",
    "equal elements always keep their order, which PyTorch promises with `stable=True` alone": "sort argsort",
    "`out_dtype`, which PyTorch takes on CUDA alone, is refused": "mm bmm addmm baddbmm",
    "the result is never a conjugate view": "linalg.lu_solve",
}
"""Sentences about functions, which hold under their other names and for their in-place forms too."""

OF_NAMES: dict[str, str] = {
    "PyTorch has this function in `torch` alone": "special.exp special.floor special.square",
    "PyTorch has this function in `torch.special` alone": """
        special_entr special_erfcx special_i0e special_i1 special_i1e special_log_ndtr special_ndtri""",
    "PyTorch refuses the `out=` that this name takes": "special.softmax special.log_softmax",
}


@cache
def _by_name() -> tuple[dict[str, str], dict[str, str]]:
    """Both tables by names."""
    functions, names = (
        {name: f"Differs from PyTorch: {text}." for text, names in table.items() for name in names.split()}
        for table in (OF_FUNCTIONS, OF_NAMES)
    )
    return functions, names


def differences(name: str, original: str) -> list[str]:
    """How a public function, which may be another name of `original`, differs from PyTorch's; empty for most."""
    functions, names = _by_name()
    return [each for each in (functions.get(original), names.get(name)) if each]
