"""A trace as the text of a program: a class for each module, and the recorded methods in the class of the root."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from typing import Any

from .._core.tensor import Tensor
from ..autograd.grad_mode import no_grad
from ..nn.modules.module import Module
from ._recording import Recording, plain_of, type_of_example

_INDENT = "    "


def _access(owner: str, name: str) -> str:
    return f"{owner}.{name}" if name.isidentifier() else f'getattr({owner}, "{name}")'


class Layout:
    """The classes of a module and of those inside of it, and where each parameter is."""

    def __init__(self, module: Module) -> None:
        self.names: dict[str, str] = {}
        """The class of the module at each path."""
        self.places: dict[int, str] = {}
        """How `forward` reaches each parameter and buffer."""
        self.modules = dict(module.named_modules(remove_duplicate=False))
        taken: set[str] = set()
        for path, each in self.modules.items():
            name = re.sub(r"\W", "_", type(each).__name__)
            while name in taken:
                name = f"{re.sub(r'_[0-9]+$', '', name)}_{len(taken)}"
            taken.add(name)
            self.names[path] = name
            owner = "self"
            for part in filter(None, path.split(".")):
                owner = _access(owner, part)
            for title, tensor in (*each._parameters.items(), *each._buffers.items()):
                if tensor is not None:
                    self.places.setdefault(id(tensor), _access(owner, title))

    def source(self, methods: dict[str, list[str]], attributes: dict[str, dict[str, str]] | None = None) -> str:
        """The text of all classes, with the methods of each path; inner ones come first.

        `attributes` are those beside parameters, buffers and modules, with their types.
        """
        others = attributes or {}
        return "".join(self._class(path, methods.get(path, []), others.get(path, {})) for path in reversed(self.names))

    def _class(self, path: str, methods: list[str], attributes: dict[str, str]) -> str:
        module = self.modules[path]
        parameters = [name for name, each in module._parameters.items() if each is not None]
        buffers = [name for name, each in module._buffers.items() if each is not None]
        children = [(name, f"{path}.{name}" if path else name) for name, each in module._modules.items() if each]
        lines = [
            f"class {self.names[path]}(Module):",
            f"  __parameters__ = [{''.join(f'{_quoted(each)}, ' for each in parameters)}]",
            f"  __buffers__ = [{''.join(f'{_quoted(each)}, ' for each in buffers)}]",
            *(self._declared(each, "Tensor") for each in (*parameters, *buffers)),
            "  training : bool",
            *(self._declared(name, kind) for name, kind in attributes.items()),
            *(self._declared(name, f"__torch__.{self.names[inner]}") for name, inner in children),
        ]
        absent = [*module._parameters.items(), *module._buffers.items()]
        lines += [self._declared(name, "NoneType") for name, each in absent if each is None]
        return "\n".join(lines) + "\n" + "".join(methods)

    @staticmethod
    def _declared(name: str, kind: str) -> str:
        return f"  {name} : {kind}" if name.isidentifier() else f'  __annotations__["{name}"] = {kind}'


def _quoted(text: str) -> str:
    return f'"{text}"'


def recorded(
    name: str, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], layout: Layout,
    constants: list[Tensor],
) -> str:  # fmt: skip
    """The text of a method: what `function` runs with the example inputs."""
    recording = Recording(layout.places)
    recording.constants = constants
    titles = parameter_names(function, args, kwargs)
    examples = [*args, *kwargs.values()]
    given = [received(recording, title, each) for title, each in zip(titles, examples, strict=True)]
    count = len(args)
    with no_grad(), recurrent_layers(layout, recording), recording:
        result = function(*given[:count], **dict(zip(kwargs, given[count:], strict=True)))
    text = returned(recording, result)
    plain = plain_of(result)
    heads = [f"self: __torch__.{layout.names['']}"]
    heads += [f"{title}: {type_of_example(each)}" for title, each in zip(titles, examples, strict=True)]
    lines = [f"  def {name}({', '.join(heads)}) -> {type_of_example(plain)}:"]
    lines += [_INDENT + each for each in (*recording.lines, f"return {text}")]
    return "\n".join(lines) + "\n"


def parameter_names(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[str]:
    try:
        called = function.forward if isinstance(function, Module) else function
        parameters = list(inspect.signature(called).parameters.values())
    except (TypeError, ValueError):
        parameters = []
    plain = [each.name for each in parameters if each.kind in (each.POSITIONAL_ONLY, each.POSITIONAL_OR_KEYWORD)]
    names = [plain[place] if place < len(plain) else f"argument_{place + 1}" for place in range(len(args))]
    return [*names, *kwargs]


def received(recording: Recording, text: str, value: Any) -> Any:
    """An example input, with the variable in which each of its tensors arrives."""
    if isinstance(value, Tensor):
        variable = recording.new_variable()
        recording.lines.append(f"{variable} = {text}")
        own = value.detach()
        recording.bind(own, variable)
        return recording.traced(own)
    if isinstance(value, (list, tuple)):
        return type(value)([received(recording, f"{text}[{place}]", each) for place, each in enumerate(value)])
    if isinstance(value, dict):
        return {key: received(recording, f'{text}["{key}"]', each) for key, each in value.items()}
    raise RuntimeError(
        f"Type '{type(value).__name__}' cannot be traced. Only Tensors and (possibly nested) Lists, Dicts, and Tuples "
        "of Tensors can be traced"
    )


def returned(recording: Recording, value: Any) -> str:
    if isinstance(value, Tensor):
        return recording.variable_of(value)
    if isinstance(value, tuple):
        return "(" + "".join(f"{returned(recording, each)}, " for each in value) + ")"
    if isinstance(value, list):
        return "[" + ", ".join(returned(recording, each) for each in value) + "]"
    if isinstance(value, dict):
        return "{" + ", ".join(f'"{key}": {returned(recording, each)}' for key, each in value.items()) + "}"
    type_of_example(value)
    raise AssertionError("a value that is none of these is refused above")


class recurrent_layers:
    """Recurrent layers are written as one operator each: while this is entered, they record themselves."""

    def __init__(self, layout: Layout, recording: Recording) -> None:
        from ..nn import RNNBase, RNNCellBase

        self.layers = [each for each in layout.modules.values() if isinstance(each, (RNNBase, RNNCellBase))]
        self.recording = recording

    def __enter__(self) -> None:
        from ._recurrence import cell_recorder, recorder

        for each in self.layers:
            make = recorder if hasattr(each, "num_layers") else cell_recorder
            each.__dict__["forward"] = make(each, self.recording)

    def __exit__(self, *exception: object) -> None:
        for each in self.layers:
            each.__dict__.pop("forward", None)
