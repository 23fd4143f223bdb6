"""`ONNXProgram`: an exported model that can be saved, looked at and run."""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import numpy as np

from .._core.backend import to_host
from .._core.names.same_as import same_as
from .._core.tensor import Tensor
from ..utils._pytree import tree_leaves
from ._element_types import tensor_over
from ._serialize import onnx_package, tensor_message
from .errors import OnnxExporterError

_LARGEST_MESSAGE = 2**31 - (1 << 24)
"""What the weights in a message of protocol buffers may occupy, in bytes; the graph needs some too."""


def _bytes_of_weights(message: Any) -> int:
    return sum(len(each.raw_data) for each in message.graph.initializer)


def _ort_session_initializer(model: bytes) -> Any:
    try:
        onnxruntime = importlib.import_module("onnxruntime")
    except ImportError as error:
        raise OnnxExporterError(
            "running an ONNXProgram needs the package onnxruntime, which is not installed"
        ) from error
    return onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"])


class Source(NamedTuple):
    """What was exported, and the example that it was exported with."""

    called: Any
    args: tuple[Any, ...]
    kwargs: dict[str, Any]


class ONNXProgram:
    """A model in the ONNX format.

    Args:
        model: the ONNX model.
        exported_program: the program that it was made from.

    Example:
        >>> program = torch.onnx.export(torch.nn.ReLU(), (torch.ones(2),), verbose=False)
        >>> type(program).__name__
        'ONNXProgram'
    """

    source: Source | None = None

    def __init__(self, model: Any, exported_program: Any) -> None:
        self._message = model
        self.exported_program = exported_program
        self._session: Any = None

    def __repr__(self) -> str:
        inputs = ", ".join(each.name for each in self._message.graph.input)
        outputs = ", ".join(each.name for each in self._message.graph.output)
        return f"ONNXProgram({len(self._message.graph.node)} nodes, inputs: {inputs}, outputs: {outputs})"

    model_proto: Any = same_as("_message", "The model as the `onnx` package's message.")
    model: Any = same_as("_message", "The exported model: `model_proto` under another name.")

    def optimize(self) -> None:
        """Nothing is left to do: graphs are folded and shared when they are exported."""

    def apply_weights(self, state_dict: Mapping[str, Tensor]) -> None:
        """Exchange the values of parameters."""
        for position, each in enumerate(self._message.graph.initializer):
            if each.name in state_dict:
                array = np.asarray(to_host(state_dict[each.name].detach()._array))
                self._message.graph.initializer[position].CopyFrom(tensor_message(each.name, array))
        self.release()

    def save(
        self, destination: str | os.PathLike[str] | BinaryIO, *, include_initializers: bool = True,
        keep_initializers_as_inputs: bool = False, external_data: bool | None = None,
    ) -> None:  # fmt: skip
        """Write the model; weights go to a file of their own, `NAME.data`, if that is asked for, or if they must.

        A file object takes the place of a path where the weights stay with the model.
        """
        onnx = onnx_package("ONNXProgram.save")
        message = onnx.ModelProto()
        message.CopyFrom(self._message)
        if not include_initializers:
            del message.graph.initializer[:]
        if keep_initializers_as_inputs:
            known = {each.name for each in message.graph.input}
            for each in message.graph.initializer:
                if each.name not in known:
                    info = onnx.helper.make_tensor_value_info(each.name, each.data_type, list(each.dims))
                    message.graph.input.append(info)
        too_large = _bytes_of_weights(message) > _LARGEST_MESSAGE
        apart = external_data or (external_data is None and too_large)
        if not apart and too_large:
            raise OnnxExporterError(
                "the model is larger than 2 GB: its weights need a file of their own, external_data"
            )
        if not isinstance(destination, (str, os.PathLike)):
            if apart:
                raise OnnxExporterError("weights in a file of their own need a path to stand beside, not a file object")
            destination.write(message.SerializeToString())
            return
        path = Path(os.fspath(destination))
        if not apart:
            path.write_bytes(message.SerializeToString())
            return
        weights = Path(f"{path}.data")
        weights.unlink(missing_ok=True)  # the package would append
        onnx.save_model(
            message, str(path), save_as_external_data=True, all_tensors_to_one_file=True, location=weights.name,
            size_threshold=1024, convert_attribute=False,
        )  # fmt: skip

    # ----- running ----------------------------------------------------------------------------------------------------

    def initialize_inference_session(self, initializer: Callable[[Any], Any] = _ort_session_initializer) -> None:
        """Make the session of onnxruntime that runs the model."""
        if _bytes_of_weights(self._message) > _LARGEST_MESSAGE:
            raise OnnxExporterError("the model is larger than 2 GB: save it, and make a session of the file")
        self._session = initializer(self._message.SerializeToString())

    def release(self) -> None:
        """Let go of the session."""
        self._session = None

    def __call__(self, *args: Any, **kwargs: Any) -> Sequence[Tensor]:
        """Run the model by onnxruntime; the results are in one flat list."""
        if self._session is None:
            self.initialize_inference_session()
        names = [each.name for each in self._session.get_inputs()]
        given = [each for each in tree_leaves((list(args), kwargs)) if isinstance(each, Tensor)]
        if len(given) < len(names):
            raise ValueError(f"the model has {len(names)} inputs, {', '.join(names)}, but was given {len(given)}")
        feed = {name: to_host(each.detach()._array) for name, each in zip(names, given, strict=False)}
        return [tensor_over(np.asarray(each)) for each in self._session.run(None, feed)]

    def call_reference(self, *args: Any, **kwargs: Any) -> Sequence[Tensor]:
        """Run the model by Flambeau's own reading of it; the results are in one flat list."""
        from ._reading import load_module

        given = [each for each in tree_leaves((list(args), kwargs)) if isinstance(each, Tensor)]
        made = load_module(self._message)(*given)
        return [made] if isinstance(made, Tensor) else list(made)

    def compute_values(
        self, value_names: Sequence[str], args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Sequence[Tensor]:
        """The values that stand under these names inside the model, by onnxruntime."""
        onnx = onnx_package("ONNXProgram.compute_values")
        known = {name for node in self._message.graph.node for name in node.output}
        known |= {each.name for each in (*self._message.graph.input, *self._message.graph.initializer)}
        missing = [name for name in value_names if name not in known]
        if missing:
            raise ValueError(f"the model has no values called {', '.join(missing)}")
        message = onnx.ModelProto()
        message.CopyFrom(self._message)
        del message.graph.output[:]
        message.graph.output.extend(onnx.ValueInfoProto(name=name) for name in value_names)
        return ONNXProgram(message, self.exported_program)(*args, **(kwargs or {}))

    def rename_axes(self, rename_mapping: Mapping[str, str]) -> None:
        """Give sizes that vary other names."""
        infos = (*self._message.graph.input, *self._message.graph.output, *self._message.graph.value_info)
        for info in infos:
            for size in info.type.tensor_type.shape.dim:
                if size.dim_param in rename_mapping:
                    size.dim_param = rename_mapping[size.dim_param]
        self.release()
