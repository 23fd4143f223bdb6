"""`functorch.experimental`: what was tried out there and is `torch.func` now."""

from __future__ import annotations

from flambeau._torch._functorch.apis import chunk_vmap
from flambeau.func import functionalize, hessian, jacfwd, jvp, replace_all_batch_norm_modules_

__all__ = ["chunk_vmap", "functionalize", "hessian", "jacfwd", "jvp", "replace_all_batch_norm_modules_"]
