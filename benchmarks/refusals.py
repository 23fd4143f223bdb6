"""What do attempts to compile a function cost that has graph breaks, or can never be compiled, in plain calls?

python benchmarks/refusals.py
python benchmarks/refusals.py --only 'print|routing' --calls 400

Models of transformers are called under `torch.compile` beside the same model without it, one after the other. What the
compiled calls took more, all together, is shown after some numbers of calls, as multiples of the median plain call; the
processor's time counts, which other work on the machine changes less. Last comes how long the final calls take, to
plain ones. Once a call could not be compiled, attempts may take three plain calls, and later a share of the time of
calls.
"""

from __future__ import annotations

import contextlib
import itertools
import logging
import os
import random
import statistics
import sys
import time
import warnings
from collections.abc import Callable
from importlib.util import find_spec
from typing import Any, NamedTuple

import _measure

_AFTER = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512)
_NOWHERE = open(os.devnull, "w")  # noqa: SIM115 (open as long as the process is)


class Case(NamedTuple):
    """A function, and what makes one call of it or of what it is compiled to."""

    function: Any
    call: Callable[[Any], Any]
    trains: bool = False


class Zoo:
    """The models that cases are made of, all small."""

    def __init__(self, torch: Any, library: Any) -> None:
        self.torch, self._library = torch, library

    def bert(self) -> Any:
        """An encoder of four layers."""
        config = self._library.BertConfig(
            vocab_size=1000, hidden_size=128, num_hidden_layers=4, num_attention_heads=4, intermediate_size=256
        )
        return self._library.BertModel(config).eval()

    def gpt2(self) -> Any:
        """A decoder of four layers."""
        config = self._library.GPT2Config(vocab_size=1000, n_positions=256, n_embd=128, n_layer=4, n_head=4)
        return self._library.GPT2LMHeadModel(config).eval()

    def mixture(self, name: str) -> Any:
        """A decoder with four experts in each layer."""
        config = getattr(self._library, f"{name}Config")(
            vocab_size=1000, hidden_size=128, intermediate_size=256, num_hidden_layers=4, num_attention_heads=4,
            num_key_value_heads=2, num_local_experts=4, num_experts=4, moe_intermediate_size=128,
            shared_expert_intermediate_size=128,
        )  # fmt: skip
        return getattr(self._library, f"{name}ForCausalLM")(config).eval()

    def ids(self, length: int = 32, batch: int = 2) -> Any:
        """Random tokens."""
        return self.torch.randint(0, 1000, (batch, length))


def _wrapped(module: Any, before: Callable[[], Any] = int, after: Callable[[Any], Any] = id) -> None:
    """Let Python run before a module's `forward`, and after it."""
    inner = module.forward

    def forward(*args: Any, **kwargs: Any) -> Any:
        before()
        result = inner(*args, **kwargs)
        after(result)
        return result

    module.forward = forward


def _prints(zoo: Zoo, layers: slice) -> Case:
    model = zoo.bert()
    for layer in model.encoder.layer[layers]:
        _wrapped(layer, lambda: print("layer", file=_NOWHERE))
    return Case(model, lambda run: run(zoo.ids()))


def _growing_cache(zoo: Zoo) -> Case:
    model, past, turn = zoo.gpt2(), [None], itertools.count()

    def call(run: Any) -> None:
        if next(turn) % 48 == 0:
            past[0] = None
        past[0] = run(zoo.ids(1), past_key_values=past[0], use_cache=True).past_key_values

    return Case(model, call)


def _routing(zoo: Zoo, name: str) -> Case:
    return Case(zoo.mixture(name), lambda run: run(zoo.ids()))


def _branch(zoo: Zoo) -> Case:
    model = zoo.bert()

    def function(x: Any) -> Any:
        hidden = model(x).last_hidden_state
        if hidden[0, 0, 0] > 0:
            return hidden * 2
        return hidden

    return Case(function, lambda run: run(zoo.ids()))


def _logged(zoo: Zoo) -> Case:
    model, seen = zoo.bert(), [0.0]

    def function(x: Any) -> Any:
        hidden = model(x).last_hidden_state
        seen.append(hidden.mean().item())
        return hidden

    return Case(function, lambda run: run(zoo.ids()))


def _grows(zoo: Zoo, keeps: Callable[[Any], Any]) -> Case:
    model, seen = zoo.bert(), [None]
    _wrapped(model.encoder.layer[3], after=lambda result: seen.append(keeps(result)))
    return Case(model, lambda run: run(zoo.ids()))


def _counter(zoo: Zoo) -> Case:
    model = zoo.bert()
    layer = model.encoder.layer[2]
    layer.calls = 0

    def count() -> None:
        layer.calls += 1

    _wrapped(layer, count)
    return Case(model, lambda run: run(zoo.ids()))


