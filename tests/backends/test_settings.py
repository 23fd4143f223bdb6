"""`backends`: settings that programs make; on the CPU they change nothing."""

from __future__ import annotations

from typing import Any

from tests.support.differential import differential


@differential
def test_a_script_sets_them(T: Any) -> Any:
    cudnn = T.backends.cudnn
    before = (cudnn.enabled, cudnn.benchmark, cudnn.deterministic, cudnn.is_available(), cudnn.version())
    cudnn.benchmark, cudnn.deterministic = True, True
    set_ = (cudnn.benchmark, cudnn.deterministic)
    with cudnn.flags(enabled=True, benchmark=False):
        inside = cudnn.benchmark
    after = (cudnn.benchmark, cudnn.deterministic)
    cudnn.benchmark, cudnn.deterministic = False, False
    tf32 = T.backends.cuda.matmul.allow_tf32
    return before, set_, inside, after, tf32, T.backends.cuda.is_built(), T.backends.mps.is_available()
