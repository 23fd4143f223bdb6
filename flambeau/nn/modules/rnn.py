"""Recurrent networks and their cells."""

from __future__ import annotations

import math
import numbers
import warnings
from typing import Any, ClassVar, overload

from ..._core.tensor import Tensor
from ..._core.text.inherited_docs import documented_like
from ..._dispatch.arguments.autocast import is_any_autocast_enabled
from ..._dispatch.public.registry import function_named
from ..._ops.create.constants import empty, zeros
from .. import init
from ..parameter import Parameter
from ..utils.rnn import PackedSequence
from .module import Module

__all__ = ["GRU", "LSTM", "RNN", "GRUCell", "LSTMCell", "RNNBase", "RNNCell", "RNNCellBase"]

_GATES = {"LSTM": 4, "GRU": 3, "RNN_TANH": 1, "RNN_RELU": 1}
Shape = tuple[int, int, int]


class RNNBase(Module):
    """What `RNN`, `LSTM` and `GRU` share: the parameters of all layers and directions, initial states, packed input.

    The parameters of layer k are `weight_ih_lk`, `weight_hh_lk`, `bias_ih_lk`, `bias_hh_lk`, with projections
    `weight_hr_lk`; those of the direction from end to beginning have `_reverse` after that.

    Args:
        mode (str): "RNN_TANH", "RNN_RELU", "LSTM" or "GRU".
        input_size (int): how many features each step of the input has.
        hidden_size (int): how many features the state has.
        num_layers (int): how many layers there are. Default: `1`.
        bias (bool): whether there are biases. Default: `True`.
        batch_first (bool): whether the batch is the first dimension of sequences; otherwise it is the second. Default:
            `False`.
        dropout (float): the probability with which elements between layers become zero in training. Default: `0.0`.
        bidirectional (bool): whether a second network reads from the end to the beginning. Default: `False`.
        proj_size (int): the size to which an LSTM's states are projected; 0 leaves them as they are. Default: `0`.
        device (device, optional): where the parameters and buffers lie; None means the default device.
        dtype (dtype, optional): the dtype of the parameters and buffers; None means the default dtype.

    Raises:
        ValueError: `mode` is unknown, a size is not positive, or `dropout` is not from 0 to 1.

    Example:
        >>> isinstance(flambeau.nn.GRU(3, 4), flambeau.nn.RNNBase)
        True
        >>> [name for name, _ in flambeau.nn.GRU(3, 4).named_parameters()]
        ['weight_ih_l0', 'weight_hh_l0', 'bias_ih_l0', 'bias_hh_l0']
    """

    __constants__: ClassVar = [
        "mode",
        "input_size",
        "hidden_size",
        "num_layers",
        "bias",
        "batch_first",
        "dropout",
        "bidirectional",
        "proj_size",
    ]
    mode: str
    input_size: int
    hidden_size: int
    num_layers: int
    bias: bool
    batch_first: bool
    dropout: float
    bidirectional: bool
    proj_size: int
    _flat_weights_names: list[str]
    _all_weights: list[list[str]]

    def __init__(
        self,
        mode: str,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        proj_size: int = 0,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        _check_options(mode, input_size, hidden_size, num_layers, bias, batch_first, dropout, proj_size)
        self.mode = mode
        self.input_size = input_size
        self.hidden_size = hidden_size
        self.num_layers = num_layers
        self.bias = bias
        self.batch_first = batch_first
        self.dropout = float(dropout)
        self.bidirectional = bidirectional
        self.proj_size = proj_size
        self._name_weights()
        shapes = self._shapes()
        for name in self._flat_weights_names:
            kind, _, place = name.partition("_l")
            shape = shapes[kind]
            if kind == "weight_ih" and not (place == "0" or place == "0_reverse"):
                shape = (shape[0], (proj_size or hidden_size) * self._directions)
            setattr(self, name, Parameter(empty(shape, device=device, dtype=dtype)))
        self.reset_parameters()

    @property
    def _directions(self) -> int:
        return 2 if self.bidirectional else 1

    def _shapes(self) -> dict[str, tuple[int, ...]]:
        """The shapes of the first layer's parameters."""
        gates = _GATES[self.mode] * self.hidden_size
        return {
            "weight_ih": (gates, self.input_size),
            "weight_hh": (gates, self.proj_size or self.hidden_size),
            "bias_ih": (gates,),
            "bias_hh": (gates,),
            "weight_hr": (self.proj_size, self.hidden_size),
        }

    def _name_weights(self) -> None:
        kinds = ["weight_ih", "weight_hh"]
        kinds += ["bias_ih", "bias_hh"] if self.bias else []
        kinds += ["weight_hr"] if self.proj_size else []
        suffixes = ["", "_reverse"][: self._directions]
        self._all_weights = [
            [f"{kind}_l{layer}{suffix}" for kind in kinds] for layer in range(self.num_layers) for suffix in suffixes
        ]
        self._flat_weights_names = [name for names in self._all_weights for name in names]

    @property
    def _flat_weights(self) -> list[Any]:
        """All parameters in the order in which the networks take them; None for one that is not there."""
        own = self._parameters
        return [own[name] if name in own else getattr(self, name, None) for name in self._flat_weights_names]

    @_flat_weights.setter
    def _flat_weights(self, weights: list[Any]) -> None:
        for name, weight in zip(self._flat_weights_names, weights, strict=True):
            if getattr(self, name, None) is not weight:
                setattr(self, name, weight)

    @property
    def all_weights(self) -> list[list[Parameter]]:
        """The parameters, in a list for each layer and direction."""
        return [[getattr(self, name) for name in names] for names in self._all_weights]

    def flatten_parameters(self) -> None:
        """Nothing: where parameters have to lie in one piece of memory, they are copied there when they are used."""

    def reset_parameters(self) -> None:
        """Draw all parameters anew, uniformly within 1 / sqrt(hidden_size)."""
        bound = 1 / math.sqrt(self.hidden_size)
        for weight in self.parameters():
            init.uniform_(weight, -bound, bound)

    def __setstate__(self, state: dict[str, Any]) -> None:
        state = {name: value for name, value in state.items() if name not in ("_flat_weights", "_flat_weight_refs")}
        super().__setstate__(state)
        self.__dict__.setdefault("proj_size", 0)
        self._name_weights()  # older versions had the parameters themselves there

    def extra_repr(self) -> str:
        defaults = {"proj_size": 0, "num_layers": 1, "bias": True, "batch_first": False, "dropout": 0}
        options = {name: getattr(self, name) for name in (*defaults, "bidirectional")}
        shown = [f"{name}={value}" for name, value in options.items() if value != defaults.get(name, False)]
        return ", ".join([str(self.input_size), str(self.hidden_size), *shown])

    # ----- checks -----------------------------------------------------------------------------------------------

    def check_input(self, input: Tensor, batch_sizes: Tensor | None) -> None:
        """Refuse an input of the wrong dtype, rank or width."""
        weight = getattr(self, self._flat_weights_names[0])
        if input.dtype is not weight.dtype and not is_any_autocast_enabled():
            raise ValueError(
                f"RNN input dtype ({input.dtype}) does not match weight dtype ({weight.dtype}). Convert input: "
                f"input.to({weight.dtype}), or convert model: model.to({input.dtype})"
            )
        dims = 3 if batch_sizes is None else 2
        if input.dim() != dims:
            raise RuntimeError(f"input must have {dims} dimensions, got {input.dim()}")
        if input.shape[-1] != self.input_size:
            raise RuntimeError(
                f"input.size(-1) must be equal to input_size. Expected {self.input_size}, got {input.shape[-1]}"
            )

    def _batch(self, input: Tensor, batch_sizes: Tensor | None) -> int:
        return input.shape[0 if self.batch_first else 1] if batch_sizes is None else int(batch_sizes[0])

    def get_expected_hidden_size(self, input: Tensor, batch_sizes: Tensor | None) -> Shape:
        """The shape of the initial state for this input."""
        width = self.proj_size or self.hidden_size
        return (self.num_layers * self._directions, self._batch(input, batch_sizes), width)

    def check_hidden_size(
        self, hx: Tensor, expected_hidden_size: Shape, msg: str = "Expected hidden size {}, got {}"
    ) -> None:
        """Refuse a state of another shape; `msg` takes both."""
        if tuple(hx.shape) != expected_hidden_size:
            raise RuntimeError(msg.format(expected_hidden_size, list(hx.shape)))

    def check_forward_args(self, input: Tensor, hidden: Any, batch_sizes: Tensor | None) -> None:
        """Refuse input and initial state that do not fit the parameters."""
        self.check_input(input, batch_sizes)
        self.check_hidden_size(hidden, self.get_expected_hidden_size(input, batch_sizes))

    def permute_hidden(self, hx: Any, permutation: Tensor | None) -> Any:
        """The state of a batch in another order."""
        return hx if permutation is None else hx.index_select(1, permutation)

    # ----- the call ---------------------------------------------------------------------------------------------

    def _initial(self, input: Tensor, batch_sizes: Tensor | None) -> Any:
        shape = self.get_expected_hidden_size(input, batch_sizes)
        return zeros(shape, dtype=input.dtype, device=input.device)

    def _check_rank(self, hx: Any, dims: int) -> None:
        """Refuse an initial state that does not have `dims` dimensions, as the input has."""
        if hx.dim() != dims:
            raise RuntimeError(
                f"For {_batched(dims)} {dims}-D input, hx should also be {dims}-D but got {hx.dim()}-D tensor"
            )

    def _network(self, input: Tensor, hx: Any, batch_sizes: Tensor | None) -> tuple[Tensor, Any]:
        options = (self._flat_weights, self.bias, self.num_layers, self.dropout, self.training, self.bidirectional)
        network = function_named("", self.mode.lower())
        if batch_sizes is None:
            output, *last = network(input, hx, *options, self.batch_first)
        else:
            output, *last = network(input, batch_sizes, hx, *options)
        return output, tuple(last) if len(last) > 1 else last[0]

    def _forward(self, input: Any, hx: Any) -> Any:
        """`forward` of the subclasses."""
        if isinstance(input, PackedSequence):
            data, batch_sizes, order, back = input
            hx = self._initial(data, batch_sizes) if hx is None else self.permute_hidden(hx, order)
            self.check_forward_args(data, hx, batch_sizes)
            output, last = self._network(data, hx, batch_sizes)
            return PackedSequence(output, batch_sizes, order, back), self.permute_hidden(last, back)
        dims = input.dim()
        if dims not in (2, 3):
            unit = "D tensor" if self.mode.startswith("RNN") else "D"
            name = self.mode.partition("_")[0]
            raise ValueError(f"{name}: Expected input to be 2D or 3D, got {dims}{unit} instead")
        if hx is not None:
            self._check_rank(hx, dims)
        place = 0 if self.batch_first else 1
        if dims == 2:
            input = input.unsqueeze(place)
            hx = _each(hx, lambda state: state.unsqueeze(1))
        if hx is None:
            self.check_input(input, None)
            hx = self._initial(input, None)
        else:
            self.check_forward_args(input, hx, None)
        output, last = self._network(input, hx, None)
        if dims == 2:
            return output.squeeze(place), _each(last, lambda state: state.squeeze(1))
        return output, last


def _each(states: Any, change: Any) -> Any:
    """`change` of a state, or of each of a pair of them."""
    if states is None:
        return None
    return tuple(change(each) for each in states) if isinstance(states, (tuple, list)) else change(states)


def _batched(dims: int) -> str:
    return "batched" if dims == 3 else "unbatched"


def check_dropout(dropout: Any) -> float:
    """A probability of dropout, if it is one."""
    if isinstance(dropout, bool) or not isinstance(dropout, numbers.Real) or not 0 <= float(dropout) <= 1:
        raise ValueError(
            "dropout should be a number in range [0, 1] representing the probability of an element being zeroed, but "
            f"got {dropout!r}"
        )
    return float(dropout)


def _check_options(
    mode: Any,
    input_size: Any,
    hidden_size: Any,
    num_layers: Any,
    bias: Any,
    batch_first: Any,
    dropout: Any,
    proj_size: Any,
) -> None:
    if check_dropout(dropout) > 0 and num_layers == 1:
        warnings.warn(
            "dropout option adds dropout after all but last recurrent layer, so non-zero dropout expects num_layers "
            f"greater than 1, but got dropout={dropout} and num_layers={num_layers}",
            UserWarning,
            stacklevel=4,
        )
    expected = (("bias", bias, bool), ("batch_first", batch_first, bool))
    for name, value, kind in (*expected, ("input_size", input_size, int), ("hidden_size", hidden_size, int)):
        if not isinstance(value, kind):
            raise TypeError(f"{name} should be of type {kind.__name__}, got: {type(value).__name__}")
    for name, value in (("input_size", input_size), ("hidden_size", hidden_size), ("num_layers", num_layers)):
        if value <= 0:
            raise ValueError(f"{name} must be greater than zero")
    if proj_size < 0:
        raise ValueError("proj_size should be a positive integer or zero to disable projections")
    if proj_size >= hidden_size:
        raise ValueError("proj_size has to be smaller than hidden_size")
    if mode not in _GATES:
        raise ValueError(f"Unrecognized RNN mode: {mode}")


def _refuse_projection(options: dict[str, Any]) -> None:
    if "proj_size" in options:
        raise ValueError("proj_size argument is only supported for LSTM, not RNN or GRU")


# ----- networks ----------------------------------------------------------------------------------------------------


class RNN(RNNBase):
    """A recurrent network with one nonlinearity a step, in one or more layers.

    `h_t = tanh(x_t @ weight_ih.T + bias_ih + h_{t-1} @ weight_hh.T + bias_hh)`; each further layer reads the states of
    the one before. Calls take `(input, h_0)`; without `h_0` the first state is zero. The input may be a
    `PackedSequence`; then the output is one, too.

    Args:
        *args: the arguments below, by position.
        **kwargs: the arguments below, by name.
        input_size (int): how many features each step of the input has.
        hidden_size (int): how many features the state has.
        num_layers (int): how many layers there are. Default: `1`.
        nonlinearity (str): "tanh" or "relu". Default: `"tanh"`.
        bias (bool): whether there are the biases `bias_ih` and `bias_hh`. Default: `True`.
        batch_first (bool): whether the batch is the first dimension of sequences. Default: `False`.
        dropout (float): the probability with which elements between layers become zero in training. Default: `0.0`.
        bidirectional (bool): whether a second network reads from the end to the beginning. Default: `False`.
        device (device, optional): where the parameters lie; None means the default device.
        dtype (dtype, optional): the dtype of the parameters; None means the default dtype.

    Shape:
        input: (L, N, input_size), or (N, L, input_size) with `batch_first`, or (L, input_size)
        h_0: (layers, N, hidden_size), with layers = num_layers, doubled if `bidirectional`
        output: a pair: the states of the last layer at each step, (L, N, hidden_size), and h_n, the last states of all
            layers

    Raises:
        ValueError: `nonlinearity` is unknown, a size is not positive, or `dropout` is not from 0 to 1.

    Attributes:
        weight_ih_lk, weight_hh_lk, bias_ih_lk, bias_hh_lk (Parameter): of layer k; with `_reverse` of the way back

    Example:
        >>> output, last = flambeau.nn.RNN(10, 20, 2)(flambeau.ones(5, 3, 10))
        >>> output.shape, last.shape
        (torch.Size([5, 3, 20]), torch.Size([2, 3, 20]))
    """

    nonlinearity: str

    @overload
    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        nonlinearity: str = "tanh",
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        device: Any = None,
        dtype: Any = None,
    ) -> None: ...

    @overload
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        _refuse_projection(kwargs)
        if len(args) > 3:
            chosen, args = args[3], (*args[:3], *args[4:])
        else:
            chosen = kwargs.pop("nonlinearity", "tanh")
        if chosen not in ("tanh", "relu"):
            raise ValueError(f"Unknown nonlinearity '{chosen}'. Select from 'tanh' or 'relu'.")
        self.nonlinearity = chosen
        super().__init__(f"RNN_{chosen.upper()}", *args, **kwargs)

    @overload
    def forward(self, input: Tensor, hx: Tensor | None = None) -> tuple[Tensor, Tensor]: ...

    @overload
    def forward(self, input: PackedSequence, hx: Tensor | None = None) -> tuple[PackedSequence, Tensor]: ...

    def forward(self, input: Any, hx: Any = None) -> Any:
        return self._forward(input, hx)


