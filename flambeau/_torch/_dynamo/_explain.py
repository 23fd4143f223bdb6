"""`torch._dynamo.explain`: what compiling makes of a function, in PyTorch's terms."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from flambeau.compiler._compiled import Compiled

_CALLS = 12
"""A function is watched before it is compiled, and so are its parts."""


@dataclass
class ExplainOutput:
    """The programs of a function and its breaks."""

    graphs: list[Any]
    """The programs: functions with a `source`."""
    graph_count: int
    graph_break_count: int
    break_reasons: list[str]
    op_count: int
    ops_per_graph: list[list[str]]

    def __str__(self) -> str:
        lines = [
            f"Graph Count: {self.graph_count}",
            f"Graph Break Count: {self.graph_break_count}",
            f"Op Count: {self.op_count}",
            "Break Reasons:",
            *[f"  Break Reason {number}: {each}" for number, each in enumerate(self.break_reasons, 1)],
            "Ops per Graph:",
            *[f"  Ops {number}: {', '.join(each)}" for number, each in enumerate(self.ops_per_graph, 1)],
        ]
        return "\n".join(lines)


def explain(f: Callable[..., Any], *extra_args: Any, **extra_kwargs: Any) -> Any:
    """What compiling makes of a function that is called with some arguments: `explain(f)(*args, **kwargs)`.

    The function is called as often as compiling needs it.
    """

    def inner(*args: Any, **kwargs: Any) -> ExplainOutput:
        compiled = Compiled(getattr(f, "_torchdynamo_orig_callable", f))
        for _ in range(_CALLS):
            compiled(*args, **kwargs)
        programs = compiled.all_programs
        ops = [[step.name for stage in vars(each)["stages"] for step in stage.steps] for each in programs]
        reasons = list(dict.fromkeys(compiled.all_reasons))
        return ExplainOutput(list(programs), len(programs), len(reasons), reasons, sum(map(len, ops)), ops)

    return inner(*extra_args, **extra_kwargs) if extra_args or extra_kwargs else inner
