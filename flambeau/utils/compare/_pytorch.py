"""A run under PyTorch as a trace: operators by a `TorchDispatchMode`, results of modules, gradients and parameters."""

from __future__ import annotations

import os
import sys
import weakref
from collections.abc import Iterator
from typing import Any

from ._digest import digest, summary
from ._trace import BACKWARD, FORWARD, STEP, Entry, Trace


class TorchRecorder:
    """A context that records what the PyTorch of this process runs."""

    def __init__(self, title: str, steps: int | None = None) -> None:
        self.trace = Trace(title)
        self._steps = steps
        self._step = 0
        self._in_step = 0
        self._modules: list[str] = []
        self._names: dict[int, tuple[str, Any]] = {}
        self._parameters: dict[int, str] = {}
        self._known: dict[int, tuple[Any, int, int]] = {}
        self._exits: list[Any] = []

    def __enter__(self) -> TorchRecorder:
        import torch
        from torch.nn.modules.module import register_module_forward_hook, register_module_forward_pre_hook
        from torch.optim.optimizer import register_optimizer_step_post_hook, register_optimizer_step_pre_hook
        from torch.utils import _python_dispatch as dispatch

        def run(mode: Any, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            result = func(*args, **(kwargs or {}))
            self._ran(func, args, result)
            return result

        self._tensor_class = torch.Tensor
        self.trace.about = {"library": f"PyTorch {torch.__version__}", "threads": torch.get_num_threads()}
        self._exits = [
            register_module_forward_pre_hook(self._enter_module).remove,
            register_module_forward_hook(self._leave_module, always_call=True).remove,
            register_optimizer_step_pre_hook(self._before_step).remove,
            register_optimizer_step_post_hook(self._after_step).remove,
        ]
        base: Any = dispatch.TorchDispatchMode
        mode = type("Recording", (base,), {"__torch_dispatch__": run})()
        mode.__enter__()
        self._exits.append(lambda: mode.__exit__(None, None, None))
        return self

    def __exit__(self, *exception: object) -> None:
        for each in self._exits:
            each()

    def _tensors(self, values: Any) -> Iterator[Any]:
        for each in values:
            if isinstance(each, self._tensor_class):
                yield each
            elif isinstance(each, (list, tuple)):
                yield from self._tensors(each)
            elif isinstance(each, dict):
                yield from self._tensors(tuple(each.values()))

    @property
    def _is_over(self) -> bool:
        return self._steps is not None and self._step >= self._steps

    def _ran(self, func: Any, args: Any, result: Any) -> None:
        if self._is_over:
            return
        import torch

        number = len(self.trace.entries)
        read = tuple([self._value(each, -1) for each in self._tensors(args)])
        made = tuple([self._value(each, number) for each in self._tensors((result,))])
        backward = torch._C._current_graph_task_id() != -1
        phase = STEP if self._in_step else BACKWARD if backward else FORWARD
        module = self._modules[-1] if self._modules else ""
        others = ", ".join(repr(each) for each in args if isinstance(each, (int, float, bool, str)))
        self.trace.entries.append(Entry(func.__name__, module, _line(), others, self._step, phase, read, made))

    def _value(self, tensor: Any, producer: int) -> int:
        known = self._known.get(id(tensor))
        version = 0 if tensor.is_inference() else tensor._version
        if known is not None and known[0]() is tensor and known[1] == version:
            return known[2]
        kind = f"{str(tensor.dtype)[6:]}{list(tensor.shape)}"
        array = _array(tensor)
        number = self.trace.add_value(digest(array), summary(array), kind, producer)
        self._known[id(tensor)] = weakref.ref(tensor), version, number
        return number

    def _mark(self, name: str, module: str, arguments: str, tensors: list[Any]) -> None:
        if self._is_over:
            return
        values = tuple([self._value(each, -1) for each in tensors])
        phase = STEP if self._in_step or name in ("gradient", "parameter") else FORWARD
        self.trace.entries.append(Entry(name, module, "", arguments, self._step, phase, (), values))

    def _enter_module(self, module: Any, inputs: Any) -> None:
        if id(module) not in self._names:
            root = type(module).__name__
            for name, inner in module.named_modules():
                self._names.setdefault(id(inner), (f"{root}.{name}" if name else root, inner))
            for name, parameter in module.named_parameters():
                self._parameters.setdefault(id(parameter), name)
        self._modules.append(self._names[id(module)][0])

    def _leave_module(self, module: Any, inputs: Any, output: Any) -> None:
        path = self._modules.pop()
        tensors = list(self._tensors((output,)))
        if tensors:
            self._mark("module", path, type(module).__name__, tensors)

    def _before_step(self, optimizer: Any, args: Any, kwargs: Any) -> None:
        self._mark_parameters("gradient", optimizer)
        self._in_step += 1

    def _after_step(self, optimizer: Any, args: Any, kwargs: Any) -> None:
        self._in_step -= 1
        self._mark_parameters("parameter", optimizer)
        self._step += 1

    def _mark_parameters(self, name: str, optimizer: Any) -> None:
        number = 0
        for group in optimizer.param_groups:
            for parameter in group["params"]:
                tensor = parameter.grad if name == "gradient" else parameter
                if tensor is not None:
                    self._mark(name, self._parameters.get(id(parameter), f"parameter {number}"), "", [tensor])
                number += 1


def _array(tensor: Any) -> Any:
    """A NumPy array with the elements of PyTorch's tensor."""
    import torch

    with torch._C._DisableTorchDispatch(), torch.no_grad():
        plain = tensor.detach().resolve_conj().resolve_neg().cpu()
        if plain.dtype is torch.bfloat16:
            import ml_dtypes

            return plain.view(torch.int16).numpy().view(ml_dtypes.bfloat16)
        return plain.numpy()


_OWN = (os.path.dirname(__file__), os.sep + "torch" + os.sep)


def _line() -> str:
    """The innermost line outside of PyTorch and of this package."""
    import linecache

    frame: Any = sys._getframe(2)
    while frame is not None:
        file = frame.f_code.co_filename
        if not file.startswith(_OWN[0]) and _OWN[1] not in file:
            source = linecache.getline(file, frame.f_lineno).strip()
            return f"{os.path.basename(file)}:{frame.f_lineno}: {source}"
        frame = frame.f_back
    return ""
