"""What the inputs and outputs of an exported graph are, under the names of `torch.export.graph_signature`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import Enum, auto
from types import MappingProxyType
from typing import Any

__all__ = [
    "ArgumentSpec", "ConstantArgument", "CustomObjArgument", "ExportBackwardSignature", "ExportGraphSignature",
    "InputKind", "InputSpec", "OutputKind", "OutputSpec", "SymBoolArgument", "SymFloatArgument", "SymIntArgument",
    "TensorArgument", "TokenArgument",
]  # fmt: skip


@dataclass
class TensorArgument:
    """A tensor, by the name of its node."""

    name: str


@dataclass
class TokenArgument:
    """What orders calls with effects."""

    name: str


@dataclass
class SymIntArgument:
    """An integer that is computed."""

    name: str


@dataclass
class SymFloatArgument:
    """A number that is computed."""

    name: str


@dataclass
class SymBoolArgument:
    """A condition that is computed."""

    name: str


@dataclass
class CustomObjArgument:
    """An object of a class of one's own."""

    name: str
    class_fqn: str
    fake_val: Any = None


@dataclass
class ConstantArgument:
    """A plain value, which the program was exported with."""

    name: str
    value: int | float | bool | str | None


ArgumentSpec = (
    TensorArgument
    | SymIntArgument
    | SymFloatArgument
    | SymBoolArgument
    | ConstantArgument
    | CustomObjArgument
    | TokenArgument
)


class InputKind(Enum):
    """Where an input comes from."""

    USER_INPUT = auto()
    PARAMETER = auto()
    BUFFER = auto()
    CONSTANT_TENSOR = auto()
    CUSTOM_OBJ = auto()
    TOKEN = auto()


@dataclass
class InputSpec:
    """One input: what it is, and for members of the module their path."""

    kind: InputKind
    arg: ArgumentSpec
    target: str | None
    persistent: bool | None = None

    def __post_init__(self) -> None:
        assert self.kind is not InputKind.BUFFER or self.persistent is not None, (
            "Failed to specify persistent flag on BUFFER."
        )

    def __str__(self) -> str:
        target = "" if self.target is None else f" target='{self.target}'"
        persistent = "" if self.persistent is None else f" persistent={self.persistent}"
        return f"{self.arg.name}: {self.kind.name}{target}{persistent}"


class OutputKind(Enum):
    """What an output is for."""

    USER_OUTPUT = auto()
    LOSS_OUTPUT = auto()
    BUFFER_MUTATION = auto()
    PARAMETER_MUTATION = auto()
    GRADIENT_TO_PARAMETER = auto()
    GRADIENT_TO_USER_INPUT = auto()
    USER_INPUT_MUTATION = auto()
    TOKEN = auto()


@dataclass
class OutputSpec:
    """One output: what it is, and for what is written back its path."""

    kind: OutputKind
    arg: ArgumentSpec
    target: str | None

    def __str__(self) -> str:
        target = "" if self.target is None else f" target='{self.target}'"
        return f"{self.arg.name}: {self.kind.name}{target}"


@dataclass
class ExportBackwardSignature:
    """Which outputs are gradients, and which is the loss.

    Args:
        gradients_to_parameters (dict[str, str]): parameters by the outputs that are their gradients.
        gradients_to_user_inputs (dict[str, str]): inputs by the outputs that are their gradients.
        loss_output (str): the output that is the loss.

    Example:
        >>> torch.export.ExportBackwardSignature({}, {}, "loss").loss_output
        'loss'
    """

    gradients_to_parameters: dict[str, str]
    gradients_to_user_inputs: dict[str, str]
    loss_output: str


def _value(arg: ArgumentSpec) -> Any:
    return arg.value if isinstance(arg, ConstantArgument) else arg.name


