"""What does a token cost that `generate` decodes with `model.forward` compiled, beside plain Flambeau and PyTorch?

python benchmarks/generate.py
python benchmarks/generate.py --only growing --layers 8 --width 256 --tokens 32 --threads 2 --settle 100
python benchmarks/generate.py --only growing --model Gemma2 --window 24

A Llama, or another model, with random weights decodes greedily from 16 tokens, again and again: with a cache that
grows, for which each length is another size, and with one of fixed size (`StaticCache`). Shown are milliseconds of a
token, everything that `generate` does included: of the first runs, in which calls are recorded, and, when the
frameworks take turns, the median of the later ones. All have to decode the same tokens. Lengths of a growing cache get
rows one by one, within the budget of time that attempts have: `--settle` says how many runs come before any is timed.
"""

from __future__ import annotations

import argparse
import json
import logging
import os
import statistics
import subprocess
import sys
import time
import warnings
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import _measure

_CACHES = ("growing", "static")
_THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
_RUNS = {"PyTorch": ("torch", "plain"), "plain": ("flambeau", "plain"), "compiled": ("flambeau", "compiled")}
_PROMPT = 16
_MODELS = ("Llama", "Mistral", "Gemma2")


def _child(options: argparse.Namespace) -> None:
    """Decode as the parent asks for it, line by line."""
    out, sys.stdout = sys.stdout, sys.stderr
    sys.path.append(str(_measure.CHECKOUT))
    if options.child == "flambeau":
        __import__("flambeau").stand_in_for_torch()
    import torch

    torch.set_num_threads(options.threads)
    warnings.simplefilter("ignore")
    from _zoo.libraries import import_transformers

    library = import_transformers()
    logging.disable(logging.WARNING)
    config = getattr(library, f"{options.model}Config")(
        vocab_size=1000, hidden_size=options.width, intermediate_size=2 * options.width,
        num_hidden_layers=options.layers, num_attention_heads=8, num_key_value_heads=4, max_position_embeddings=4096,
        head_dim=options.width // 8, **({} if options.model == "Llama" else {"sliding_window": options.window}),
    )  # fmt: skip
    models: dict[str, Any] = {}
    ids = torch.arange(1, 1 + _PROMPT).reshape(1, _PROMPT)
    for line in sys.stdin:
        which, cache, runs = line.split()
        if (model := models.get(f"{which} {cache}")) is None:
            torch.manual_seed(0)
            model = models[f"{which} {cache}"] = getattr(library, f"{options.model}ForCausalLM")(config).eval()
            model.generation_config.disable_compile = True
            if which == "compiled":
                model.forward = torch.compile(model.forward)
        chosen = {"cache_implementation": "static"} if cache == "static" else {}
        count = {"max_new_tokens": options.tokens, "min_new_tokens": options.tokens, "pad_token_id": 0}
        times: list[float] = []
        for _ in range(int(runs)):
            begin = time.perf_counter()
            found = model.generate(ids, do_sample=False, **count, **chosen)
            times.append(1e3 * (time.perf_counter() - begin) / options.tokens)
        out.write(json.dumps({"times": times, "tokens": found.tolist()}) + "\n")
        out.flush()


class _Decoder:
    """A process with one framework."""

    def __init__(self, framework: str, options: argparse.Namespace) -> None:
        sizes = [
            f"--{each}={getattr(options, each)}" for each in ("layers", "width", "tokens", "threads", "model", "window")
        ]
        self._process = subprocess.Popen(
            [sys.executable, str(Path(__file__).resolve()), f"--child={framework}", *sizes],
            env={**os.environ, **dict.fromkeys(_THREADS, str(options.threads))},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def ask(self, which: str, cache: str, runs: int) -> dict[str, Any]:
        """Decode so many times."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(f"{which} {cache} {runs}\n")
        self._process.stdin.flush()
        answer: dict[str, Any] = json.loads(self._process.stdout.readline())
        return answer


def _measured(decoders: dict[str, _Decoder], cache: str, options: argparse.Namespace) -> dict[str, Any]:
    first = {label: decoders[framework].ask(which, cache, 1)["times"] for label, (framework, which) in _RUNS.items()}
    first["compiled"] += decoders["flambeau"].ask("compiled", cache, options.settle)["times"]
    times: dict[str, list[float]] = {label: [] for label in _RUNS}
    tokens: list[Any] = []
    for _ in range(3 if options.quick else 10):
        for label, (framework, which) in _RUNS.items():
            answer = decoders[framework].ask(which, cache, 2)
            times[label] += answer["times"]
            tokens.append(answer["tokens"])
    medians = {label: statistics.median(each) for label, each in times.items()}
    return {"cache": cache, "first": first, **medians, "same": all(each == tokens[0] for each in tokens)}


def main() -> int:
    parser = _measure.parser(__doc__ or "", "caches whose names match: growing, static")
    parser.add_argument("--layers", type=int, default=8)
    parser.add_argument("--width", type=int, default=256, help="hidden size")
    parser.add_argument("--tokens", type=int, default=32, help="how many are decoded in a run")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--settle", type=int, default=24, help="runs of the compiled model before any is timed")
    parser.add_argument("--model", default="Llama", choices=_MODELS)
    parser.add_argument("--window", type=int, default=24, help="tokens in the windows of models that have such")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        _child(options)
        return 0
    if find_spec("transformers") is None:
        print("transformers is not installed")
        return 0
    decoders = {each: _Decoder(each, options) for each in ("torch", "flambeau")}
    found = [_measured(decoders, cache, options) for cache in _CACHES if options.only.search(cache)]
    labels = "".join([f"{label:>10}" for label in _RUNS])
    print(f"{'ms a token':12}{labels}{'to PyTorch':>12}{'to plain':>10}  same tokens")
    for each in found:
        ratios = each["compiled"] / each["PyTorch"], each["compiled"] / each["plain"]
        shown = "".join([f"{each[label]:10.2f}" for label in _RUNS])
        print(f"{each['cache']:12}{shown}{ratios[0]:12.2f}{ratios[1]:10.2f}  {'yes' if each['same'] else 'NO'}")
        print(f"    first runs compiled: {', '.join([f'{took:.0f}' for took in each['first']['compiled']])}")
    _measure.write_json(options.json, {"generate": found})
    return int(not all(each["same"] for each in found))


if __name__ == "__main__":
    sys.exit(main())
