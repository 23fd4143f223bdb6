"""`export`: a model becomes an ONNX program."""

from __future__ import annotations

import inspect
import os
import re
import warnings
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, BinaryIO

from .._core.process.caller import line_of
from .._core.tensor import Tensor
from .._torch._C._onnx import OperatorExportTypes, TrainingMode
from ..compiler.capture.trace import Trace
from ..compiler.program.sizes import Place
from ..utils._pytree import tree_leaves
from ._converters import has_converter
from ._custom import converters_of
from ._exportable import ExportableModule
from ._fold import fold_constants
from ._graph import Graph, Value
from ._lowering import Lowering
from ._passes import drop_unread, rename, tidy
from ._program import ONNXProgram, Source
from ._sampling import Samples, sample
from ._serialize import model_message, onnx_package
from .errors import OnnxExporterError, OnnxExporterWarning

DEFAULT_OPSET = 20
OLDEST_OPSET = 18
"""The opset that graphs are written in at least; earlier ones are made of it by the `onnx` package."""

EXPORTING = [False]
"""Whether a model is being exported."""


def export(
    model: Any,
    args: tuple[Any, ...] = (),
    f: str | os.PathLike[str] | BinaryIO | None = None,
    *,
    kwargs: dict[str, Any] | None = None,
    verbose: bool | None = None,
    input_names: Sequence[str] | None = None,
    output_names: Sequence[str] | None = None,
    opset_version: int | None = None,
    dynamo: bool = True,
    external_data: bool = True,
    dynamic_shapes: dict[str, Any] | tuple[Any, ...] | list[Any] | None = None,
    custom_translation_table: dict[Callable[..., Any], Callable[..., Any]] | None = None,
    report: bool = False,
    optimize: bool = True,
    verify: bool = False,
    profile: bool = False,
    dump_exported_program: bool = False,
    artifacts_dir: str | os.PathLike[str] = ".",
    export_params: bool = True,
    keep_initializers_as_inputs: bool = False,
    dynamic_axes: Mapping[str, Mapping[int, str]] | Mapping[str, Sequence[int]] | None = None,
    training: Any = TrainingMode.EVAL,
    operator_export_type: Any = OperatorExportTypes.ONNX,
    do_constant_folding: bool = True,
    custom_opsets: Mapping[str, int] | None = None,
    export_modules_as_functions: bool | Collection[type[Any]] = False,
    autograd_inlining: bool = True,
) -> ONNXProgram | None:
    """Write what `model(*args, **kwargs)` computes as an ONNX model; to the file `f`, if one is given.

    Axes named in `dynamic_shapes` or `dynamic_axes` may have any size when the model is run; all others have the sizes
    that `args` have. With `dynamo=True` an `ONNXProgram` is returned; the older style returns nothing.

    Args:
        model: a module, a function, or an `ExportedProgram`.
        args (tuple): example arguments. Default: `()`.
        f (str, PathLike or file object, optional): the file or its path; None writes none.
        kwargs (dict, optional): example keyword arguments.
        verbose (bool, optional): whether messages are printed.
        input_names (sequence of strs, optional): the names of the inputs in the file.
        output_names (sequence of strs, optional): the names of the outputs in the file.
        opset_version (int, optional): the version of ONNX's operators; None takes a recent one.
        dynamo (bool): whether to return an `ONNXProgram`; the older style returns None. Default: `True`.
        external_data (bool): whether large weights go into a file beside it. Default: `True`.
        dynamic_shapes (dict or tuple or list, optional): which sizes may differ, as in
            `torch.export.export`.
        custom_translation_table (dict[Callable[..., Any], Callable[..., Any]], optional): functions that translate
            operators.
        report (bool): not used. Default: `False`.
        optimize (bool): whether constants are folded. Default: `True`.
        verify (bool): whether to run the file with onnxruntime and compare. Default: `False`.
        profile (bool): not used. Default: `False`.
        dump_exported_program (bool): not used. Default: `False`.
        artifacts_dir (str or PathLike): not used. Default: `"."`.
        export_params (bool): whether weights are written. Default: `True`.
        keep_initializers_as_inputs (bool): whether weights are inputs too. Default: `False`.
        dynamic_axes (Mapping[str, Mapping[int, str]] or Mapping[str, Sequence[int]], optional): the older form of
            `dynamic_shapes`.
        training: the mode in which the model is recorded. Default: `TrainingMode.EVAL`.
        operator_export_type: not used. Default: `OperatorExportTypes.ONNX`.
        do_constant_folding (bool): whether constants are folded. Default: `True`.
        custom_opsets (Mapping[str, int], optional): versions by the domains of operators of one's own.
        export_modules_as_functions (bool or collection of classes): must be False: PyTorch has removed it.
            Default: `False`.
        autograd_inlining (bool): not used. Default: `True`.

    Returns:
        the program, with `save` and `__call__`.

    Example:
        >>> import tempfile
        >>> path = tempfile.mkdtemp() + "/model.onnx"
        >>> program = torch.onnx.export(torch.nn.Linear(2, 3), (torch.ones(1, 2),), path, verbose=False)
        >>> torch.onnx.load_module(path)(torch.ones(1, 2)).shape
        torch.Size([1, 3])
    """
    onnx = onnx_package("onnx.export")
    if export_modules_as_functions:
        raise OnnxExporterError("export_modules_as_functions is not supported: PyTorch has removed it too")
    if isinstance(model, ExportableModule):
        if not args and not kwargs:
            args, kwargs = model.example_arguments()
        dynamic_shapes = model.dynamic_shapes() if dynamic_shapes is None else dynamic_shapes
        input_names = model.input_names() if input_names is None else input_names
        output_names = model.output_names() if output_names is None else output_names
    positional = args if isinstance(args, tuple) else (args,)
    named = dict(kwargs or {})
    if not dynamo and positional and isinstance(positional[-1], dict) and not named:
        positional, named = positional[:-1], dict(positional[-1])
    target = getattr(model, "module", None) if type(model).__name__ == "ExportedProgram" else None
    called: Any = target() if callable(target) else model
    names = _input_names(called, positional, named, input_names)
    axes, written = _axes(names, positional, named, dynamic_shapes, dynamic_axes, called)
    opset = DEFAULT_OPSET if opset_version is None else opset_version
    if opset > onnx.defs.onnx_opset_version():
        raise ValueError(f"Unsupported ONNX opset version: {opset}; the package onnx knows those up to "
                         f"{onnx.defs.onnx_opset_version()}")  # fmt: skip
    own = converters_of(custom_translation_table, opset)
    with _exporting(), _mode(called, training):
        taken = sample(called, positional, named, axes, lambda: Trace(lambda name: name in own or has_converter(name)))
    _warn_of_constants(taken.runs[0].trace)
    graph = Graph(max(opset, OLDEST_OPSET))
    graph.domains.update(custom_opsets or {})
    inputs, outputs = _build(graph, taken, called, names, axes, own, output_names)
    if do_constant_folding and optimize:
        fold_constants(graph, [each.name for each in outputs])
    drop_unread(graph, [each.name for each in outputs])
    spelled = dict(written)
    for value in outputs:
        given = (dynamic_axes or {}).get(value.name, {})
        if isinstance(given, Mapping):
            spelled.update({(value.name, dim % max(value.rank, 1)): name for dim, name in given.items()})
    message = model_message(
        graph, inputs, outputs, spelled, type(called).__name__, values=export_params,
        listed=keep_initializers_as_inputs,
    )  # fmt: skip
    if opset < OLDEST_OPSET:
        message = _older(onnx, message, opset)
    program = ONNXProgram(message, model if target is not None else None)
    program.source = Source(called, positional, named)
    if f is not None:
        program.save(f, external_data=None if external_data else False)
    if verify:
        _verify(program, called, positional, named)
    return program if dynamo else None