@dataclass
class ExportGraphSignature:
    """The inputs and outputs of an exported graph, in their order.

    Args:
        input_specs (list of InputSpecs): what each input is: an argument, a parameter, a buffer or a constant.
        output_specs (list of OutputSpecs): what each output is: a result, or the new value of a buffer or an argument.

    Example:
        >>> program = torch.export.export(torch.nn.Linear(2, 3), (torch.ones(1, 2),))
        >>> program.graph_signature.parameters
        ('weight', 'bias')
    """

    input_specs: list[InputSpec]
    output_specs: list[OutputSpec]

    def _targets(self, kind: InputKind) -> tuple[str, ...]:
        return tuple([each.target for each in self.input_specs if each.kind is kind and each.target is not None])

    def _by_name(self, kind: InputKind) -> Mapping[str, str]:
        found = {each.arg.name: each.target for each in self.input_specs if each.kind is kind and each.target}
        return MappingProxyType(found)

    def _written(self, kind: OutputKind) -> Mapping[str, str]:
        found = {each.arg.name: each.target for each in self.output_specs if each.kind is kind and each.target}
        return MappingProxyType(found)

    @property
    def parameters(self) -> Iterable[str]:
        """The paths of the parameters."""
        return self._targets(InputKind.PARAMETER)

    @property
    def buffers(self) -> Iterable[str]:
        """The paths of the buffers."""
        return self._targets(InputKind.BUFFER)

    @property
    def non_persistent_buffers(self) -> Iterable[str]:
        """The paths of the buffers that the state dict leaves out."""
        specs = [each for each in self.input_specs if each.kind is InputKind.BUFFER and each.persistent is False]
        return tuple([each.target for each in specs if each.target is not None])

    @property
    def lifted_tensor_constants(self) -> Iterable[str]:
        """The names of the tensors that the program made for itself."""
        return self._targets(InputKind.CONSTANT_TENSOR)

    @property
    def lifted_custom_objs(self) -> Iterable[str]:
        """The names of objects of classes of one's own: there are none."""
        return self._targets(InputKind.CUSTOM_OBJ)

    @property
    def user_inputs(self) -> Iterable[Any]:
        """What the caller gives: names of nodes, or the values of constants."""
        return tuple([_value(each.arg) for each in self.input_specs if each.kind is InputKind.USER_INPUT])

    @property
    def user_outputs(self) -> Iterable[Any]:
        """What the caller gets: names of nodes, or the values of constants."""
        wanted = (OutputKind.USER_OUTPUT, OutputKind.LOSS_OUTPUT)
        return tuple([_value(each.arg) for each in self.output_specs if each.kind in wanted])

    @property
    def inputs_to_parameters(self) -> Mapping[str, str]:
        """The paths of parameters by the names of their nodes."""
        return self._by_name(InputKind.PARAMETER)

    @property
    def inputs_to_buffers(self) -> Mapping[str, str]:
        """The paths of buffers by the names of their nodes."""
        return self._by_name(InputKind.BUFFER)

    @property
    def inputs_to_lifted_tensor_constants(self) -> Mapping[str, str]:
        """The names of constants by those of their nodes."""
        return self._by_name(InputKind.CONSTANT_TENSOR)

    @property
    def buffers_to_mutate(self) -> Mapping[str, str]:
        """The paths of buffers by the names of the outputs that are written back into them."""
        return self._written(OutputKind.BUFFER_MUTATION)

    @property
    def parameters_to_mutate(self) -> Mapping[str, str]:
        """The paths of parameters by the names of the outputs that are written back into them."""
        return self._written(OutputKind.PARAMETER_MUTATION)

    @property
    def user_inputs_to_mutate(self) -> Mapping[str, str]:
        """The names of inputs by those of the outputs that are written back into them."""
        return self._written(OutputKind.USER_INPUT_MUTATION)

    @property
    def backward_signature(self) -> ExportBackwardSignature | None:
        """Which outputs are gradients: none."""
        return None

    @property
    def assertion_dep_token(self) -> Mapping[int, str] | None:
        """What orders assertions: nothing."""
        return None

    def replace_all_uses(self, old: str, new: str) -> None:
        """Follow the renaming of a node."""
        for arg in [*(each.arg for each in self.input_specs), *(each.arg for each in self.output_specs)]:
            if arg.name == old:
                arg.name = new

    def __str__(self) -> str:
        inputs = "\n".join(str(each) for each in self.input_specs)
        outputs = "\n".join(str(each) for each in self.output_specs)
        return f"\n# inputs\n{inputs}\n\n# outputs\n{outputs}\n"
