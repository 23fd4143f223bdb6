"""`torch._functorch.aot_autograd`: forward and backward as two graphs of operators, each given to a compiler."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from flambeau._core.slots import SLOTS
from flambeau._core.tensor import Tensor
from flambeau.autograd import grad
from flambeau.autograd.function import Function
from flambeau.autograd.grad_mode import is_grad_enabled
from flambeau.func import functional_call
from flambeau.nn import Module
from flambeau.utils._pytree import tree_flatten, tree_unflatten

from .compilers import make_boxed_compiler, make_boxed_func
from .partitioners import default_partition

__all__ = [
    "aot_function", "aot_module", "aot_module_simplified", "make_boxed_compiler", "make_boxed_func",
]  # fmt: skip

Compiler = Callable[[Any, Any], Callable[..., Any]]


class _Ways(NamedTuple):
    """How graphs are made and compiled."""

    forward: Compiler
    backward: Compiler
    inference: Compiler
    partition: Callable[..., tuple[Any, Any]]
    decompositions: Mapping[Any, Callable[..., Any]] | None


def aot_function(
    fn: Callable[..., Any], fw_compiler: Compiler, bw_compiler: Compiler | None = None,
    partition_fn: Callable[..., Any] = default_partition,
    decompositions: Mapping[Any, Callable[..., Any]] | None = None, num_params_buffers: int = 0,
    keep_inference_input_mutations: bool = False, inference_compiler: Compiler | None = None, *, dynamic: bool = False,
    enable_log: bool = True, disable_functionalization: bool = False, _disable_torch_fn_metadata_mode: bool = False,
) -> Callable[..., Any]:  # fmt: skip
    """A function that computes by what compilers make of its graphs.

    It is traced once for each combination of shapes, dtypes and gradients of its arguments. Numbers among these are
    constants of the graphs.

    Args:
        fn (Callable): a function of tensors, of numbers and of containers of these.
        fw_compiler (Callable): `(graph, inputs)`: what runs in place of the forward graph.
        bw_compiler (Callable, optional): the same for the backward graph; None takes `fw_compiler`.
        partition_fn (Callable): cuts the joint graph. Default: `default_partition`.
        decompositions (dict, optional): functions by the operators that they take apart.
        num_params_buffers (int): not used.
        keep_inference_input_mutations (bool): not used: changes of inputs are operators of the graph.
        inference_compiler (Callable, optional): the same where no gradient is asked for; None takes `fw_compiler`.
        dynamic (bool): not used: sizes are numbers of the graph.
        enable_log (bool): not used.
        disable_functionalization (bool): not used.

    Returns:
        Callable: the function, with gradients.
    """
    ways = _Ways(
        fw_compiler, bw_compiler or fw_compiler, inference_compiler or fw_compiler, partition_fn, decompositions
    )
    programs: dict[Any, _Program] = {}

    @functools.wraps(fn)
    def call(*args: Any, **kwargs: Any) -> Any:
        leaves, structure = tree_flatten((args, kwargs))
        key = structure, is_grad_enabled(), tuple([_traits(each) for each in leaves])
        program = programs.get(key)
        if program is None:
            program = programs[key] = _Program(fn, ways, leaves, structure)
        return program([each for each in leaves if isinstance(each, Tensor)])

    return call


def aot_module(mod: Module, *args: Any, **kwargs: Any) -> Module:
    """A module that computes by what compilers make of its graphs; parameters and buffers are inputs of these.

    Args:
        mod (Module): a module.
        *args, **kwargs: what `aot_function` takes behind its function.

    Returns:
        Module: a module with the same parameters and buffers.
    """

    def with_state(state: dict[str, Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        return functional_call(mod, state, args, kwargs)

    compiled = aot_function(with_state, *args, **kwargs)

    class AOTModule(Module):
        def __init__(self) -> None:
            super().__init__()
            self.orig_module = mod

        def forward(self, *args: Any, **kwargs: Any) -> Any:
            return compiled({**dict(mod.named_parameters()), **dict(mod.named_buffers())}, args, kwargs)

    return AOTModule()


def aot_module_simplified(
    mod: Any, args: Sequence[Any], fw_compiler: Compiler, bw_compiler: Compiler | None = None,
    partition_fn: Callable[..., Any] = default_partition,
    decompositions: Mapping[Any, Callable[..., Any]] | None = None, keep_inference_input_mutations: bool = False,
    inference_compiler: Compiler | None = None, **kwargs: Any,
) -> Callable[..., Any]:  # fmt: skip
    """What compilers make of a graph that `torch.compile` has given to a backend: a function of the graph's inputs.

    Args:
        mod (Module): the graph.
        args (Sequence[Tensor]): examples of its inputs; the graphs are made in the first call.
        fw_compiler, bw_compiler, partition_fn, decompositions, inference_compiler: as for `aot_function`.
        keep_inference_input_mutations (bool): not used.

    Returns:
        Callable: a function of the graph's inputs.
    """
    ways = (fw_compiler, bw_compiler, partition_fn, decompositions)
    compiled = aot_module(mod, *ways, inference_compiler=inference_compiler)
    return lambda *inputs: compiled(*inputs)


def _traits(leaf: Any) -> Any:
    if isinstance(leaf, Tensor):
        return tuple(leaf.shape), leaf.stride(), leaf.dtype, leaf.device, leaf.requires_grad
    return type(leaf), leaf


class _Program:
    """The graphs of a function for arguments of one kind."""

    _found: tuple[Tensor, ...]

    def __init__(self, function: Callable[..., Any], ways: _Ways, leaves: list[Any], structure: Any) -> None:
        self._function, self._ways, self._structure = function, ways, structure
        tensors = [each for each in leaves if isinstance(each, Tensor)]
        self._leaves = [None if isinstance(each, Tensor) else each for each in leaves]
        self._is_tensor = [isinstance(each, Tensor) for each in leaves]
        example = SLOTS.graph_of(self._flat, tensors, ways.decompositions)
        self.differentiates = is_grad_enabled() and any(self._recorded)
        if not self.differentiates:
            _name_inputs(example, len(tensors))
            self._found = ()
            self._run = _called_with_list(ways.inference(example, tensors))
            return
        tangents = [each.detach() for each in self._found if each.requires_grad]
        joint = SLOTS.graph_of(self._joint, [*tensors, *tangents], ways.decompositions)
        self._found = ()
        _name_inputs(joint, len(tensors))
        forward, backward = ways.partition(joint, (tensors, tangents), num_fwd_outputs=len(self._recorded))
        self._run = _called_with_list(ways.forward(forward, tensors))
        self._backward_graph = backward
        self._run_back: Callable[[list[Any]], Any] | None = None

    def _flat(self, *tensors: Tensor) -> tuple[Any, ...]:
        """The tensors of the results; what else there is of these is noted."""
        following = iter(tensors)
        given = [
            next(following) if is_one else leaf for leaf, is_one in zip(self._leaves, self._is_tensor, strict=True)
        ]
        args, kwargs = tree_unflatten(given, self._structure)
        results, self._result_structure = tree_flatten(self._function(*args, **kwargs))
        self._results = [None if isinstance(each, Tensor) else each for each in results]
        self._is_result = [isinstance(each, Tensor) for each in results]
        self._found = tuple([each for each in results if isinstance(each, Tensor)])
        self._recorded = [each.requires_grad for each in self._found]
        return self._found

    def _joint(self, *flat: Tensor) -> tuple[Any, ...]:
        """Results and gradients of a call."""
        count = sum(self._is_tensor)
        primals, tangents = flat[:count], flat[count:]
        results = self._flat(*primals)
        wanted = [each for each in primals if each.requires_grad]
        found = grad([each for each in results if each.requires_grad], wanted, tangents, allow_unused=True)
        following = iter(found)
        return (*results, *[next(following) if each.requires_grad else None for each in primals])

    def __call__(self, tensors: list[Tensor]) -> Any:
        found = list(_Differentiated.apply(self, *tensors) if self.differentiates else self._run(tensors))
        following = iter(found)
        return tree_unflatten(
            [next(following) if is_one else each for each, is_one in zip(self._results, self._is_result, strict=True)],
            self._result_structure,
        )

    def forward(self, tensors: list[Tensor]) -> tuple[list[Any], list[Any], list[Any]]:
        """Results, those of them without gradients, and what backward needs."""
        found = list(self._run(tensors))
        count = len(self._recorded)
        fixed = [each for each, is_recorded in zip(found[:count], self._recorded, strict=True) if not is_recorded]
        return found[:count], fixed, found[count:]

    def backward(self, kept: list[Any], grads: Sequence[Any]) -> tuple[Any, ...]:
        """The gradients of the inputs."""
        tangents = [each for each, is_recorded in zip(grads, self._recorded, strict=True) if is_recorded]
        if self._run_back is None:
            self._run_back = _called_with_list(self._ways.backward(self._backward_graph, [*kept, *tangents]))
        return tuple(self._run_back([*kept, *tangents]))


class _Differentiated(Function):
    """A call by the two graphs of a program."""

    @staticmethod
    def forward(ctx: Any, program: _Program, *tensors: Tensor) -> Any:
        results, fixed, kept = program.forward(list(tensors))
        ctx.program = program
        ctx.mark_non_differentiable(*fixed)
        ctx.save_for_backward(*[each for each in kept if isinstance(each, Tensor)])
        ctx.kept = [None if isinstance(each, Tensor) else each for each in kept]
        ctx.is_saved = [isinstance(each, Tensor) for each in kept]
        return tuple(results)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        saved = iter(ctx.saved_tensors)
        kept = [next(saved) if is_saved else each for each, is_saved in zip(ctx.kept, ctx.is_saved, strict=True)]
        return None, *ctx.program.backward(kept, grads)


def _name_inputs(graph: Any, primals: int) -> None:
    """Name the inputs as partitions know them."""
    for number, node in enumerate([each for each in graph.graph.nodes if each.op == "placeholder"]):
        name = f"primals_{number + 1}" if number < primals else f"tangents_{number - primals + 1}"
        node.name = node.target = name
    graph.recompile()


def _called_with_list(function: Callable[..., Any]) -> Callable[[list[Any]], Any]:
    """A compiled function that is called with a list of arguments, which is how some want it."""

    def call(args: list[Any]) -> Any:
        found = function(args) if getattr(function, "_boxed_call", False) else function(*args)
        return found if isinstance(found, (list, tuple)) else (found,)

    return call
