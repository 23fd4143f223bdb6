"""The exceptions from the comparison of warnings: each is still needed."""

from __future__ import annotations

import contextlib
import importlib
import json
import subprocess
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy
import pytest

from .oracle import pytorch
from .own_warnings import OWN_REASONS, OWN_REASONS_IN

pytestmark = pytest.mark.skipif(pytorch is None, reason="there is no PyTorch to compare with")


def _encoder(T: Any) -> Any:
    layer = T.nn.TransformerEncoderLayer(4, 2, 8, batch_first=True)
    with T.no_grad():
        return T.nn.TransformerEncoder(layer, 1).eval()(
            T.ones(2, 3, 4), src_key_padding_mask=T.tensor([[False, False, True], [False] * 3])
        )


def _profile(T: Any) -> None:
    plan = T.profiler.schedule(wait=0, warmup=0, active=1, repeat=3)
    with T.profiler.profile(schedule=plan) as prof:
        for _ in range(4):
            T.ones(2).exp()
            prof.step()


def _flexible_attention(T: Any) -> Any:
    x = T.ones(1, 1, 4, 2)
    return importlib.import_module(f"{T.__name__}.nn.attention.flex_attention").flex_attention(x, x, x, return_lse=True)


def _chosen_kernel(T: Any) -> None:
    attention = importlib.import_module(f"{T.__name__}.nn.attention")
    x = T.ones(1, 2, 3, 4)
    with attention.sdpa_kernel(attention.SDPBackend.FLASH_ATTENTION):
        T.nn.functional.scaled_dot_product_attention(x, x, x, dropout_p=0.5)


PROGRAMS: dict[str, Callable[[Any], Any]] = {
    "FutureWarning: return_lse is deprecated and": _flexible_attention,
    "UserWarning: An output with one": lambda T: T.binomial(T.full((2, 1), 7.0), T.full((6,), 0.5)),
    "UserWarning: Attempted to insert a": lambda T: T.func.linearize(lambda x: x.sin() * 2, T.ones(3)),
    "UserWarning: Both fused kernels do": _chosen_kernel,
    "UserWarning: Casting complex values to": lambda T: T.ones(2).eq_(1j),
    "UserWarning: ComplexHalf support is experimental": lambda T: T.ones(2, dtype=T.complex64).to(T.complex32) * 2,
    "UserWarning: Creating a tensor from": lambda T: T.tensor([numpy.ones(2)] * 2),
    "UserWarning: Flash attention kernel not": _chosen_kernel,
    "UserWarning: LSTM with projections is": lambda T: T.nn.LSTM(2, 3, proj_size=2)(T.ones(1, 1, 2)),
    "UserWarning: Sparse invariant checks are": lambda T: T.sparse_coo_tensor([[0]], [1.0], (2,)),
    "UserWarning: TF32 acceleration on top": lambda T: T.backends.mkldnn.flags(enabled=True).__enter__(),
    "UserWarning: The PyTorch API of": _encoder,
    "UserWarning: Warning: Profiler clears events": _profile,
    "UserWarning: flex_attention called without torch.compile()": _flexible_attention,
}
"""For each warning a program that makes PyTorch give it."""


def _counts(T: Any) -> dict[str, int]:
    """How often the programs make a library give each warning, when they run twice."""
    from .differential import head

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        T.set_warn_always(True)
        for program in (*PROGRAMS.values(), *PROGRAMS.values()):
            with contextlib.suppress(RuntimeError):
                program(T)
    return {name: sum(head(each) == name for each in caught) for name in PROGRAMS}


def test_every_exception_is_needed() -> None:
    """In a process of its own, since PyTorch gives some warnings only once."""
    code = "from tests.support import test_own_warnings as own; own.show()"
    root = Path(__file__).parent.parent.parent
    text = subprocess.run([sys.executable, "-c", code], cwd=root, stdout=subprocess.PIPE, text=True, check=True).stdout
    there, here = json.loads(text.splitlines()[-1])
    listed = {*OWN_REASONS, *(name for names in OWN_REASONS_IN.values() for name in names)}
    assert listed == PROGRAMS.keys()
    assert not [name for name, count in there.items() if not count], "PyTorch does not warn so any more"
    assert not [name for name, count in there.items() if count == here[name]], "both warn in the same way"


def show() -> None:
    """What both libraries do, as JSON."""
    import flambeau

    print(json.dumps([_counts(pytorch), _counts(flambeau)]))
