"""How long libraries take to import, and to build a first model, on Flambeau and on PyTorch.

Fresh processes of the two environments of `tools/compatibility` take turns; the quickest of each counts.

    python benchmarks/library_imports.py --folder FOLDER
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import _measure

sys.path.insert(1, str(_measure.CHECKOUT))

from tools.compatibility.compare import Environment
from tools.compatibility.environments import make

CASES = {
    "torch": "import torch",
    "torchvision": "import torchvision.models",
    "torchvision, a model": "from torchvision.models import resnet18; resnet18()",
    "timm": "import timm",
    "timm, a model": "import timm; timm.create_model('resnet18')",
    "transformers": "from transformers import AutoModel, BertModel, GPT2LMHeadModel, LlamaForCausalLM, ViTModel",
    "transformers, a model": "from transformers import BertConfig, BertModel; "
    "BertModel(BertConfig(num_hidden_layers=2, hidden_size=128, num_attention_heads=2, intermediate_size=512))",
    "diffusers": "from diffusers import UNet2DModel",
    "lightning": "import lightning",
}

# The clock starts after the interpreter has. Seconds of the processor suffer less from company than those of the clock.
PROGRAM = """
import time
wall, processor = time.perf_counter(), time.process_time()
{statements}
print()
print([time.perf_counter() - wall, time.process_time() - processor])
"""


def run_fresh(environment: Environment, statements: str) -> tuple[float, float] | str:
    """Seconds of the clock and of the processor that statements take in a new process, or why they fail."""
    done = subprocess.run(
        [environment.python, "-W", "ignore", "-c", PROGRAM.format(statements=statements)],
        env=environment.variables(),
        cwd=_measure.BENCHMARKS,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        return (done.stderr.strip().splitlines() or [f"exit status {done.returncode}"])[-1]
    wall, processor = json.loads(done.stdout.splitlines()[-1])
    return wall, processor


def quickest(environments: list[Environment], statements: str, rounds: int) -> list[tuple[float, float] | str]:
    """The least seconds of each environment, in turns; the first run of each also fills the caches of files."""
    found = [run_fresh(each, statements) for each in environments]
    for _ in range(rounds):
        for number, environment in enumerate(environments):
            before = found[number]
            if not isinstance(before, str):
                again: Any = run_fresh(environment, statements)
                found[number] = (min(before[0], again[0]), min(before[1], again[1]))
    return found


def main() -> int:
    """Measure the chosen cases; 1 if Flambeau fails in one."""
    parser = _measure.parser("Libraries' imports, Flambeau against PyTorch.", "only cases whose name matches")
    parser.add_argument("--folder", type=Path, default=Path.home() / ".cache" / "flambeau-compatibility")
    options = parser.parse_args()
    environments = list(make(options.folder))
    ratios: dict[str, float] = {}
    results: dict[str, Any] = {}
    failed = False
    print(f"{'':<24}{'seconds':>10}{'PyTorch':>10}{'ratio':>8}{'processor':>12}{'PyTorch':>10}{'ratio':>8}")
    for name, statements in CASES.items():
        if not options.only.search(name):
            continue
        ours, theirs = results[name] = quickest(environments, statements, 2 if options.quick else 7)
        if isinstance(ours, str) or isinstance(theirs, str):
            print(f"{name:<24}failed: Flambeau {ours}, PyTorch {theirs}")
            failed = failed or isinstance(ours, str)
            continue
        ratios[name] = ours[0] / theirs[0]
        wall = f"{ours[0]:>10.2f}{theirs[0]:>10.2f}{ratios[name]:>8.2f}"
        print(f"{name:<24}{wall}{ours[1]:>12.2f}{theirs[1]:>10.2f}{ours[1] / theirs[1]:>8.2f}", flush=True)
    _measure.print_summary(ratios, "no ratio above 1")
    _measure.write_json(options.json, {"seconds": results, "ratios": ratios})
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
