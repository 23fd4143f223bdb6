"""`ExportedProgram`: a graph of operators and all that it needs, under the names of `torch.export.exported_program`."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from .._core.names.same_as import same_as
from .._core.tensor import Tensor
from .._torch._subclasses.fake_tensor import FakeTensorMode
from ..compiler.program.sizes import Place
from ..fx._code_of_nests import _PyTreeCodeGen, _PyTreeInfo
from ..fx.experimental.proxy_tensor import recorded
from ..fx.graph import Graph
from ..fx.graph_module import GraphModule, _assign_attr
from ..fx.node import Node
from ..nn.modules.module import Module
from ..utils._pytree import TreeSpec, tree_flatten
from .decomp_utils import CustomDecompTable
from .dynamic_shapes import SizeOf
from .graph_signature import (
    ConstantArgument,
    ExportGraphSignature,
    InputKind,
    InputSpec,
    OutputSpec,
    TensorArgument,
)

__all__ = ["ExportedProgram", "ModuleCallEntry", "ModuleCallSignature", "default_decompositions"]


class ValueRange(NamedTuple):
    """The bounds of a size."""

    lower: int
    upper: int


@dataclass
class ModuleCallSignature:
    """What a module of the program takes and returns.

    Args:
        inputs (list): the inputs.
        outputs (list): the outputs.
        in_spec (TreeSpec): the structure of the arguments.
        out_spec (TreeSpec): the structure of the results.
        forward_arg_names (list of strs, optional): the names of the arguments.

    Example:
        >>> program = torch.export.export(torch.nn.ReLU(), (torch.ones(2),))
        >>> len(program.module_call_graph)
        1
    """

    inputs: list[Any]
    outputs: list[Any]
    in_spec: TreeSpec
    out_spec: TreeSpec
    forward_arg_names: list[str] | None = None


@dataclass
class ModuleCallEntry:
    """A module of the program, by its path.

    Args:
        fqn (str): the path of the module.
        signature (ModuleCallSignature, optional): what it takes and returns; None if that was not asked for.

    Example:
        >>> torch.export.ModuleCallEntry("encoder").fqn
        'encoder'
    """

    fqn: str
    signature: ModuleCallSignature | None = None


@dataclass
class InputCheck:
    """What a tensor that is given to the program must be: its dtype, and its shape, with names for what may vary."""

    dtype: Any
    shape: list[int | str]


@dataclass
class Calling:
    """How the program is called: the structures of arguments and results, and what is checked."""

    names: list[str]
    in_spec: TreeSpec
    out_spec: TreeSpec
    checks: list[InputCheck | ConstantArgument | None] = field(default_factory=list)


def default_decompositions() -> CustomDecompTable:
    """The operators that `run_decompositions` takes apart unless it is told otherwise: the graph has none of those.

    Returns:
        CustomDecompTable: the table.

    Example:
        >>> len(torch.export.default_decompositions()) > 0
        False
    """
    return CustomDecompTable()


class ExportedProgram:
    """A program as a graph of operators, with its weights, constants and the form of its call.

    Args:
        graph_module (GraphModule): the graph.
        graph_signature (ExportGraphSignature): its inputs and outputs.
        state_dict (dict): the weights.
        constants (dict): further tensors.
        calling (Calling): how arguments and results are arranged.
        range_constraints (dict[str, ValueRange]): the bounds of dynamic sizes.
        example_inputs (tuple[tuple, dict], optional): the example arguments.

    Example:
        >>> program = torch.export.export(torch.nn.Linear(2, 3), (torch.ones(1, 2),))
        >>> program.module()(torch.ones(1, 2)).shape, list(program.state_dict)
        (torch.Size([1, 3]), ['weight', 'bias'])
    """

    def __init__(
        self, graph_module: GraphModule, graph_signature: ExportGraphSignature, state_dict: dict[str, Any],
        constants: dict[str, Any], calling: Calling, range_constraints: dict[str, ValueRange],
        example_inputs: tuple[tuple[Any, ...], dict[str, Any]] | None = None,
    ) -> None:  # fmt: skip
        self._graph_module, self._graph_signature = graph_module, graph_signature
        self._state_dict, self._constants = state_dict, constants
        self._calling, self._range_constraints = calling, range_constraints
        self._example_inputs = example_inputs

    @property
    def graph_module(self) -> GraphModule:
        """The module of the graph, which takes weights, constants and inputs one by one."""
        return self._graph_module

    graph: Graph = same_as("_graph_module.graph", "The graph of operators.")
    graph_signature: ExportGraphSignature = same_as("_graph_signature", "What the graph's inputs and outputs are.")
    state_dict: dict[str, Any] = same_as("_state_dict", "The parameters and buffers.")

    @property
    def constants(self) -> dict[str, Any]:
        """The tensors that the program made for itself, and buffers that the state dict leaves out."""
        return self._constants

    @property
    def tensor_constants(self) -> dict[str, Any]:
        """The tensors that the program made for itself: `constants` under another name."""
        return self._constants

    @property
    def range_constraints(self) -> dict[str, ValueRange]:
        """The bounds of the sizes that may vary, by name."""
        return self._range_constraints

    @property
    def example_inputs(self) -> tuple[tuple[Any, ...], dict[str, Any]] | None:
        """What the program was exported with."""
        return self._example_inputs

    call_spec: Calling = same_as("_calling", "The structures of arguments and results.")

    @property
    def module_call_graph(self) -> list[ModuleCallEntry]:
        """The program itself, as the one module that is called."""
        inputs = [each.arg for each in self._graph_signature.input_specs if each.kind is InputKind.USER_INPUT]
        outputs = [each.arg for each in self._graph_signature.output_specs]
        signature = ModuleCallSignature(inputs, outputs, self._calling.in_spec, self._calling.out_spec)
        return [ModuleCallEntry("", signature)]

    @property
    def dialect(self) -> str:
        """Which operators the graph is made of."""
        return "TRAINING"

    def parameters(self) -> Iterator[Any]:
        """The parameters."""
        return (value for _, value in self.named_parameters())

    def named_parameters(self) -> Iterator[tuple[str, Any]]:
        """The parameters with their paths."""
        return ((name, self._state_dict[name]) for name in self._graph_signature.parameters)

    def buffers(self) -> Iterator[Any]:
        """The buffers."""
        return (value for _, value in self.named_buffers())

    def named_buffers(self) -> Iterator[tuple[str, Any]]:
        """The buffers with their paths."""
        known = {**self._constants, **self._state_dict}
        return ((name, known[name]) for name in self._graph_signature.buffers)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        raise RuntimeError(
            "Unable to call ExportedProgram directly. You should use `exported_program.module()` instead."
        )

    def module(self, check_guards: bool = True) -> GraphModule:
        """The program as a module that is called as the one it was made of."""
        return unlifted(self, check_guards)

    def run_decompositions(
        self, decomp_table: Mapping[Any, Callable[..., Any]] | None = None, decompose_custom_triton_ops: bool = False
    ) -> ExportedProgram:
        """This program with the operators of the table taken apart by its functions."""
        table = default_decompositions() if decomp_table is None else decomp_table
        inner = [node.meta.get("val") for node in self.graph.nodes if node.op == "placeholder"]
        fakes = FakeTensorMode(allow_non_fake_inputs=True)
        given = tuple([fakes.from_tensor(each) if isinstance(each, Tensor) else each for each in inner])
        bounds = {name: (each.lower, each.upper) for name, each in self._range_constraints.items()}
        flat = recorded(self._graph_module, given, table, self._axes(), bounds, within=fakes)
        old = [node for node in self.graph.nodes if node.op == "placeholder"]
        new = [node for node in flat.graph.nodes if node.op == "placeholder"]
        for before, node in zip(old, new, strict=True):
            node.target = before.target
            node._rename(before.name)
        specs, constants = copy.deepcopy(self._graph_signature.input_specs), dict(self._constants)
        _lift_constants(flat, specs, constants)
        flat.recompile()
        results = tree_flatten(flat.graph.output_node().args[0])[0]
        outputs = [
            OutputSpec(spec.kind, TensorArgument(node.name) if isinstance(node, Node) else spec.arg, spec.target)
            for spec, node in zip(self._graph_signature.output_specs, results, strict=True)
        ]
        return ExportedProgram(
            flat, ExportGraphSignature(specs, outputs), self._state_dict, constants, self._calling,
            self._range_constraints, self._example_inputs,
        )  # fmt: skip

    def _axes(self) -> dict[str, list[Place]]:
        """The dimensions of the graph's inputs that may vary, by the names of their sizes."""
        kinds = [each.kind for each in self._graph_signature.input_specs]
        users = [number for number, kind in enumerate(kinds) if kind is InputKind.USER_INPUT]
        found: dict[str, list[Place]] = {}
        for number, check in zip(users, self._calling.checks, strict=True):
            if isinstance(check, InputCheck):
                for dim, size in enumerate(check.shape):
                    if isinstance(size, str):
                        meant = SizeOf.from_text(size)
                        found.setdefault(meant.name, []).append(Place(number, dim, *meant[1:]))
        return found

    def __str__(self) -> str:
        code = self._graph_module.print_readable(print_output=False).replace("\n", "\n    ")
        return (
            f"ExportedProgram:\n    {code}\nGraph signature: {self._graph_signature}\n"
            f"Range constraints: {self._range_constraints}\n"
        )

    def validate(self) -> None:
        """An error if the graph is not well formed."""
        self.graph.lint()


