"""`backends`: settings that programs make; on the CPU they change nothing.

Not beside PyTorch: its testing modules, once imported, forbid programs to set them.
"""

from __future__ import annotations

import flambeau


def test_a_script_sets_them() -> None:
    cudnn = flambeau.backends.cudnn
    assert (cudnn.enabled, cudnn.benchmark, cudnn.deterministic) == (True, False, False)
    assert (cudnn.is_available(), cudnn.version()) == (False, None)
    cudnn.benchmark = True
    with cudnn.flags(enabled=True, deterministic=True):
        assert (cudnn.benchmark, cudnn.deterministic) == (False, True)
    assert (cudnn.benchmark, cudnn.deterministic) == (True, False)
    cudnn.benchmark = False


def test_what_is_absent_says_so() -> None:
    backends = flambeau.backends
    assert not backends.cuda.is_built()
    assert not backends.mps.is_available()
    assert backends.cuda.matmul.allow_tf32 is False