class LSTM(RNNBase):
    """Long short-term memory: a recurrent network whose cells are written, forgotten and shown by gates.

    `i, f, o = sigmoid(...)` and `g = tanh(...)` are four linear functions of the input and the state; then
    `c = f * c + i * g` and `h = o * tanh(c)`. Each further layer reads the states of the one before. Calls take
    `(input, (h_0, c_0))`; without them both are zero. The input may be a `PackedSequence`; then the output is one, too.

    Args:
        *args: the arguments below, by position.
        **kwargs: the arguments below, by name.
        input_size (int): how many features each step of the input has.
        hidden_size (int): how many features the state has.
        num_layers (int): how many layers there are. Default: `1`.
        bias (bool): whether there are the biases `bias_ih` and `bias_hh`. Default: `True`.
        batch_first (bool): whether the batch is the first dimension of sequences. Default: `False`.
        dropout (float): the probability with which elements between layers become zero in training. Default: `0.0`.
        bidirectional (bool): whether a second network reads from the end to the beginning. Default: `False`.
        proj_size (int): the states are projected to this size; 0 leaves them as they are. Default: `0`.
        device (device, optional): where the parameters lie; None means the default device.
        dtype (dtype, optional): the dtype of the parameters; None means the default dtype.

    Shape:
        input: (L, N, input_size), or (N, L, input_size) with `batch_first`, or (L, input_size)
        h_0: (layers, N, hidden_size), or of size `proj_size`, with layers = num_layers, doubled if `bidirectional`
        c_0: (layers, N, hidden_size)
        output: a pair: the states of the last layer at each step, (L, N, hidden_size), and the pair (h_n, c_n)

    Raises:
        ValueError: a size is not positive, `dropout` is not from 0 to 1, or `proj_size` is not below `hidden_size`.

    Example:
        >>> output, (last, cell) = flambeau.nn.LSTM(10, 20, 2)(flambeau.ones(5, 3, 10))
        >>> output.shape, last.shape, cell.shape
        (torch.Size([5, 3, 20]), torch.Size([2, 3, 20]), torch.Size([2, 3, 20]))
    """

    @overload
    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        proj_size: int = 0,
        device: Any = None,
        dtype: Any = None,
    ) -> None: ...

    @overload
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__("LSTM", *args, **kwargs)

    def get_expected_cell_size(self, input: Tensor, batch_sizes: Tensor | None) -> Shape:
        """The shape of the initial cells for this input."""
        return (self.num_layers * self._directions, self._batch(input, batch_sizes), self.hidden_size)

    def check_forward_args(self, input: Tensor, hidden: Any, batch_sizes: Tensor | None) -> None:
        self.check_input(input, batch_sizes)
        shapes = self.get_expected_hidden_size(input, batch_sizes), self.get_expected_cell_size(input, batch_sizes)
        for number, shape in enumerate(shapes):
            self.check_hidden_size(hidden[number], shape, f"Expected hidden[{number}] size {{}}, got {{}}")

    def permute_hidden(self, hx: Any, permutation: Tensor | None) -> Any:
        return hx if permutation is None else tuple(each.index_select(1, permutation) for each in hx)

    def _initial(self, input: Tensor, batch_sizes: Tensor | None) -> Any:
        states = super()._initial(input, batch_sizes)
        return states, zeros(self.get_expected_cell_size(input, batch_sizes), dtype=input.dtype, device=input.device)

    def _check_rank(self, hx: Any, dims: int) -> None:
        if hx[0].dim() != dims or hx[1].dim() != dims:
            raise RuntimeError(
                f"For {_batched(dims)} {dims}-D input, hx and cx should also be {dims}-D but got "
                f"({hx[0].dim()}-D, {hx[1].dim()}-D) tensors"
            )

    @overload
    def forward(
        self, input: Tensor, hx: tuple[Tensor, Tensor] | None = None
    ) -> tuple[Tensor, tuple[Tensor, Tensor]]: ...

    @overload
    def forward(
        self, input: PackedSequence, hx: tuple[Tensor, Tensor] | None = None
    ) -> tuple[PackedSequence, tuple[Tensor, Tensor]]: ...

    def forward(self, input: Any, hx: Any = None) -> Any:
        return self._forward(input, hx)