def _lift_constants(module: GraphModule, specs: list[InputSpec], constants: dict[str, Any]) -> None:
    """Make inputs of the tensors that a graph finds among the attributes of its module."""
    graph = module.graph
    inputs = [node for node in graph.nodes if node.op == "placeholder"]
    first = next((number for number, spec in enumerate(specs) if spec.kind is InputKind.USER_INPUT), len(specs))
    for node in [each for each in graph.nodes if each.op == "get_attr"]:
        name = f"lifted_tensor_{len(constants)}"
        place = inputs[first] if first < len(inputs) else next(iter(graph.nodes))
        with graph.inserting_before(place):
            made = graph.placeholder(f"c_{name}")
        made.meta = dict(node.meta)
        constants[name] = getattr(module, str(node.target))
        specs.insert(first, InputSpec(InputKind.CONSTANT_TENSOR, TensorArgument(made.name), name))
        inputs.insert(first, made)
        first += 1
        node.replace_all_uses_with(made)
        graph.erase_node(node)


def unlifted(program: ExportedProgram, check: bool) -> GraphModule:
    """A module in which weights and constants are attributes, and which takes and returns nests."""
    root, graph = Module(), Graph()
    values: dict[Node, Any] = {}
    known = {**program.constants, **program.state_dict}
    calling = program._calling
    specs = iter(program.graph_signature.input_specs)
    for node in program.graph.nodes:
        if node.op != "placeholder":
            continue
        spec: InputSpec = next(specs)
        if spec.kind is InputKind.USER_INPUT:
            values[node] = graph.placeholder(node.name)
            values[node].meta = dict(node.meta)
            continue
        assert spec.target is not None
        _assign_attr(known[spec.target], root, spec.target)
    specs = iter(program.graph_signature.input_specs)
    for node in program.graph.nodes:
        if node.op == "placeholder" and next(specs).kind is not InputKind.USER_INPUT:
            target = _target_of(program, node)
            values[node] = graph.get_attr(target)
    output = graph.graph_copy(program.graph, values)
    graph.output(output)
    for node in list(graph.nodes):
        if node.op == "get_attr" and not node.users:
            graph.erase_node(node)
    graph.set_codegen(_PyTreeCodeGen(_PyTreeInfo(list(calling.names), calling.in_spec, calling.out_spec)))
    module = GraphModule(root, graph)
    for name, value in known.items():  # those that the graph does not use belong to the module too
        if name not in dict(module.named_parameters()) and name not in dict(module.named_buffers()):
            _assign_attr(value, module, name)
    if check:
        module.register_forward_pre_hook(_Checks(calling, program.range_constraints), with_kwargs=True)
    return module


