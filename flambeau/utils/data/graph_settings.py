"""Settings of all pipes that a pipe is made of: shares, shuffling, seeds."""

from __future__ import annotations

import inspect
import warnings
from typing import Any

from .datapipes.iter.sharding import SHARDING_PRIORITIES, _ShardingIterDataPipe
from .graph import Graph, traverse_dps
from .sampler import random_seed

__all__ = [
    "apply_random_seed",
    "apply_sharding",
    "apply_shuffle_seed",
    "apply_shuffle_settings",
    "get_all_graph_pipes",
]


def get_all_graph_pipes(graph: Graph) -> list[Any]:
    """Every pipe of a graph, once, those that are read last first."""
    found: dict[int, Any] = {}

    def walk(part: Graph) -> None:
        for key, (pipe, inner) in part.items():
            if key not in found:
                found[key] = pipe
                walk(inner)

    walk(graph)
    return list(found.values())


def _takes_shares(pipe: Any) -> bool:
    return isinstance(pipe, _ShardingIterDataPipe) or callable(getattr(type(pipe), "apply_sharding", None))


def apply_sharding(
    datapipe: Any, num_of_instances: int, instance_id: int, sharding_group: Any = SHARDING_PRIORITIES.DEFAULT
) -> Any:
    """Tell every pipe that divides samples its share; one must not read from another."""

    def walk(graph: Graph, above: Any) -> None:
        for pipe, inner in graph.values():
            here = above
            if _takes_shares(pipe):
                if above is not None:
                    raise RuntimeError(
                        "Sharding twice on a single pipeline is likely unintended and will cause data loss. "
                        f"Sharding already applied to {above} while trying to apply to {pipe}"
                    )
                here = pipe
                if "sharding_group" in inspect.signature(pipe.apply_sharding).parameters:
                    pipe.apply_sharding(num_of_instances, instance_id, sharding_group=sharding_group)
                elif sharding_group == SHARDING_PRIORITIES.DEFAULT:
                    pipe.apply_sharding(num_of_instances, instance_id)
            walk(inner, here)

    walk(traverse_dps(datapipe), None)
    return datapipe


def _has(pipe: Any, *methods: str) -> bool:
    return all(inspect.isfunction(getattr(type(pipe), method, None)) for method in methods)


def apply_shuffle_settings(datapipe: Any, shuffle: bool | None = None) -> Any:
    """Switch shuffling on or off; a step that shuffles is added where there is none. None leaves it as it is."""
    if shuffle is None:
        return datapipe
    shufflers = [pipe for pipe in get_all_graph_pipes(traverse_dps(datapipe)) if _has(pipe, "set_shuffle", "set_seed")]
    if shuffle and not shufflers:
        warnings.warn(
            "`shuffle=True` was set, but the datapipe does not contain a `Shuffler`. Adding one at the end. Be aware "
            "that the default buffer size might not be sufficient for your task.",
            stacklevel=2,
        )
        datapipe = datapipe.shuffle()
        shufflers = [datapipe]
    for shuffler in shufflers:
        shuffler.set_shuffle(shuffle)
    return datapipe


def apply_random_seed(datapipe: Any, rng: Any) -> Any:
    """Give every pipe that draws random numbers a seed from a generator."""
    for pipe in get_all_graph_pipes(traverse_dps(datapipe)):
        if _has(pipe, "set_seed"):
            pipe.set_seed(random_seed(rng))
    return datapipe


def apply_shuffle_seed(datapipe: Any, rng: Any) -> Any:
    """`apply_random_seed`, under its older name."""
    warnings.warn(
        "`apply_shuffle_seed` is deprecated since 1.12 and will be removed in the future releases. "
        "Please use `apply_random_seed` instead.",
        FutureWarning,
        stacklevel=2,
    )
    return apply_random_seed(datapipe, rng)