def _of_the_clock(zoo: Zoo) -> Case:
    model = zoo.bert()
    _wrapped(model.encoder.layer[3], time.time)
    return Case(model, lambda run: run(zoo.ids()))


def _of_chance(zoo: Zoo) -> Case:
    model = zoo.bert()
    _wrapped(model.encoder, random.random)
    return Case(model, lambda run: run(zoo.ids()))


def _counted(zoo: Zoo) -> Case:
    model, state = zoo.bert(), {"calls": 0}

    def function(x: Any) -> Any:
        state["calls"] += 1
        return model(x).last_hidden_state * state["calls"]

    return Case(function, lambda run: run(zoo.ids()))


def _new_number(zoo: Zoo) -> Case:
    model, numbers = zoo.bert(), itertools.count(0.5)
    return Case(lambda x, scale: model(x).last_hidden_state * scale, lambda run: run(zoo.ids(), next(numbers)))


def _step(zoo: Zoo) -> Case:
    model = zoo.bert().train()
    optimizer = zoo.torch.optim.SGD(model.parameters(), 0.01)

    def step(x: Any) -> Any:
        optimizer.zero_grad()
        loss = model(x).last_hidden_state.square().mean()
        loss.backward()
        print(loss.item(), file=_NOWHERE)
        optimizer.step()
        return loss

    return Case(step, lambda run: run(zoo.ids()), trains=True)


CASES: dict[str, Callable[[Zoo], Case]] = {
    "growing tuple cache": _growing_cache,
    "print, first layer": lambda zoo: _prints(zoo, slice(0, 1)),
    "print, last layer": lambda zoo: _prints(zoo, slice(3, 4)),
    "print, each layer": lambda zoo: _prints(zoo, slice(0, 4)),
    "routing, Mixtral": lambda zoo: _routing(zoo, "Mixtral"),
    "routing, Qwen2": lambda zoo: _routing(zoo, "Qwen2Moe"),
    "branch on data": _branch,
    "item() is logged": _logged,
    "counter in a layer": _counter,
    "growing list": lambda zoo: _grows(zoo, type),
    "growing list, tensors": lambda zoo: _grows(zoo, lambda result: result),
    "clock": _of_the_clock,
    "random numbers": _of_chance,
    "counter is read": _counted,
    "new number each call": _new_number,
    "training step, print": _step,
}


def measure(torch: Any, zoo: Zoo, name: str, calls: int) -> dict[str, Any]:
    """What the compiled calls of a case cost beside plain ones."""
    torch.manual_seed(0)
    case, plain = CASES[name](zoo), CASES[name](zoo)
    compiled = torch.compile(case.function)
    times: dict[str, list[float]] = {"compiled": [], "plain": []}
    with contextlib.nullcontext() if case.trains else torch.no_grad():
        for _ in range(3):
            plain.call(plain.function)
        for _ in range(calls):
            for label, call, run in (("compiled", case.call, compiled), ("plain", plain.call, plain.function)):
                begin = time.thread_time()
                call(run)
                times[label].append(time.thread_time() - begin)
    one = statistics.median(times["plain"])
    more = [(took - other) / one for took, other in zip(times["compiled"], times["plain"], strict=True)]
    after = {count: sum(more[:count]) for count in (*[each for each in _AFTER if each < calls], calls)}
    last = statistics.median(times["compiled"][-10:]) / statistics.median(times["plain"][-10:])
    said = str(torch.compiler.explain(compiled)).partition("\n")[0]
    return {"case": name, "plain ms": 1e3 * one, "more": after, "last": last, "programs": said.partition(",")[0]}


def main() -> int:
    parser = _measure.parser(__doc__ or "", "cases whose names match")
    parser.add_argument("--calls", type=int, default=128)
    parser.add_argument("--threads", type=int, default=1)
    options = parser.parse_args()
    if find_spec("transformers") is None:
        print("transformers is not installed")
        return 0
    sys.path.append(str(_measure.CHECKOUT))
    __import__("flambeau").stand_in_for_torch()
    import torch

    torch.set_num_threads(options.threads)
    warnings.simplefilter("ignore")
    from _zoo.libraries import import_transformers

    zoo = Zoo(torch, import_transformers())
    logging.disable(logging.WARNING)
    found: list[dict[str, Any]] = []
    for name in [each for each in CASES if options.only.search(each)]:
        found.append(measure(torch, zoo, name, options.calls))
        made = found[-1]
        if len(found) == 1:
            print(f"{'plain calls':24}{'plain, ms':>10}{''.join([f'{each:>8}' for each in made['more']])}{'last':>8}")
        print(
            f"{name:24}{made['plain ms']:10.2f}{''.join([f'{each:8.1f}' for each in made['more'].values()])}"
            f"{made['last']:8.2f}  {made['programs']}",
            flush=True,
        )
    _measure.write_json(options.json, {"refusals": found})
    return 0


if __name__ == "__main__":
    sys.exit(main())