def _target_of(program: ExportedProgram, node: Node) -> str:
    found = next(each.target for each in program.graph_signature.input_specs if each.arg.name == node.name)
    assert found is not None
    return found


class _Checks:
    """Looks at the arguments of a call before the program runs."""

    def __init__(self, calling: Calling, ranges: dict[str, ValueRange]) -> None:
        self.calling, self.ranges = calling, ranges

    def __call__(self, module: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        names = self.calling.names
        given = dict(zip(names, args, strict=False)) | kwargs
        if len(args) > len(names) or set(given) != set(names):
            raise ValueError(f"the program takes {', '.join(names)}; it was given {', '.join(given)}")
        ordered = {name: given[name] for name in names}  # arguments by name come in any order
        count = _positional(self.calling)
        positional = tuple(list(ordered.values())[:count])
        leaves, structure = tree_flatten((positional, dict(list(ordered.items())[count:])))
        if structure != self.calling.in_spec:
            raise ValueError(
                f"Trying to flatten user inputs with exported input tree spec: \n{self.calling.in_spec}\nbut actually "
                f"got inputs with tree spec of: \n{structure}"
            )
        sizes: dict[str, tuple[int, str]] = {}
        for number, (leaf, check) in enumerate(zip(leaves, self.calling.checks, strict=True)):
            if isinstance(check, ConstantArgument):
                if leaf != check.value:
                    raise RuntimeError(f"Expected input {check.name} to be equal to {check.value}, but got {leaf}")
            elif check is not None:
                self._check(leaf, check, f"*args[{number}]", sizes)
        return tuple(ordered.values()), {}

    def _check(self, leaf: Any, check: InputCheck, where: str, sizes: dict[str, tuple[int, str]]) -> None:
        if not isinstance(leaf, Tensor) or leaf.ndim != len(check.shape):
            raise RuntimeError(f"Expected input at {where} to be a tensor of {len(check.shape)} dimensions")
        if leaf.dtype is not check.dtype:
            raise RuntimeError(f"Expected input at {where} to have dtype {check.dtype}, but got {leaf.dtype}")
        for dim, wanted in enumerate(check.shape):
            size, place = leaf.shape[dim], f"{where}.shape[{dim}]"
            if isinstance(wanted, int):
                if size != wanted:
                    raise RuntimeError(f"Expected input at {place} to be equal to {wanted}, but got {size}")
                continue
            meant = SizeOf.from_text(wanted)
            root = meant.root(size)
            if root is None:
                raise RuntimeError(f"Expected input at {place} to be of the form {wanted}, but got {size}")
            before, there = sizes.setdefault(meant.name, (root, place))
            if before != root:
                relation = f"{there} = {before}" if wanted == meant.name else f"{wanted} = {meant.of(before)}"
                raise RuntimeError(f"Expected input at {place} to be equal to {relation}, but got {size}")
            low, high = self.ranges[meant.name]
            if not low <= root <= high:
                bound = f">= {meant.of(low)}" if root < low else f"<= {meant.of(high)}"
                raise RuntimeError(f"Expected input at {place} to be {bound}, but got {size}")


def _positional(calling: Calling) -> int:
    return calling.in_spec.child(0).num_children