def _warn_of_constants(trace: Trace) -> None:
    """Say, in the name of each line of the model's that looks at elements, that they are constants from there on."""
    from ..jit import TracerWarning

    for place in dict.fromkeys(place for _, place in trace.looked_at):
        if place is not None:
            file, line, _ = line_of(place)
            warnings.warn_explicit(
                "Converting a tensor to a Python value might cause the trace to be incorrect: what Python does with it "
                "is not exported, so that it is a constant in the model, and may be wrong for other inputs.",
                TracerWarning,
                file,
                line,
            )


@contextmanager
def _exporting() -> Iterator[None]:
    EXPORTING[0] = True
    try:
        yield
    finally:
        EXPORTING[0] = False


@contextmanager
def _mode(model: Any, training: Any) -> Iterator[None]:
    """The model in evaluation, or as it is asked for; afterwards each module is as it was."""
    modules = list(model.modules()) if hasattr(model, "modules") else []
    before = [each.training for each in modules]
    if training != TrainingMode.PRESERVE and modules and any(before) != (training == TrainingMode.TRAINING):
        model.train(training == TrainingMode.TRAINING)
    try:
        yield
    finally:
        for module, was in zip(modules, before, strict=True):
            module.training = was


def _older(onnx: Any, message: Any, opset: int) -> Any:
    """The model in an earlier opset, where the `onnx` package can say it so."""
    try:
        return onnx.version_converter.convert_version(message, opset)
    except Exception as error:
        warnings.warn(
            f"the model stays in opset {OLDEST_OPSET}: opset {opset} cannot express it ({error})",
            OnnxExporterWarning,
            stacklevel=3,
        )
        return message


