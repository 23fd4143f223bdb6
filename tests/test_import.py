"""What `import flambeau` loads: nothing that a program may do without, and nothing that has to be compiled first."""

from __future__ import annotations

import json
import subprocess
import sys

LATER = (
    "flambeau._backends.cpu.convolution",
    "flambeau._backends.cpu.memory",
    "flambeau._codegen",
    "flambeau._core.arrays.abstract",
    "flambeau._core.text.memory_errors",
    "flambeau._dispatch.public.docstrings",
    "flambeau._ops",
    "flambeau.autograd",
    "flambeau.nn",
    "dataclasses",
    "hashlib",
    "llvmlite",
    "traceback",
)
"""What is loaded with the first op, backward pass or error that wants it."""

PROGRAM = """
import builtins, json, sys
import numpy
before, texts, compile_text = set(sys.modules), [], builtins.compile
builtins.compile = lambda text, file, *rest, **options: texts.append(file) or compile_text(text, file, *rest, **options)
import flambeau
print(json.dumps([sorted(set(sys.modules) - before), [each for each in texts if str(each).startswith("<")]]))
x = flambeau.ones(2, requires_grad=True)
with flambeau.enable_grad():
    (x * x).sum().backward()
assert x.grad.tolist() == [2, 2] and flambeau.autograd.Function
"""


def test_what_an_import_loads_and_compiles() -> None:
    output = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True).stdout
    loaded, compiled = json.loads(output)
    assert [name for name in loaded if name.startswith(LATER)] == []
    assert compiled == []


def test_autograd_is_found_first() -> None:
    """Nothing is asked of the package before: its subpackages load one another, but for the one that is asked first."""
    program = "import flambeau; assert flambeau.autograd.forward_ad and flambeau.autograd.Function"
    subprocess.run([sys.executable, "-c", program], check=True)
