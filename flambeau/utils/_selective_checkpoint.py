"""Checkpointing that keeps the results of some operators: the others run again in the backward pass."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import Any

from .._core.tensor import Tensor
from .._dispatch.public.overloads import OpOverload
from ..ops import aten
from ._python_dispatch import TorchDispatchMode
from ._pytree import tree_map


class SelectiveCheckpointContext:
    """What a policy is told: whether this is the second run, and in the first one what the operator gave.

    Args:
        is_recompute (bool): whether this is the second run.
        op_output: the result of the operator, in the first run.

    Example:
        >>> torch.utils.checkpoint.SelectiveCheckpointContext(is_recompute=False).is_recompute
        False
    """

    def __init__(self, *, is_recompute: bool, op_output: Any = None) -> None:
        self.is_recompute = is_recompute
        self.op_output = op_output


Policy = Callable[..., Any]
Storage = dict[Any, list[Any]]


def _is_kept(decision: Any) -> bool:
    from .checkpoint import CheckpointPolicy

    if isinstance(decision, bool):
        return decision
    return decision in (CheckpointPolicy.MUST_SAVE, CheckpointPolicy.PREFER_SAVE)


class _Keeping(TorchDispatchMode):
    """The first run: the policy decides about each operator, and what it wants is kept."""

    def __init__(self, policy: Policy, storage: Storage) -> None:
        super().__init__()
        self.policy, self.storage = policy, storage

    def __torch_dispatch__(self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None) -> Any:
        options = kwargs or {}
        result = func(*args, **options)
        if func is aten.detach.default:  # the second run takes tensors out of the graph more often
            return result
        context = SelectiveCheckpointContext(is_recompute=False, op_output=result)
        kept = _is_kept(self.policy(context, func, *args, **options))
        self.storage[func].append(tree_map(_apart, result) if kept else _NOT_KEPT)
        return result


class _Finding(TorchDispatchMode):
    """The second run: what was kept is not computed again."""

    def __init__(self, storage: Storage, allow_mutation: bool) -> None:
        super().__init__()
        self.storage, self.allow_mutation = storage, allow_mutation

    def __torch_dispatch__(self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None) -> Any:
        decided = self.storage.get(func)
        if decided is None:
            return func(*args, **(kwargs or {}))
        if not decided:
            raise RuntimeError(
                "Trying to backward an extra time. You are only allowed to backward once on any region computed under "
                "selective activation checkpoint."
            )
        kept = decided.pop(0)
        return func(*args, **(kwargs or {})) if kept is _NOT_KEPT else tree_map(self._checked, kept)

    def _checked(self, kept: Any) -> Any:
        value, version = kept
        if version is not None and value._version != version and not self.allow_mutation:
            raise RuntimeError(
                "Tensor cached during selective activation checkpoint has been mutated: "
                "allow_cache_entry_mutation=True takes it as it is"
            )
        return value


_NOT_KEPT = object()
"""In the place of a result that runs again."""


class _Kept(tuple[Any, ...]):
    """A value with its version; no tuple to those who walk through nests."""

    __slots__ = ()


def _apart(value: Any) -> Any:
    """A result outside the graph, with the version that it has."""
    if not isinstance(value, Tensor):
        return _Kept((value, None))
    bare = value.detach()
    return _Kept((bare, bare._version))


def create_selective_checkpoint_contexts(
    policy_fn_or_list: Policy | Sequence[Any], allow_cache_entry_mutation: bool = False
) -> tuple[TorchDispatchMode, TorchDispatchMode]:
    """The two contexts for `checkpoint(..., context_fn=...)` that keep what a policy says, or what listed ops give.

    The policy is called with a `SelectiveCheckpointContext`, the operator and its arguments, and gives a
    `CheckpointPolicy` or a truth.

    Args:
        policy_fn_or_list (Policy or sequence): `policy(context, op, *args, **kwargs)`, which returns a
            `CheckpointPolicy`; or the ops whose results are kept.
        allow_cache_entry_mutation (bool): whether kept tensors may be changed in place. Default: `False`.

    Returns:
        the contexts of the first and of the second run.

    Example:
        >>> from functools import partial
        >>> contexts = partial(torch.utils.checkpoint.create_selective_checkpoint_contexts, [torch.ops.aten.mm.default])
        >>> x = torch.ones(2, 2, requires_grad=True)
        >>> y = torch.utils.checkpoint.checkpoint(lambda x: (x @ x).exp(), x, use_reentrant=False, context_fn=contexts)
        >>> y.sum().backward()
        >>> x.grad.shape
        torch.Size([2, 2])
    """
    policy: Policy
    if callable(policy_fn_or_list):
        policy = policy_fn_or_list
    elif isinstance(policy_fn_or_list, list):
        for each in policy_fn_or_list:
            if not isinstance(each, OpOverload):
                raise ValueError(
                    f"Expected op in `policy_fn_or_list` to be an OpOverload but got: {each} of type {type(each)}. "
                    "Name one overload of an operator, such as torch.ops.aten.mm.default."
                )
        listed = set(policy_fn_or_list)
        policy = lambda context, func, *args, **kwargs: func in listed  # noqa: E731
    else:
        raise TypeError("policy_fn_or_list must be either a function or a list of ops.")
    storage: Storage = defaultdict(list)
    return _Keeping(policy, storage), _Finding(storage, allow_cache_entry_mutation)