class GRU(RNNBase):
    """Gated recurrent units: a recurrent network whose gates keep a part of the state, in one or more layers.

    `r, z = sigmoid(...)` are linear functions of the input and the state; with
    `n = tanh(W_in @ x + b_in + r * (W_hn @ h + b_hn))` the next state is `(1 - z) * n + z * h`. Each further layer
    reads the states of the one before. Calls take `(input, h_0)`; without `h_0` the first state is zero. The input may
    be a `PackedSequence`; then the output is one, too.

    Args:
        *args: the arguments below, by position.
        **kwargs: the arguments below, by name.
        input_size (int): how many features each step of the input has.
        hidden_size (int): how many features the state has.
        num_layers (int): how many layers there are. Default: `1`.
        bias (bool): whether there are the biases `bias_ih` and `bias_hh`. Default: `True`.
        batch_first (bool): whether the batch is the first dimension of sequences. Default: `False`.
        dropout (float): the probability with which elements between layers become zero in training. Default: `0.0`.
        bidirectional (bool): whether a second network reads from the end to the beginning. Default: `False`.
        device (device, optional): where the parameters lie; None means the default device.
        dtype (dtype, optional): the dtype of the parameters; None means the default dtype.

    Shape:
        input: (L, N, input_size), or (N, L, input_size) with `batch_first`, or (L, input_size)
        h_0: (layers, N, hidden_size), with layers = num_layers, doubled if `bidirectional`
        output: a pair: the states of the last layer at each step, (L, N, hidden_size), and h_n, the last states of all
            layers

    Raises:
        ValueError: a size is not positive, or `dropout` is not from 0 to 1.

    Example:
        >>> output, last = flambeau.nn.GRU(10, 20, 2)(flambeau.ones(5, 3, 10))
        >>> output.shape, last.shape
        (torch.Size([5, 3, 20]), torch.Size([2, 3, 20]))
    """

    @overload
    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        device: Any = None,
        dtype: Any = None,
    ) -> None: ...

    @overload
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        _refuse_projection(kwargs)
        super().__init__("GRU", *args, **kwargs)

    @overload
    def forward(self, input: Tensor, hx: Tensor | None = None) -> tuple[Tensor, Tensor]: ...

    @overload
    def forward(self, input: PackedSequence, hx: Tensor | None = None) -> tuple[PackedSequence, Tensor]: ...

    def forward(self, input: Any, hx: Any = None) -> Any:
        return self._forward(input, hx)


