"""Modules of graphs as text: to be read, and as a Python package in a folder."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..nn.modules.batchnorm import BatchNorm1d, BatchNorm2d, BatchNorm3d
from ..nn.modules.conv import Conv1d, Conv2d, Conv3d
from ..nn.modules.linear import Linear
from ..nn.modules.module import Module
from ._namespace import CUSTOM_BUILTINS

if TYPE_CHECKING:
    from .graph_module import GraphModule
else:  # what annotations mean at run time, when those modules are not there yet
    GraphModule = Any

_SAID_BY_REPR = (Linear, Conv1d, Conv2d, Conv3d, BatchNorm1d, BatchNorm2d, BatchNorm3d)
"""Layers whose `repr` makes them again."""


def _indented(text: str) -> str:
    """All lines but the first, further in."""
    first, *rest = text.split("\n")
    return "\n".join([first, *("    " + line if line.strip() else "" for line in rest)])


def readable(module: Any, name: str, graph_module: type[Module], **options: Any) -> str:
    """The verbose code of a module as a class, with those of its submodules of the class `graph_module` inside."""
    written = module.graph.python_code(root_module="self", verbose=True, **options)
    text = _indented(f"class {name}(torch.nn.Module):\n" + written.src.lstrip("\n"))
    inner = [
        readable(child, child_name, graph_module, **{**options, "expanded_def": False})
        for child_name, child in module.named_children()
        if isinstance(child, graph_module)
    ]
    return text + _indented("\n".join(["", *inner]))


def write_folder(module: GraphModule, folder: Any, module_name: str) -> None:
    """A Python package in a folder: `module.py` with the class, and the weights beside it."""
    from ..serialization import save

    place = Path(folder)
    place.mkdir(exist_ok=True)
    save(module.state_dict(), place / "state_dict.pt")
    imports = "\n".join(statement for statement, _ in CUSTOM_BUILTINS.values())
    lines, pickled = [], []
    for name, child in module.named_children():
        if type(child) in _SAID_BY_REPR:
            lines.append(f"setattr(self, '{name}', {child!r})")
            continue
        file = place / f"{name}.pt"
        save(child, file)
        pickled.append(name)
        described = repr(child).replace("\r", " ").replace("\n", " ")
        lines.append(f"setattr(self, '{name}', torch.load(r'{file}', weights_only=False)) # {described}")
    lines += _empty_tensors(module)
    lines.append(f"self.load_state_dict(torch.load(r'{place}/state_dict.pt'))")
    body = "".join(f"        {line}\n" for line in lines)
    code = _indented(module.code)
    text = (
        f"\nimport torch\n{imports}\n\nfrom torch.nn import *\nclass {module_name}(torch.nn.Module):\n"
        f"    def __init__(self):\n        super().__init__()\n{body}{code}\n"
    )
    (place / "module.py").write_text(text, encoding="utf-8")
    (place / "__init__.py").write_text("from .module import *", encoding="utf-8")
    if pickled:
        warnings.warn(
            f"Was not able to save the following children modules as reprs -saved as pickled files instead: {pickled}",
            stacklevel=3,
        )


def _empty_tensors(module: Module) -> list[str]:
    buffers = [
        f"self.register_buffer('{name}', torch.empty({list(each.shape)}, dtype={each.dtype}))"
        for name, each in module._buffers.items()
        if each is not None
    ]
    parameters = [
        f"setattr(self, '{name}', torch.nn.Parameter(torch.empty({list(each.shape)}, dtype={each.dtype})))"
        for name, each in module._parameters.items()
        if each is not None
    ]
    return [*buffers, *parameters]
