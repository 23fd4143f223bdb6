"""What `reproducible("batch")` asks of a model whose gradients several processes add up.

The gradient of a parameter is a sum over samples. It is the same for 1, 2, 4, ... processes if each op that a parameter
takes part in sums in a tree over its first dimension. Models that do more are refused: nothing is silently weaker.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from .._core.dtype import FLOAT
from .._core.node import Node
from .._core.process.reproducibility import REPRODUCIBILITY
from .._core.tensor import Tensor
from ._world import ProcessGroup

_ANY = frozenset(range(16))
_SUMS: dict[str, frozenset[int]] = {
    "AddmmBackward0": frozenset((0, 2)),
    "MmBackward0": frozenset((1,)),
    "MvBackward0": frozenset((1,)),
    "ConvolutionBackward0": frozenset((1, 2)),
    "NativeLayerNormBackward0": frozenset((1, 2)),
    "NativeGroupNormBackward0": frozenset((1, 2)),
    "NativeBatchNormBackward0": frozenset((1, 2)),
    "MkldnnRnnLayerBackward0": frozenset((3, 4, 5, 6, 7)),
    "EmbeddingBackward0": frozenset((0,)),
    "AddBackward0": _ANY,
    "SubBackward0": _ANY,
    "MulBackward0": _ANY,
    "DivBackward0": _ANY,
    "ExpandBackward0": _ANY,
}
"""For the nodes whose gradients are trees over samples the inputs for which they are."""
_VIEWS = frozenset(
    f"{name}Backward{number}"
    for name in ("T", "Transpose", "Permute", "View", "UnsafeView", "ReshapeAlias", "Unsqueeze", "Squeeze", "Slice",
                 "Select", "Split", "SplitWithSizes", "Chunk", "Unbind", "Alias", "Clone", "AsStrided")
    for number in range(2)
)  # fmt: skip
_HOLDS = 'reproducible("batch") cannot hold for DistributedDataParallel'


def is_asked_for() -> bool:
    """Whether sums over samples have to be the same for any number of processes."""
    return REPRODUCIBILITY.samples is not None


def check_module(module: Any, group: ProcessGroup) -> None:
    """Refuse models and groups whose samples do not divide into halves."""
    if group.size() & (group.size() - 1):
        raise RuntimeError(f"{_HOLDS} here: there are {group.size()} processes. Use 1, 2, 4, 8, ... processes")
    for name, parameter in module.named_parameters():
        if not parameter._kind.is_cpu:
            raise RuntimeError(
                f"{_HOLDS} on {parameter.device}, where sums over samples are no tree: the parameter {name!r}. Use "
                'reproducible("threads") there, which holds for one number of processes'
            )
    for name, each in module.named_modules():
        if getattr(each, "batch_first", True) is False:
            raise RuntimeError(
                f"{_HOLDS}: the module {name or type(each).__name__!r} has batch_first=False. The first dimension has "
                "to be that of the samples, over which gradients are summed. Make it with batch_first=True"
            )


def check_outputs(outputs: Iterable[Tensor], parameters: Sequence[Tensor], names: Sequence[str]) -> None:
    """Refuse graphs in which the gradient of a parameter is no tree over samples."""
    uses: dict[tuple[int, int], list[tuple[Node, int]]] = {}
    for node in _nodes(outputs):
        for shape_and_kind in node.outputs:
            dtype = shape_and_kind[1].dtype
            if dtype.category == FLOAT and dtype.itemsize == 2:
                raise RuntimeError(
                    f"{_HOLDS} with {dtype}, as in {_place(node)}: sums would be rounded on each process. Use float32, "
                    "without autocast"
                )
        for number, edge in enumerate(node.edges):
            if edge is not None:
                uses.setdefault((id(edge[0]), edge[1]), []).append((node, number))
    for parameter, name in zip(parameters, names, strict=True):
        _check_uses(name, (id(parameter), 0), uses)


def _check_uses(name: str, target: tuple[int, int], uses: dict[tuple[int, int], list[tuple[Node, int]]]) -> None:
    found = uses.get(target, [])
    if len(found) > 1:
        raise RuntimeError(
            f"{_HOLDS}: the parameter {name!r} is used {len(found)} times in a step ({_place(found[0][0])}, "
            f"{_place(found[1][0])}), and the gradients of its uses would be added in another order by each number of "
            "processes. Use it once, or give each use a parameter of its own"
        )
    for node, number in found:
        kind = type(node).__name__
        if kind in _VIEWS:
            for output in range(len(node.outputs)):
                _check_uses(name, (id(node), output), uses)
        elif number not in _SUMS.get(kind, ()):
            raise RuntimeError(
                f"{_HOLDS}: the gradient of the parameter {name!r} comes from {_place(node)}, whose sum over samples "
                f"is no tree. These are: {', '.join(each.removesuffix('Backward0') for each in _SUMS)}"
            )


def _place(node: Node) -> str:
    return type(node).__name__


def _nodes(outputs: Iterable[Tensor]) -> list[Node]:
    """The nodes behind some tensors, each op as PyTorch records it."""
    found: dict[int, Node] = {}
    waiting: list[Any] = [edge[0] for edge in (output._edge() for output in outputs) if edge is not None]
    while waiting:
        target = waiting.pop()
        if isinstance(target, Node) and id(target) not in found:
            found[id(target)] = target
            target.spell_out()
            waiting += [edge[0] for edge in target.edges if edge is not None]
    return list(found.values())


def refuse(what: str, instead: str) -> None:
    """Raise for something that adds gradients in another order, if that matters."""
    if is_asked_for():
        raise RuntimeError(f"{_HOLDS} with {what}: gradients would be added in another order. {instead}")