# ----- cells -------------------------------------------------------------------------------------------------------


class RNNCellBase(Module):
    """What `RNNCell`, `LSTMCell` and `GRUCell` share: the parameters of one step.

    Args:
        input_size (int): how many features each step of the input has.
        hidden_size (int): how many features the state has.
        bias (bool): whether there are the biases `bias_ih` and `bias_hh`.
        num_chunks (int): how many linear functions the step needs: 1, 4 or 3.
        device (device, optional): where the parameters and buffers lie; None means the default device.
        dtype (dtype, optional): the dtype of the parameters and buffers; None means the default dtype.

    Attributes:
        weight_ih (Parameter): (num_chunks * hidden_size, input_size)
        weight_hh (Parameter): (num_chunks * hidden_size, hidden_size)
        bias_ih, bias_hh (Parameter or None): (num_chunks * hidden_size,)

    Example:
        >>> flambeau.nn.RNNCellBase(3, 4, bias=True, num_chunks=4).weight_ih.shape
        torch.Size([16, 3])
    """

    __constants__: ClassVar = ["input_size", "hidden_size", "bias"]
    input_size: int
    hidden_size: int
    bias: bool
    weight_ih: Tensor
    weight_hh: Tensor
    bias_ih: Tensor | None
    bias_hh: Tensor | None

    def __init__(
        self, input_size: int, hidden_size: int, bias: bool, num_chunks: int, device: Any = None, dtype: Any = None
    ) -> None:
        super().__init__()
        self.input_size = input_size
        self.hidden_size = hidden_size
        self.bias = bias
        gates = num_chunks * hidden_size
        self.weight_ih = Parameter(empty((gates, input_size), device=device, dtype=dtype))
        self.weight_hh = Parameter(empty((gates, hidden_size), device=device, dtype=dtype))
        for name in ("bias_ih", "bias_hh"):
            self.register_parameter(name, Parameter(empty(gates, device=device, dtype=dtype)) if bias else None)
        self.reset_parameters()

    def extra_repr(self) -> str:
        parts = [str(self.input_size), str(self.hidden_size)]
        if not self.bias:
            parts.append(f"bias={self.bias}")
        if getattr(self, "nonlinearity", "tanh") != "tanh":
            parts.append(f"nonlinearity={self.nonlinearity}")
        return ", ".join(parts)

    def reset_parameters(self) -> None:
        """Draw all parameters anew, uniformly within 1 / sqrt(hidden_size)."""
        bound = 1 / math.sqrt(self.hidden_size) if self.hidden_size > 0 else 0
        for weight in self.parameters():
            init.uniform_(weight, -bound, bound)

    def _step(self, cell: Any, input: Tensor, hx: Any) -> Any:
        """One step of `cell`, for a batch or, without its dimension, for one sample."""
        name = type(self).__name__
        dims = input._array.ndim
        if dims not in (1, 2):
            raise ValueError(f"{name}: Expected input to be 1D or 2D, got {dims}D instead")
        paired = isinstance(hx, (tuple, list))
        for number, each in enumerate(hx if paired else [] if hx is None else [hx]):
            what = f"hx[{number}]" if paired else "hidden"
            if not isinstance(each, Tensor):
                raise TypeError(f"{name}: Expected {what} to be Tensor, not {type(each).__name__}")
            if each.dim() not in (1, 2):
                raise ValueError(f"{name}: Expected {what} to be 1D or 2D, got {each.dim()}D instead")
        if batched := dims == 2:
            batch: Any = input
        else:
            batch, hx = input.unsqueeze(0), _each(hx, lambda state: state.unsqueeze(0))
        if hx is None:
            hx = zeros(batch._array.shape[0], self.hidden_size, dtype=input.dtype, device=input.device)
            hx = (hx, hx) if cell == "lstm_cell" else hx
        result = function_named("", cell)(batch, hx, self.weight_ih, self.weight_hh, self.bias_ih, self.bias_hh)
        return result if batched else _each(result, lambda state: state.squeeze(0))