def _verify(program: ONNXProgram, model: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    from .._ops.pointwise.compare import allclose

    expected = [each for each in tree_leaves(model(*args, **kwargs)) if isinstance(each, Tensor)]
    for number, (theirs, ours) in enumerate(zip(program(*args, **kwargs), expected, strict=True)):
        if not allclose(theirs, ours.detach(), rtol=1e-3, atol=1e-5, equal_nan=True):
            warnings.warn(f"output {number} of the exported model differs", OnnxExporterWarning, stacklevel=3)


# ----- names ----------------------------------------------------------------------------------------------------------


def _parameters(model: Any) -> list[str]:
    function = model.forward if hasattr(model, "forward") else model
    try:
        return list(inspect.signature(function).parameters)
    except (TypeError, ValueError):
        return []


def _input_names(model: Any, args: Sequence[Any], kwargs: Mapping[str, Any], given: Sequence[str] | None) -> list[str]:
    """A name for each leaf of the arguments: those that were given, in the order of the tensors, or the parameters'."""
    known = _parameters(model)
    names: list[str] = []
    left = list(given or ())
    taken: set[str] = set()
    entries = [(known[at] if at < len(known) else f"input_{at}", each) for at, each in enumerate(args)]
    for parameter, value in (*entries, *kwargs.items()):
        leaves = tree_leaves(value)
        for position, leaf in enumerate(leaves):
            name = parameter if len(leaves) == 1 else f"{parameter}_{position}"
            if isinstance(leaf, Tensor) and left:
                name = left.pop(0)
            while name in taken:
                name += "_"
            taken.add(name)
            names.append(name)
    return names


Spelled = dict[tuple[str, int], str]


def _axes(
    names: Sequence[str], args: Sequence[Any], kwargs: Mapping[str, Any], shapes: Any, axes: Any, model: Any
) -> tuple[dict[str, list[Place]], Spelled]:
    """The dynamic axes with the dimensions that have them, and how dimensions are written."""
    leaves = tree_leaves((list(args), dict(kwargs)))
    found: dict[str, list[Place]] = {}
    spelled: Spelled = {}

    def enter(leaf: int, dim: int, name: str | None) -> None:
        place = Place(leaf, dim % leaves[leaf].dim())
        chosen = name or f"{names[leaf]}_dynamic_axes_{dim}"
        found.setdefault(re.sub(r"\W", "_", chosen), []).append(place)
        spelled[names[leaf], place.dim] = chosen

    for name, entry in (axes or {}).items():
        if name in names:
            leaf = names.index(name)
            given = entry.items() if isinstance(entry, Mapping) else [(dim, None) for dim in entry]
            for dim, called in given:
                enter(leaf, dim, called)
    for leaf, spec in enumerate(_specs(shapes, args, kwargs, model)):
        pairs = spec.items() if isinstance(spec, Mapping) else enumerate(spec or ())
        for dim, size in pairs:
            if _is_dynamic(size):
                enter(leaf, dim, size if isinstance(size, str) else getattr(size, "__name__", None))
    return found, spelled


def _is_dynamic(size: Any) -> bool:
    return size is not None and not isinstance(size, int) and not str(size).endswith("STATIC")


def _specs(shapes: Any, args: Sequence[Any], kwargs: Mapping[str, Any], model: Any) -> list[Any]:
    """What `dynamic_shapes` says of each leaf of the arguments."""
    if shapes is None:
        return []
    if isinstance(shapes, Mapping):
        known = _parameters(model)
        by_name = {**dict(zip(known, args, strict=False)), **kwargs}
        return [each for name, value in by_name.items() for each in _spec_of(shapes.get(name), value)]
    values = [*args, *kwargs.values()]
    return [each for spec, value in zip(shapes, values, strict=False) for each in _spec_of(spec, value)]


def _spec_of(spec: Any, value: Any) -> list[Any]:
    if isinstance(value, Tensor) or not tree_leaves(value) or value is None:
        return [spec] * len(tree_leaves(value))
    if isinstance(value, Mapping):
        return [each for key, inner in value.items() for each in _spec_of((spec or {}).get(key), inner)]
    if isinstance(value, (list, tuple)):
        inner_specs = spec if spec is not None else [None] * len(value)
        return [each for inner, at in zip(value, inner_specs, strict=True) for each in _spec_of(at, inner)]
    return [spec]


# ----- the graph ------------------------------------------------------------------------------------------------------


def _build(
    graph: Graph, taken: Samples, model: Any, names: Sequence[str], axes: Mapping[str, Sequence[Place]],
    own: Mapping[str, Callable[..., Any]], output_names: Sequence[str] | None,
) -> tuple[list[Value], list[Value]]:  # fmt: skip
    lowering = Lowering(taken.runs, taken.axes, graph, own)
    for name in names:
        graph.unique(name)
    inputs: dict[int, Value] = {}
    for leaf, (name, number) in enumerate(zip(names, taken.inputs, strict=True)):
        if number is not None:
            inputs[leaf] = lowering.is_input(number, name)
    for name, places in axes.items():
        leaf, dim = places[0][:2]
        graph.axes[name] = (inputs[leaf], dim)
    trace, named = taken.runs[0].trace, _named_tensors(model)
    for number, tensor in trace.outside.items():
        found = named.get(id(tensor._array))
        if found is not None and number not in taken.inputs:
            lowering.is_called(number, found)
    lowering.run()
    graph.scope = ()
    outputs = _outputs(graph, lowering, taken, output_names, {each.name for each in inputs.values()})
    tidy(graph, [each.name for each in outputs])
    return list(inputs.values()), outputs


def _named_tensors(model: Any) -> dict[int, str]:
    if not hasattr(model, "named_parameters"):
        return {}
    named: dict[int, str] = {}
    for name, tensor in (*model.named_parameters(remove_duplicate=False), *model.named_buffers(remove_duplicate=False)):
        named.setdefault(id(tensor._array), name)
    return named


def _outputs(
    graph: Graph, lowering: Lowering, taken: Samples, names: Sequence[str] | None, inputs: Collection[str]
) -> list[Value]:
    """The results under their names; what is also an input, a constant or another result is handed on."""
    first = taken.runs[0]
    leaves = [each for each in tree_leaves(first.outputs) if isinstance(each, Tensor)]
    if not leaves:
        raise OnnxExporterError("the model returns no tensor")
    made: list[Value] = []
    used: set[str] = set()
    produced = {each for node in graph.nodes for each in node.outputs}
    values = [lowering.value(first.trace.number_of(each)) for each in leaves]
    produced |= {each for node in graph.nodes for each in node.outputs}
    for number, (leaf, value) in enumerate(zip(leaves, values, strict=True)):
        shape = lowering.shape(first.trace.number_of(leaf))
        wanted = names[number] if names is not None and number < len(names) else graph.unique(f"output_{number}")
        if value.name in used or value.name in inputs or value.name not in produced:
            renamed = graph.op("Identity", value)
            rename(graph, renamed.name, wanted)
        else:
            rename(graph, value.name, wanted)
            for other in values:
                if other is not value and other.name == value.name:
                    other.name = wanted
            value.name = wanted
        used.add(wanted)
        made.append(Value(wanted, lowering.dtype(first.trace.number_of(leaf)), shape))
    return made
