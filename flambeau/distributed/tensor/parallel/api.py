"""`parallelize_module`: a model whose layers are distributed by a plan."""

from __future__ import annotations

import warnings
from fnmatch import fnmatch

from ....nn.modules.module import Module
from ...device_mesh import DeviceMesh
from .._dtensor import mesh_or_current
from .style import ParallelStyle

__all__ = ["parallelize_module"]


def parallelize_module(
    module: Module,
    device_mesh: DeviceMesh | None = None,
    parallelize_plan: ParallelStyle | dict[str, ParallelStyle] | None = None,
    *,
    src_data_rank: int | None = 0,
) -> Module:
    """Parallelize a module by a style, or modules below it by a plan from names to styles.

    A name may have the wildcards of file names: "layers.*.attention". `src_data_rank`: the process whose parameters
    are taken; None: each takes its parts of its own.

    Args:
        module (Module): the module.
        device_mesh (DeviceMesh, optional): the processes; None means all.
        parallelize_plan (ParallelStyle or dict[str, ParallelStyle], optional): a style, or styles by the paths of
            modules.
        src_data_rank (int, optional): the rank whose values count; None takes those of each process, and sends
            nothing. Default: `0`.

    Returns:
        Module: `module` itself.

    Example:
        >>> from flambeau.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module
        >>> mesh = dist.init_device_mesh("cpu", (2,))
        >>> model = torch.nn.Sequential(torch.nn.Linear(2, 4), torch.nn.ReLU(), torch.nn.Linear(4, 2))
        >>> model = parallelize_module(model, mesh, {"0": ColwiseParallel(), "2": RowwiseParallel()})
        >>> model(torch.ones(1, 2)).shape
        torch.Size([1, 2])
    """
    mesh = mesh_or_current(device_mesh)
    if mesh.ndim != 1:
        raise ValueError(f"parallelize_module takes a mesh of one dimension, such as mesh['tp']; this is {mesh}")
    if parallelize_plan is None:
        warnings.warn("No parallelize_plan is given: the module stays as it is.", stacklevel=2)
        return module
    if isinstance(parallelize_plan, ParallelStyle):
        parallelize_plan.src_data_rank = src_data_rank
        return parallelize_plan._apply(module, mesh)
    for path, style in parallelize_plan.items():
        found = _matching(module, path.split(".") if path else [])
        if not found:
            warnings.warn(f"Parallelize plan key {path!r} could not be resolved: no submodule has it.", stacklevel=2)
        for parent, name, part in found:
            changed = parallelize_module(part, mesh, style, src_data_rank=src_data_rank)
            if parent is not None and changed is not part:
                setattr(parent, name, changed)
    return module


def _matching(module: Module, path: list[str]) -> list[tuple[Module | None, str, Module]]:
    """The modules whose path matches, each with the one that it belongs to and its name there."""
    found: list[tuple[Module | None, str, Module]] = [(None, "", module)]
    for pattern in path:
        found = [
            (parent, name, part)
            for _, _, parent in found
            for name, part in parent.named_children()
            if fnmatch(name, pattern)
        ]
    return found