class RNNCell(RNNCellBase):
    """One step of `RNN`.

    `h' = tanh(input @ weight_ih.T + bias_ih + h @ weight_hh.T + bias_hh)`. Calls take `(input, h)`; without `h` the
    state is zero.

    Args:
        input_size (int): how many features each step of the input has.
        hidden_size (int): how many features the state has.
        bias (bool): whether there are the biases `bias_ih` and `bias_hh`. Default: `True`.
        nonlinearity (str): "tanh" or "relu". Default: `"tanh"`.
        device (device, optional): where the parameters and buffers lie; None means the default device.
        dtype (dtype, optional): the dtype of the parameters and buffers; None means the default dtype.

    Shape:
        input: (N, input_size) or (input_size,)
        output: the next state, (N, hidden_size) or (hidden_size,)

    Raises:
        RuntimeError: the last dimension of the input is not `input_size`, or that of the state not `hidden_size`.

    Example:
        >>> cell = flambeau.nn.RNNCell(10, 20)
        >>> state = cell(flambeau.ones(3, 10))
        >>> cell(flambeau.ones(3, 10), state).shape
        torch.Size([3, 20])
    """

    __constants__: ClassVar = ["input_size", "hidden_size", "bias", "nonlinearity"]
    nonlinearity: str

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool = True,
        nonlinearity: str = "tanh",
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__(input_size, hidden_size, bias, 1, device, dtype)
        self.nonlinearity = nonlinearity

    def forward(self, input: Tensor, hx: Tensor | None = None) -> Tensor:
        cells = {"tanh": "rnn_tanh_cell", "relu": "rnn_relu_cell"}
        if self.nonlinearity not in cells:
            raise RuntimeError(f"Unknown nonlinearity: {self.nonlinearity}")
        state: Tensor = self._step(cells[self.nonlinearity], input, hx)
        return state


