"""`TrainingState`: all that a training run is made of, saved together, so that it can be continued exactly."""

from __future__ import annotations

import copy
import enum
import os
import pickle
from collections.abc import Iterator
from typing import Any

from .. import serialization
from .._core.tensor import Tensor
from .._serialization.globals import SafeGlobals
from .._serialization.names import canonical_name
from .._serialization.scanning import globals_in
from .._serialization.writing import SavedStorages, pickled
from ._random_states import RandomStates

__all__ = ["TrainingState"]

StateDict = dict[str, Any]
VERSION = 1
_MARK = "training_state_version"


class _Phase(enum.Enum):
    """Where the program stands in its two loops."""

    BETWEEN = "between two epochs"
    OPENED = "in an epoch, before its batches"
    RUNNING = "among the batches"
    LEFT = "after a loop over batches that was left early"
    DONE = "in an epoch, after its batches"
    PAUSED = "about to continue among the batches"


class TrainingState:
    """Model, optimizer, scheduler, scaler, loader and all random numbers of a training run, and its position.

    A run that is interrupted at any moment and continued from the last `save` gives bitwise the losses and weights of a
    run that was not interrupted. A program that does so:

        state = TrainingState(model=model, optimizer=optimizer, scheduler=scheduler, loader=loader)
        state.resume("run.pt")
        for epoch in state.epochs(10):
            for inputs, targets in state.batches():
                ...
                if state.step % 100 == 0:
                    state.save("run.pt")
            scheduler.step()
            state.save("run.pt")

    `save` belongs at the end of the inner or the outer loop's body: what stands after it is not repeated. What stands
    before the inner loop is run again when an epoch is continued, with the random numbers that it had the first time.

    Args:
        model, optimizer, scheduler, scaler, loader: parts of the run; those that are None are left out.
        generators: generators beside the default ones of Flambeau, Python and NumPy, which are always kept: a
            `flambeau.Generator`, a `random.Random`, a generator of NumPy, or a list of such.
        parts: further parts, under names of your own: anything with `state_dict` and `load_state_dict`.

    >>> from flambeau.utils import TrainingState
    >>> model = flambeau.nn.Linear(2, 1)
    >>> state = TrainingState(model=model, optimizer=flambeau.optim.SGD(model.parameters(), lr=0.1), loader=None)
    >>> [epoch for epoch in state.epochs(3)]
    [0, 1, 2]
    """

    def __init__(
        self,
        *,
        model: Any = None,
        optimizer: Any = None,
        scheduler: Any = None,
        scaler: Any = None,
        loader: Any = None,
        generators: Any = (),
        **parts: Any,
    ) -> None:
        usual = {"model": model, "optimizer": optimizer, "scheduler": scheduler, "scaler": scaler, "loader": loader}
        self.parts: dict[str, Any] = {name: part for name, part in (usual | parts).items() if part is not None}
        """The parts by name."""
        for name, part in self.parts.items():
            missing = [each for each in ("state_dict", "load_state_dict") if not callable(getattr(part, each, None))]
            if missing:
                raise TypeError(f"{name} must have {' and '.join(missing)}, but {type(part).__name__} has not")
        self.epoch = 0
        """The number of the current epoch; between epochs, of the next."""
        self.step = 0
        """How many batches there were, the current one included."""
        self.values: dict[str, Any] = {}
        """Values of the program's own that are saved as well, such as the best loss: numbers, lists, tensors."""
        self._random = RandomStates(generators)
        self._random_at_start: StateDict | None = None
        self._paused: StateDict = {}
        self._phase = _Phase.BETWEEN
        self._in_epochs = False

    def __repr__(self) -> str:
        parts = ", ".join(f"{name}={type(part).__name__}" for name, part in self.parts.items())
        return f"{type(self).__name__}({parts}) at epoch {self.epoch}, step {self.step}"

    # ----- the loops --------------------------------------------------------------------------------------------

    def epochs(self, count: int) -> Iterator[int]:
        """The numbers of the epochs up to `count`, from the current one on: that in which the run was saved."""
        if self._in_epochs:
            raise RuntimeError("epochs() cannot be used within another loop over epochs()")
        self._reenter()
        self._in_epochs = True
        try:
            while self.epoch < count:
                self._open_epoch()
                yield self.epoch
                if self._phase in (_Phase.OPENED, _Phase.PAUSED):
                    raise RuntimeError(
                        f"epoch {self.epoch} ended without a loop over batches(): go over the loader with "
                        "`for batch in state.batches()`, so that the position in the epoch is known"
                    )
                self._close_epoch()
        finally:
            self._in_epochs = False

    def batches(self) -> Iterator[Any]:
        """The batches of the loader; in an epoch that is continued, those that are left."""
        if "loader" not in self.parts:
            raise RuntimeError("batches() needs a loader: pass loader= to TrainingState")
        if not self._in_epochs:
            self._reenter()
        if self._phase not in (_Phase.BETWEEN, _Phase.OPENED, _Phase.PAUSED):
            raise RuntimeError("batches() can be used once in each epoch, and not within another loop over batches()")
        batches = iter(self.parts["loader"])
        if self._phase is _Phase.PAUSED:
            self._unpause()
        self._phase = _Phase.RUNNING
        try:
            for batch in batches:
                self.step += 1
                yield batch
            self._phase = _Phase.DONE
        finally:
            if self._phase is _Phase.RUNNING:
                self._phase = _Phase.LEFT

    def _open_epoch(self) -> None:
        if self._phase is not _Phase.PAUSED:
            self._random_at_start = self._random.states()
            self._phase = _Phase.OPENED if "loader" in self.parts else _Phase.DONE
        elif self._random_at_start is not None:
            self._random.restore(self._random_at_start)

    def _close_epoch(self) -> None:
        self.epoch += 1
        self._random_at_start = None
        self._phase = _Phase.BETWEEN

    def _reenter(self) -> None:
        """Begin a loop: after a finished epoch the next one, after loops that were left early where that was."""
        if self._phase is _Phase.DONE:
            self._close_epoch()
        elif self._phase is _Phase.LEFT:
            loader = self.parts["loader"]
            loader.load_state_dict(loader.state_dict())
            self._pause(self._random.states(), self.values)

    def _pause(self, random_states: StateDict, values: dict[str, Any]) -> None:
        self._paused = {"random": random_states, "values": copy.deepcopy(values)}
        self._phase = _Phase.PAUSED

    def _unpause(self) -> None:
        """Undo what the program did since it was continued until it came to the batches again."""
        self._random.restore(self._paused["random"])
        self._set_values(self._paused["values"])
        self._paused = {}

    def _set_values(self, values: dict[str, Any]) -> None:
        self.values.clear()
        self.values.update(copy.deepcopy(values))

    # ----- the state --------------------------------------------------------------------------------------------

    def state_dict(self) -> StateDict:
        """All states and the position. As in the parts' own, tensors share memory with the parts."""
        if self._phase is _Phase.OPENED:
            raise RuntimeError(
                "the state cannot be taken in an epoch before its loop over batches() has begun: "
                "save at the end of the body of a loop, or between epochs"
            )
        left = self._phase is _Phase.LEFT
        is_over = self._phase is _Phase.DONE or (left and self._in_epochs)
        is_within = self._phase in (_Phase.RUNNING, _Phase.PAUSED) or (left and not self._in_epochs)
        present = {"random": self._random.states(), "values": self.values} | self._paused
        states = {name: part.state_dict() for name, part in self.parts.items()}
        if left and is_over and "running" in states["loader"]:
            states["loader"] = {**states["loader"], "running": False}  # the next epoch begins anew
        return {
            _MARK: VERSION,
            "epoch": self.epoch + is_over,
            "step": self.step,
            "within_epoch": is_within,
            "batches_in_epoch": _length(self.parts.get("loader")),
            "kinds": {name: type(part).__name__ for name, part in self.parts.items()},
            "parts": states,
            "gradients": {name: param.grad for name, param in self._parameters() if param.grad is not None},
            "generators": self._random.kinds(),
            "random_at_start": self._random_at_start if is_within else None,
            **present,
        }

    def load_state_dict(self, state_dict: StateDict) -> None:
        """Continue from what `state_dict` gave, with parts that were made in the same way.

        After an error, the parts may have been loaded in part.
        """
        if self._in_epochs or self._phase is _Phase.RUNNING:
            raise RuntimeError("a state cannot be loaded within a loop over epochs() or batches(): leave it before")
        self._check(state_dict)
        for name, part in self.parts.items():
            _load(name, part, state_dict["parts"][name])
        self.epoch = state_dict["epoch"]
        self.step = state_dict["step"]
        for part in self.parts.values():
            if hasattr(part, "param_groups") and (self.step or self.epoch):
                part._opt_called = True  # or a scheduler that makes its first step now would warn of the order
        for name, param in self._parameters():
            grad = state_dict["gradients"].get(name)
            param.grad = None if grad is None else grad.to(param.device, copy=True)
        self._set_values(state_dict["values"])
        self._random_at_start = state_dict["random_at_start"]
        self._random.restore(state_dict["random"])
        self._paused = {}
        self._phase = _Phase.BETWEEN
        if state_dict["within_epoch"]:
            self._pause(state_dict["random"], state_dict["values"])

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the state to a file. A crash leaves the old file or the new one.

        Gradients are a part of the state. Where every step computes them anew, call `optimizer.zero_grad()` before, and
        the file is smaller.
        """
        state = self.state_dict()
        for name, content in (state["parts"] | {"values": state["values"]}).items():
            _check_safe(name, content)
        serialization.save(state, path)

    def resume(self, path: str | os.PathLike[str]) -> bool:
        """Continue from a file that `save` wrote; if there is none, nothing changes. Says whether there was one."""
        if not os.path.exists(path):
            return False
        state = serialization.load(path, map_location="cpu", weights_only=True)
        try:
            self.load_state_dict(state)
        except (RuntimeError, ValueError) as error:
            raise type(error)(f"cannot resume from {os.fspath(path)}: {error}") from error
        return True

    def _parameters(self) -> Iterator[tuple[str, Tensor]]:
        """Each parameter of models and optimizers once, with a name."""
        seen: set[int] = set()
        for name, part in self.parts.items():
            found: list[tuple[Any, Tensor]] = []
            if hasattr(part, "named_parameters"):
                found = list(part.named_parameters())
            elif hasattr(part, "param_groups"):
                found = list(enumerate(param for group in part.param_groups for param in group["params"]))
            for key, param in found:
                if id(param) not in seen:
                    seen.add(id(param))
                    yield f"{name}.{key}", param

    def _check(self, state: Any) -> None:
        """Refuse a state that these parts cannot continue from."""
        version = state.get(_MARK) if isinstance(state, dict) else None
        if version is None:
            what = f"a dict of {_listed(list(state)[:5])}" if isinstance(state, dict) else type(state).__name__
            raise ValueError(f"expected the state of a TrainingState, but got {what}")
        if version != VERSION:
            raise ValueError(f"expected the state of a TrainingState of version {VERSION}, but got version {version}")
        kinds = state["kinds"]
        if kinds.keys() != self.parts.keys():
            absent, unsaved = kinds.keys() - self.parts.keys(), self.parts.keys() - kinds.keys()
            reasons = [f"{_listed(sorted(absent))} was saved but not given to this TrainingState"] if absent else []
            reasons += [f"{_listed(sorted(unsaved))} was given but not saved"] if unsaved else []
            raise ValueError(f"the state has other parts than this TrainingState: {'; '.join(reasons)}")
        for name, part in self.parts.items():
            if not hasattr(part, "named_parameters") and kinds[name] != type(part).__name__:
                raise ValueError(f"{name} was of the type {kinds[name]} when saved, but is {type(part).__name__} here")
        if state["generators"] != self._random.kinds():
            raise ValueError(
                f"generators were [{', '.join(state['generators'])}] when saved, "
                f"but are [{', '.join(self._random.kinds())}] here"
            )
        saved, here = state["batches_in_epoch"], _length(self.parts.get("loader"))
        if state["within_epoch"] and saved != here:
            raise ValueError(
                f"the state was saved in the middle of an epoch of {saved} batches, but the loader has {here} here: "
                "make it with the same dataset and batch_size"
            )


def _listed(names: list[Any]) -> str:
    return ", ".join(map(repr, names)) or "nothing"


def _length(loader: Any) -> int | None:
    """How many batches a loader has in an epoch, if that is known."""
    sampler = getattr(loader, "batch_sampler", None)
    if sampler is None:
        sampler = getattr(loader, "sampler", None)
    try:
        return len(sampler)  # type: ignore[arg-type]  # a TypeError if it has none
    except TypeError:
        return None


def _load(name: str, part: Any, state: Any) -> None:
    try:
        part.load_state_dict(state)
    except Exception as error:
        raise RuntimeError(f"the saved state of {name} does not fit: {error}") from error


def _check_safe(name: str, content: Any) -> None:
    """Refuse what could be written, but not be loaded again without trusting the file."""
    known = SafeGlobals()
    named = globals_in(pickled(content, serialization.DEFAULT_PROTOCOL, pickle, SavedStorages()))
    unknown = [canonical_name(*each) for each in named if not known.is_known(*each)]
    if unknown:
        raise TypeError(
            f"the state of {name} has objects that a file cannot hold safely: {', '.join(unknown)}. Keep plain values, "
            "containers and tensors in it, or allow the class with flambeau.serialization.add_safe_globals"
        )
