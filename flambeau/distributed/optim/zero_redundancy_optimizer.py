"""`ZeroRedundancyOptimizer`: each process keeps the state of a part of the parameters, and steps for all."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ..._core.tensor import Tensor
from ...optim.optimizer import Optimizer
from .. import _objects
from .._sync import broadcast_coalesced
from .._world import group_of
from ..algorithms.join import Join, Joinable, JoinHook

__all__ = ["ZeroRedundancyOptimizer"]


class _JoinHook(JoinHook):
    """A process without inputs steps with the others: the parameters that it keeps are needed everywhere."""

    def __init__(self, optimizer: ZeroRedundancyOptimizer) -> None:
        self._optimizer = optimizer

    def main_hook(self) -> None:
        self._optimizer.step()


class ZeroRedundancyOptimizer(Optimizer, Joinable):
    """Another optimizer, whose state is sharded over the processes: after a step each sends its parameters to all."""

    def __init__(
        self,
        params: Any,
        optimizer_class: type[Optimizer],
        process_group: Any = None,
        parameters_as_bucket_view: bool = False,
        overlap_with_ddp: bool = False,
        **defaults: Any,
    ) -> None:
        if overlap_with_ddp:
            raise NotImplementedError(
                "ZeroRedundancyOptimizer steps after the backward pass: overlap_with_ddp is not built"
            )
        Joinable.__init__(self)
        self._group = group_of(process_group)
        self._optimizer_class = optimizer_class
        self._defaults = defaults
        self._sizes = [0] * self._group.size()
        self._owner: dict[int, int] = {}
        self._gathered: list[Any] = []
        self.optim: Optimizer | None = None
        given = list(params) if isinstance(params, Iterable) else params
        if isinstance(given, Tensor) or not given:
            raise TypeError("`params` argument should be an iterable of Tensors or of groups, and not empty")
        Optimizer.__init__(self, given, dict(defaults))
        self.optim = optimizer_class(self._own_groups(), **defaults)
        self._take_over_options()

    def _own_groups(self) -> list[dict[str, Any]]:
        """The groups with those parameters alone whose state this process keeps."""
        return [{**group, "params": self._own(group)} for group in self.param_groups]

    def _own(self, group: dict[str, Any]) -> list[Tensor]:
        return [each for each in group["params"] if self._owner[id(each)] == self._group.rank()]

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Add parameters; each goes to the process that has least so far, the largest first."""
        Optimizer.add_param_group(self, param_group)
        added = self.param_groups[-1]
        for each in sorted(added["params"], key=lambda parameter: parameter.numel(), reverse=True):
            rank = self._sizes.index(min(self._sizes))
            self._owner[id(each)] = rank
            self._sizes[rank] += each.numel()
        if self.optim is not None:
            self.optim.add_param_group({**added, "params": self._own(added)})
            self._take_over_options()

    def _take_over_options(self) -> None:
        """Show the options that the optimizer has by default."""
        assert self.optim is not None
        for shown, own in zip(self.param_groups, self.optim.param_groups, strict=True):
            for name, value in own.items():
                if name != "params":
                    shown.setdefault(name, value)

    def _pass_on_options(self) -> None:
        """Let a scheduler's changes be those of the optimizer."""
        assert self.optim is not None
        for shown, own in zip(self.param_groups, self.optim.param_groups, strict=True):
            own.update({name: value for name, value in shown.items() if name != "params"})

    def step(self, closure: Any = None, **kwargs: Any) -> Any:
        """A step of the optimizer on the own parameters, and then the parameters of all, from those who keep them."""
        Join.notify_join_context(self)
        assert self.optim is not None
        self._pass_on_options()
        loss = self.optim.step(closure, **kwargs) if closure is not None else self.optim.step(**kwargs)
        everything = [each for group in self.param_groups for each in group["params"]]
        for rank in range(self._group.size()):
            broadcast_coalesced([each for each in everything if self._owner[id(each)] == rank], self._group, rank)
        return loss

    def consolidate_state_dict(self, to: int = 0) -> None:
        """Gather the states of all processes on one of them, before `state_dict()` there."""
        assert self.optim is not None
        self._pass_on_options()
        here = self._group._ranks[self._group.rank()] == to
        self._gathered = [None] * self._group.size() if here else []
        _objects.gather_object(self.optim.state_dict()["state"], self._gathered or None, to, self._group)

    def state_dict(self) -> dict[str, Any]:
        """The state of all parameters, as the optimizer itself would have it in one process."""
        if not self._gathered:
            raise RuntimeError(
                "Optimizer state has not been consolidated on this rank. Please call `consolidate_state_dict(to="
                f"{self._group._ranks[self._group.rank()]})` on all ranks beforehand if you meant to save the global "
                "state."
            )
        whole = Optimizer.state_dict(self)
        positions = self._positions()
        for rank, state in enumerate(self._gathered):
            for local, values in state.items():
                whole["state"][positions[rank][local]] = values
        return whole

    def _positions(self) -> list[list[int]]:
        """For each process, the places of its parameters among all."""
        found: list[list[int]] = [[] for _ in range(self._group.size())]
        everything = (each for group in self.param_groups for each in group["params"])
        for position, each in enumerate(everything):
            found[self._owner[id(each)]].append(position)
        return found

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take the part of a whole state that this process keeps."""
        assert self.optim is not None
        own = self._positions()[self._group.rank()]
        places = {position: local for local, position in enumerate(own)}
        groups = []
        for group in state_dict["param_groups"]:
            kept = [places[position] for position in group["params"] if position in places]
            groups.append({**group, "params": kept})
        state = {places[each]: value for each, value in state_dict["state"].items() if each in places}
        self.optim.load_state_dict({"state": state, "param_groups": groups})
        for shown, loaded in zip(self.param_groups, self.optim.param_groups, strict=True):
            shown.update({name: value for name, value in loaded.items() if name != "params"})

    def join_hook(self, **kwargs: Any) -> JoinHook:
        """What a process does that has no inputs any more."""
        return _JoinHook(self)

    @property
    def join_device(self) -> Any:
        """The device of the parameters."""
        return self.param_groups[0]["params"][0].device

    @property
    def join_process_group(self) -> Any:
        """The group over which the state is sharded."""
        return self._group
