"""PyTorch's module database as archives: `python -m tests.jit.modules` counts those that load and give equal results.

python -m tests.jit.modules --only 'LSTM*'
"""

from __future__ import annotations

import argparse
import fnmatch
from collections.abc import Iterator
from typing import Any

import torch as pytorch
from torch.testing._internal.common_modules import ModuleInfo, module_db

from .archives import compare_calls, loaded, scripted


def samples(info: ModuleInfo, most: int) -> Iterator[tuple[Any, Any]]:
    """Modules of an entry with the arguments of a call; some of them, evenly spread."""
    pytorch.manual_seed(0)
    found = list(
        info.module_inputs_func(info, device="cpu", dtype=pytorch.float32, requires_grad=False, training=False)
    )
    found = [each for each in found if each.forward_input is not None]
    for sample in found[:: max(1, -(-len(found) // most))]:
        construction = sample.constructor_input
        yield info.module_cls(*construction.args, **construction.kwargs).eval(), sample.forward_input


def outcome(module: Any, call: Any) -> str:
    """What became of a sample: equal, or why not; `not scripted` where PyTorch itself refuses."""
    try:
        module(*call.args, **call.kwargs)  # lazy ones find their sizes
        program = scripted(module)
        program(*call.args, **call.kwargs)
    except Exception:
        return "not scripted"
    try:
        compare_calls(program, loaded(program), *call.args, **call.kwargs)
    except Exception as error:
        return f"{type(error).__name__}: {str(error)[-300:]}"
    return "equal"


def main() -> None:
    """Run the database and print what differs."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--only", default="*")
    parser.add_argument("--most", type=int, default=1000)
    options = parser.parse_args()
    counts = {"equal": 0, "different": 0, "not scripted": 0}
    for info in module_db:
        name = info.module_cls.__name__
        if not fnmatch.fnmatch(name, options.only):
            continue
        for module, call in samples(info, options.most):
            found = outcome(module, call)
            counts[found if found in counts else "different"] += 1
            if found not in counts:
                print(f"{name}: {found}")
    print(counts)


if __name__ == "__main__":
    main()
