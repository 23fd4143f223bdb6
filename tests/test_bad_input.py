"""Wrong calls: Flambeau refuses what PyTorch refuses, gives PyTorch's result where there is one, and never crashes.

The calls run in a process of their own, so that a crash of the interpreter is a failure of the test.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

from .support.oracle import needs_pytorch

_ROOT = Path(__file__).parent.parent
_CALLS = 2000
_RUN = """
import faulthandler, json, sys
faulthandler.enable()
from tests.support.calls import disagreement, write_call
for seed in range(int(sys.argv[1])):
    function, call = write_call(seed)
    print("?", call, flush=True)
    found = disagreement(call)
    if found is not None:
        print("!", json.dumps([function, call, found]), flush=True)
"""

# Functions that take what PyTorch's argument parser does not: an int for a tuple of ints, a number for a tensor, a list
# of tensors for single ones, any truth value for a bool, True for 1, None for a default.
_TAKES_MORE = re.compile(
    "all|amax|amin|any|arange|argmax|argmin|block_diag|broadcast_tensors|cartesian_prod|cat|chunk|count_nonzero|diagonal|"
    "diff|eye|flip|full|index_put|logical_and|logsumexp|max|maximum|mean|median|meshgrid|min|minimum|mode|nan_to_num|narrow|"
    "prod|randint|repeat_interleave|roll|select|size|sort|squeeze|std|stride|sum|tile|topk|tril|triu|unfold|var"
)

# Known differences: the function, and what the report of the difference says.
_KNOWN: tuple[tuple[str, str], ...] = (
    ("addbmm|baddbmm|mv", "IndexError in PyTorch"),  # it looks for a dimension before it counts them
    ("amin|amax|split|sort|index_put_?", "(RuntimeError|IndexError) in PyTorch.*(RuntimeError|IndexError) in Flambeau"),
    ("add_?|sub_?", "in PyTorch.*TypeError in Flambeau.*takes 2 positional"),  # the old form with alpha in the middle
    ("kron", "view size is not compatible"),  # PyTorch's kron of permuted tensors
    ("addc(div|mul)|lerp|where", "stride"),  # operands whose layouts contradict each other
    ("repeat|broadcast_to|arange|diagonal|eye|expand|tile", "(overflow|negative dim|Overflow|inf)"),
    ("clamp", "both tensors or both numbers"),
    ("pow", "nanj"),
    ("dist", "bool tensor is not supported"),
    ("repeat_interleave", "IndexError in PyTorch"),
    ("remainder", "Promotion for uint16"),
    ("norm|div", "TypeError in Flambeau.* must be "),  # a number for a tensor, a tensor for a number
    ("linear", "mat2 must be a matrix"),
    ("dropout", "but got nan"),
    ("leaky_relu", "UFuncTypeError"),
)


def _is_known(function: str, found: str) -> bool:
    name = function.rpartition(".")[2]
    if _TAKES_MORE.fullmatch(name) and found.startswith("TypeError in PyTorch") and "Error in Flambeau" not in found:
        return True
    return any(re.fullmatch(names, name) and re.search(words, found, re.DOTALL) for names, words in _KNOWN)


@needs_pytorch
def test_bad_input() -> None:
    process = subprocess.run(
        [sys.executable, "-c", _RUN, str(_CALLS)],
        cwd=_ROOT,
        env={**os.environ, "PYTHONPATH": str(_ROOT), "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    lines = process.stdout.splitlines()
    assert process.returncode == 0, f"after {lines[-1:]}:\n{process.stderr[-3000:]}"
    assert sum(line.startswith("?") for line in lines) == _CALLS
    differences = [json.loads(line[2:]) for line in lines if line.startswith("!")]
    new = [f"{call}\n    {found}" for function, call, found in differences if not _is_known(function, found)]
    assert not new, "\n".join(new)
