"""`export`: a module run on examples, its operators written down, with sizes that may vary found from several runs."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Mapping, Sequence
from typing import Any

from .._core.tensor import Tensor
from ..compiler._errors import UserError, UserErrorType
from ..compiler._marks import exporting
from ..compiler.program.sizes import Place
from ..fx._lowering import AxisPlace, DataDependent, Lowering, SizeDependent
from ..fx.graph import Graph
from ..fx.graph_module import GraphModule
from ..fx.node import Node
from ..nn.modules.module import Module
from ..onnx._sampling import Samples, sample
from ..onnx.errors import OnnxExporterError
from ..utils._pytree import TreeSpec, tree_flatten, tree_leaves_with_path
from ._whole_calls import CallTrace
from .dynamic_shapes import DynamicDim, dynamic_dimensions
from .exported_program import Calling, ExportedProgram, InputCheck, ValueRange
from .graph_signature import (
    ConstantArgument,
    ExportGraphSignature,
    InputKind,
    InputSpec,
    OutputKind,
    OutputSpec,
    TensorArgument,
)


def export(
    mod: Module, args: tuple[Any, ...], kwargs: Mapping[str, Any] | None = None, *, dynamic_shapes: Any = None,
    strict: bool = False, preserve_module_call_signature: tuple[str, ...] = (),
    prefer_deferred_runtime_asserts_over_guards: bool = False,
) -> ExportedProgram:  # fmt: skip
    """A module as an `ExportedProgram`: the operators that it runs on example arguments.

    Dimensions that `dynamic_shapes` names may have other sizes later: the module also runs at other sizes, and what
    depends on them is computed in the graph. What Python decides by elements of the inputs cannot be exported.

    >>> linear = flambeau.nn.Linear(3, 2)
    >>> program = flambeau.export.export(linear, (flambeau.ones(4, 3),))
    >>> program.graph_signature.parameters
    ('weight', 'bias')
    >>> flambeau.equal(program.module()(flambeau.ones(4, 3)), linear(flambeau.ones(4, 3)))
    True

    Args:
        mod (Module): the module.
        args (tuple): example arguments.
        kwargs (Mapping[str, Any], optional): example keyword arguments.
        dynamic_shapes: which sizes may differ: `Dim`s by argument and dimension.
        strict (bool): not used: there is one way to record. Default: `False`.
        preserve_module_call_signature (tuple of strs): paths of modules whose calls stay recognisable. Default: `()`.
        prefer_deferred_runtime_asserts_over_guards (bool): not used. Default: `False`.

    Returns:
        ExportedProgram: the program.
    """
    if not isinstance(mod, Module):
        raise ValueError(f"Expected `mod` to be an instance of `torch.nn.Module`, got {type(mod)}.")
    if not isinstance(args, tuple):
        raise UserError(
            UserErrorType.INVALID_INPUT,
            f"Expecting `args` to be a tuple of example positional inputs, got {type(args)}",
        )
    named = _in_order(mod, kwargs or {})
    dims = dynamic_dimensions(mod, args, named, dynamic_shapes)
    return _Export(mod, args, named).program(dims)


def _in_order(mod: Module, kwargs: Mapping[str, Any]) -> dict[str, Any]:
    """The keyword arguments in the order of the module's parameters."""
    order = list(inspect.signature(mod.forward).parameters)
    return dict(sorted(kwargs.items(), key=lambda item: order.index(item[0]) if item[0] in order else len(order)))


