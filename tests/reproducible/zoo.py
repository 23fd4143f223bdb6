"""`python -m tests.reproducible.zoo`: whether models of timm and transformers keep what the levels promise.

The models are those of `benchmarks/zoo.py`; they need these libraries. Each is evaluated: its results, and gradients of
their mean square. At "threads" it runs with 1, 2, 3, 7 and 16 threads; at "batch" with all samples, with each alone and
in another order, and models of text that keep a cache also token by token; at "machine" with generated kernels and with
NumPy alone, in processes of their own. On a GPU "run" takes the place of "threads". A line says for each level: the
same bits, which differ, or what raised.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).parents[2] / "benchmarks"))

import flambeau as torch

THREADS = 2, 3, 7, 16
Evaluated = dict[str, Any]


def evaluated(model: Any, inputs: dict[str, Any], gradients: bool = True) -> Evaluated:
    """The tensors of the result, and gradients of all parameters; what draws numbers draws the same each time."""
    torch.manual_seed(0)
    model.zero_grad()
    results = {f"result {number}": each for number, each in enumerate(_tensors(model(**inputs)))}
    found = {name: each.detach() for name, each in results.items()}
    if gradients:
        sum(each.float().square().mean() for each in results.values() if each.requires_grad).backward()
        found |= {name: each.grad for name, each in model.named_parameters() if each.grad is not None}
    return found


def _tensors(tree: Any) -> Iterator[Any]:
    if isinstance(tree, torch.Tensor):
        yield tree
    elif isinstance(tree, dict):
        for each in tree.values():
            yield from _tensors(each)
    elif isinstance(tree, list | tuple):
        for each in tree:
            yield from _tensors(each)


def with_threads(model: Any, inputs: dict[str, Any]) -> str:
    """What differs between one thread and others, at "threads"."""
    before = torch.get_num_threads()
    found: list[Evaluated] = []
    try:
        for count in (1, *THREADS):
            torch.set_num_threads(count)
            with torch.reproducible("threads"):
                found.append(evaluated(model, inputs))
    finally:
        torch.set_num_threads(before)
    return _said(name for each in found[1:] for name in _different(found[0], each))


def twice(model: Any, inputs: dict[str, Any]) -> str:
    """What differs between two runs, at "run"."""
    with torch.reproducible("run"):
        first = evaluated(model, inputs)
        moved = {name: each.clone() if isinstance(each, torch.Tensor) else each for name, each in inputs.items()}
        return _said(_different(first, evaluated(model, moved)))


def with_batches(model: Any, inputs: dict[str, Any]) -> str:
    """What differs between a batch and its samples alone or in another order, and between a text and its tokens.

    Gradients of parameters are sums over the batch, and left out.
    """
    size = next(len(each) for each in inputs.values() if isinstance(each, torch.Tensor))
    order = list(range(size - 1, -1, -1))
    differs: list[str] = []
    with torch.reproducible("batch"), torch.no_grad():
        first = evaluated(model, _chosen(inputs, [0], size), gradients=False)
        whole = _of_samples(evaluated(model, inputs, gradients=False), first, size)
        turned = _of_samples(evaluated(model, _chosen(inputs, order, size), gradients=False), first, size)
        differs += _different({name: each[order] for name, each in whole.items()}, turned)
        for sample in range(size):
            alone = evaluated(model, _chosen(inputs, [sample], size), gradients=False)
            expected = {name: each[sample : sample + 1] for name, each in whole.items()}
            differs += _different(expected, {name: alone[name] for name in expected})
        if hasattr(model, "generate") and "input_ids" in inputs and not model.config.is_encoder_decoder:
            differs += _by_tokens(model, inputs["input_ids"])
    return _said(differs)


def _by_tokens(model: Any, ids: Any) -> list[str]:
    """Whether tokens that come one by one, with a cache, have the logits of the whole text."""
    whole = model(input_ids=ids).logits
    cache, parts = None, []
    for position in range(ids.shape[1]):
        found = model(input_ids=ids[:, position : position + 1], past_key_values=cache, use_cache=True)
        cache = getattr(found, "past_key_values", None)
        if cache is None:
            return []
        parts.append(found.logits)
    return _different({"tokens": whole}, {"tokens": torch.cat(parts, 1)})


def _chosen(inputs: dict[str, Any], samples: list[int], size: int) -> dict[str, Any]:
    return {
        name: each[samples] if isinstance(each, torch.Tensor) and each.dim() and len(each) == size else each
        for name, each in inputs.items()
    }


def _of_samples(found: Evaluated, alone: Evaluated, size: int) -> Evaluated:
    """What belongs to single samples: not what compares each with all others, which has another shape for one."""
    return {
        name: each
        for name, each in found.items()
        if each.dim() and len(each) == size and each.shape[1:] == alone[name].shape[1:]
    }


def _different(one: Evaluated, other: Evaluated) -> list[str]:
    return [name for name, each in one.items() if not _is_same(each, other[name])]


def _is_same(one: Any, other: Any) -> bool:
    if one.is_floating_point():
        one, other = one.nan_to_num(0.5), other.nan_to_num(0.5)
    return bool(torch.equal(one, other))


def _said(names: Iterable[str]) -> str:
    found = list(dict.fromkeys(names))
    if not found:
        return "same"
    return f"DIFFER: {', '.join(found[:3])}" + (f" and {len(found) - 3} others" if len(found) > 3 else "")


def digest(model: Any, inputs: dict[str, Any]) -> str:
    """Of what the model gives."""
    told = hashlib.sha256()
    for name, each in evaluated(model, inputs).items():
        told.update(name.encode() + each.contiguous().numpy().tobytes())
    return told.hexdigest()[:16]


def on_machines(name: str) -> str:
    """Whether a process without generated kernels has the digest of one with them."""
    command = [sys.executable, "-m", "tests.reproducible.zoo", "--digest", name]
    digests = []
    for generated in ("1", "0"):
        environment = {**os.environ, "FLAMBEAU_GENERATED": generated}
        ended = subprocess.run(command, check=False, env=environment, capture_output=True, text=True, timeout=900)
        if ended.returncode:
            return f"raises: {ended.stderr.strip().splitlines()[-1]}"
        digests.append(ended.stdout)
    return "same" if digests[0] == digests[1] else "DIFFER"


def _attempted(question: Callable[..., str], *given: Any) -> str:
    try:
        return question(*given)
    except (IndexError, RuntimeError) as error:
        return f"raises: {error}"


def main() -> None:
    """Print a line for each model, and counts."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="a regular expression that names have to match")
    parser.add_argument("--machine", action="store_true", help='"machine", too, which takes long')
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--digest", help=argparse.SUPPRESS)
    options = parser.parse_args()
    device = options.device
    torch.stand_in_for_torch()
    from _zoo.models import MODELS

    def made(name: str) -> tuple[Any, dict[str, Any]]:
        torch.manual_seed(0)
        model, inputs = MODELS[name]()
        labels = inputs.pop("labels", None)  # with them there is a loss, which is the batch's
        if labels is not None and getattr(model.config, "is_encoder_decoder", False):
            inputs.setdefault("decoder_input_ids", labels)
        placed = {key: each.to(device) if isinstance(each, torch.Tensor) else each for key, each in inputs.items()}
        return model.eval().to(device), placed

    if options.digest:
        with torch.reproducible("machine"):  # initial weights, too
            print(digest(*made(options.digest)))
        return
    counts: dict[str, int] = {}
    for name in [each for each in MODELS if re.search(options.only, each)]:
        try:
            model, inputs = made(name)
        except Exception as error:  # (the library's: it is not there, or another version)
            print(f"{name:20}is not made: {type(error).__name__}: {error}", flush=True)
            continue
        first = {"run": twice} if device == "cuda" else {"threads": with_threads}
        said = {level: _attempted(each, model, inputs) for level, each in {**first, "batch": with_batches}.items()}
        if options.machine:
            said["machine"] = on_machines(name)
        for level, each in said.items():
            key = f"{level} {'same' if each == 'same' else 'differ' if each.startswith('DIFFER') else 'raise'}"
            counts[key] = counts.get(key, 0) + 1
        print(f"{name:20}" + "   ".join(f"{level}: {each}" for level, each in said.items()), flush=True)
    print(", ".join(f"{key} {count}" for key, count in sorted(counts.items())))


if __name__ == "__main__":
    main()