@documented_like(RNNCell)
class LSTMCell(RNNCellBase):
    """One step of `LSTM`.

    Calls take `(input, (h, c))`; without the pair both are zero.

    Shape:
        input: (N, input_size) or (input_size,)
        output: the pair of the next state and cell, each (N, hidden_size) or (hidden_size,)

    Raises:
        RuntimeError: the last dimension of the input is not `input_size`, or that of the state not `hidden_size`.

    Example:
        >>> cell = flambeau.nn.LSTMCell(10, 20)
        >>> state, memory = cell(flambeau.ones(3, 10))
        >>> state.shape, memory.shape
        (torch.Size([3, 20]), torch.Size([3, 20]))
    """

    def __init__(
        self, input_size: int, hidden_size: int, bias: bool = True, device: Any = None, dtype: Any = None
    ) -> None:
        super().__init__(input_size, hidden_size, bias, 4, device, dtype)

    def forward(self, input: Tensor, hx: tuple[Tensor, Tensor] | None = None) -> tuple[Tensor, Tensor]:
        if hx is not None:
            for number in (0, 1):
                if not isinstance(hx[number], Tensor):
                    raise TypeError(f"LSTMCell: Expected hx[{number}] to be Tensor, not {type(hx[number]).__name__}")
            hx = hx[0], hx[1]
        state: tuple[Tensor, Tensor] = self._step("lstm_cell", input, hx)
        return state


@documented_like(RNNCell)
class GRUCell(RNNCellBase):
    """One step of `GRU`.

    Calls take `(input, h)`; without `h` the state is zero.

    Raises:
        RuntimeError: the last dimension of the input is not `input_size`, or that of the state not `hidden_size`.

    Example:
        >>> cell = flambeau.nn.GRUCell(10, 20)
        >>> state = cell(flambeau.ones(3, 10))
        >>> cell(flambeau.ones(3, 10), state).shape
        torch.Size([3, 20])
    """

    def __init__(
        self, input_size: int, hidden_size: int, bias: bool = True, device: Any = None, dtype: Any = None
    ) -> None:
        super().__init__(input_size, hidden_size, bias, 3, device, dtype)

    def forward(self, input: Tensor, hx: Tensor | None = None) -> Tensor:
        state: Tensor = self._step("gru_cell", input, hx)
        return state