class _Export:
    """One export."""

    def __init__(self, mod: Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        self.mod, self.args, self.kwargs = mod, args, kwargs
        self.leaves, self.in_spec = tree_flatten((args, kwargs))
        self.graph = Graph()
        self.specs: list[InputSpec] = []
        self.state: dict[str, Any] = {}
        self.constants: dict[str, Any] = {}
        self.first_input: Node | None = None

    def program(self, dims: Sequence[DynamicDim]) -> ExportedProgram:
        """Run the module, build the graph, and note all that belongs to it."""
        dims, (results, out_spec) = self._sampled(dims)
        self.graph.output(tuple(results))
        signature = ExportGraphSignature(self.specs, [_output_spec(each) for each in results])
        calling = Calling(self._argument_names(), self.in_spec, out_spec, self._checks(dims))
        ranges = {each.name: ValueRange(each.min, each.max) for each in dims}
        module = GraphModule({}, self.graph)
        return ExportedProgram(module, signature, self.state, self.constants, calling, ranges, (self.args, self.kwargs))

    def _sampled(self, dims: Sequence[DynamicDim]) -> tuple[list[DynamicDim], tuple[list[Any], TreeSpec]]:
        """Run the module and make the graph; dimensions that may be fixed, and that the module fixes, are left out."""
        wanted = list(dims)
        while True:
            axes: dict[str, list[Place]] = {}
            for each in wanted:
                axes.setdefault(each.name, []).append(Place(each.leaf, each.dim, each.size.factor, each.size.shift))
            try:
                bounds = {each.name: (each.min, each.max) for each in wanted}
                for many in (False, True):
                    with exporting():
                        samples = sample(self.mod, self.args, self.kwargs, axes, CallTrace, bounds, many)
                    made, has_guessed = self._lowered(samples, wanted)
                    if not has_guessed:  # what few runs suggest, more of them check
                        break
                return wanted, made
            except DataDependent:
                raise
            except (OnnxExporterError, RuntimeError) as error:
                optional = [each for each in wanted if not each.must]
                if not optional:
                    if not wanted or not isinstance(error, (OnnxExporterError, SizeDependent)):
                        raise
                    names = ", ".join(dict.fromkeys([each.name for each in wanted]))
                    message = f"Constraints violated ({names})! {error}"
                    raise UserError(UserErrorType.CONSTRAINT_VIOLATION, message) from error
                wanted.remove(optional[-1])

    def _lowered(self, samples: Samples, dims: Sequence[DynamicDim]) -> tuple[tuple[list[Any], TreeSpec], bool]:
        """Make the graph; what it returns, node by node, with the structure of that, and whether sizes were guessed."""
        self.graph, self.specs, self.state, self.constants = Graph(), [], {}, {}
        trace = samples.runs[0].trace
        lowering = Lowering([run.trace for run in samples.runs], samples.axes, self.graph)
        lowering.finds_ranges = False  # a call of `arange` is in the trace
        lowering.constant = functools.partial(self._lifted, {id(v): k for k, v in self._plain_tensors()})
        for name, parameter in self.mod.named_parameters(remove_duplicate=False):
            node = self._member(InputKind.PARAMETER, "p", name)
            self.state[name] = parameter
            lowering.note_input(trace.number_of(parameter), node, depends=False)
        persistent = self.mod.state_dict(keep_vars=True).keys()
        for name, buffer in self.mod.named_buffers(remove_duplicate=False):
            node = self._member(InputKind.BUFFER, "b", name, name in persistent)
            (self.state if name in persistent else self.constants)[name] = buffer
            lowering.note_input(trace.number_of(buffer), node, depends=False)
        inputs = []
        for name, leaf, number in zip(self._input_names(), self.leaves, samples.inputs, strict=True):
            node = self.graph.placeholder(name)
            node.name = name  # also where Python has a function of that name
            inputs.append(node)
            if isinstance(leaf, Tensor):
                assert number is not None
                self.specs.append(InputSpec(InputKind.USER_INPUT, TensorArgument(node.name), None))
                lowering.note_input(number, node)
            else:
                node.meta["val"] = leaf
                self.specs.append(InputSpec(InputKind.USER_INPUT, ConstantArgument(node.name, leaf), None))
        self.first_input = inputs[0] if inputs else None
        for each in sorted(dims, key=lambda each: each.size[1:] != (1, 0)):  # plain ones first
            lowering.axes.setdefault(each.name, AxisPlace(inputs[each.leaf], each.dim, *each.size[1:]))
        flat = [tree_flatten(run.outputs) for run in samples.runs]
        out_spec = flat[0][1]
        if any(spec != out_spec for _, spec in flat):
            raise SizeDependent(
                "what the module returns has another structure at other sizes of its dynamic dimensions"
            )
        returned = lowering.returned([leaves for leaves, _ in flat])
        return (returned, out_spec), lowering.fitting.has_guessed

    # ----- inputs of the graph ----------------------------------------------------------------------------------

    def _member(self, kind: InputKind, prefix: str, name: str, persistent: bool | None = None) -> Node:
        node = self.graph.placeholder(f"{prefix}_{name.replace('.', '_')}".lower())
        self.specs.append(InputSpec(kind, TensorArgument(node.name), name, persistent))
        return node

    def _plain_tensors(self) -> list[tuple[str, Tensor]]:
        """Tensors that are attributes of modules, but no members of them."""
        return [
            (f"{path}.{name}" if path else name, value)
            for path, module in self.mod.named_modules()
            for name, value in vars(module).items()
            if isinstance(value, Tensor)
        ]

    def _lifted(self, known: dict[int, str], tensor: Tensor) -> Node:
        """The input that a tensor from outside of the module becomes: a constant."""
        name = known.get(id(tensor))
        if name is None:
            number = sum(each.startswith("lifted_tensor_") for each in self.constants)
            name = f"lifted_tensor_{number}"
        place = self.first_input
        with self.graph.inserting_before(place) if place is not None else self.graph.inserting_after(None):
            node = self.graph.placeholder(f"c_{name.replace('.', '_')}")
        position = sum(each.kind is not InputKind.USER_INPUT for each in self.specs)
        self.specs.insert(position, InputSpec(InputKind.CONSTANT_TENSOR, TensorArgument(node.name), name))
        self.constants[name] = tensor
        return node

    def _argument_names(self) -> list[str]:
        """A name for each argument by position, then those given by name."""
        parameters = list(inspect.signature(self.mod.forward).parameters.values())
        names: list[str] = []
        for number in range(len(self.args)):
            known = parameters[min(number, len(parameters) - 1)]
            if known.kind is known.VAR_POSITIONAL:
                names.append(f"{known.name}_{number - parameters.index(known)}")
            else:
                names.append(known.name)
        return [*names, *self.kwargs]

    def _input_names(self) -> list[str]:
        """A name for each leaf of the arguments: its path."""
        found = []
        for name, value in zip(self._argument_names(), (*self.args, *self.kwargs.values()), strict=True):
            for path, _ in tree_leaves_with_path(value):
                keys = [str(getattr(key, "idx", getattr(key, "key", getattr(key, "name", key)))) for key in path]
                found.append("_".join([name, *keys]).lower())
        return found

    def _checks(self, dims: Sequence[DynamicDim]) -> list[InputCheck | ConstantArgument | None]:
        moving = {(each.leaf, each.dim): str(each.size) for each in dims}
        found: list[InputCheck | ConstantArgument | None] = []
        for number, (leaf, name) in enumerate(zip(self.leaves, self._input_names(), strict=True)):
            if isinstance(leaf, Tensor):
                shape = [moving.get((number, dim), size) for dim, size in enumerate(leaf.shape)]
                found.append(InputCheck(leaf.dtype, shape))
            elif leaf is None or isinstance(leaf, (int, float, bool, str)):
                found.append(ConstantArgument(name, leaf))
            else:
                found.append(None)
        return found


def _output_spec(value: Any) -> OutputSpec:
    arg = TensorArgument(value.name) if isinstance(value, Node) else ConstantArgument("", value)
    return OutputSpec(OutputKind.USER_OUTPUT, arg, None)
