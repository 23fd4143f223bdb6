"""Functions of upper folders that lower ones call. A slot is declared here and filled by `flambeau/_wiring.py`.

So a folder knows nothing of those above it: it says what it wants done, and whoever can do it is put in its place.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .device import device
    from .tensor import Tensor


class Slots:
    """What is called upwards."""

    cuda_is_present: Callable[[], bool]
    """Whether there is a CUDA device."""
    usable_cuda_device: Callable[[device], device]
    """A CUDA device with its ordinal, ready to hold tensors; an error where there is none."""
    pinned_copy: Callable[[Any], Any]
    """A copy of a host array in page-locked memory."""
    is_pinned: Callable[[Any], bool]
    """Whether a host array is in such memory."""
    load_family: Callable[[str], None]
    """Import a file of ops, which puts its functions and methods in their places."""
    legacy_tensor: Callable[..., Tensor]
    """`(class, *args, **kwargs)`: what `Tensor(...)` makes."""
    tensor_of_number: Callable[[Any], Tensor]
    """A 0-d tensor of a Python number."""
    sum_over: Callable[[Any, tuple[int, ...], bool], Tensor]
    """`(tensor, dims, keepdim)`: the sum of a tensor that can have gradients over dimensions counted from the front."""
    derivatives_by_plan: Callable[[Any, Any, Any, Any, Any], Any]
    """`(node, grad, plans, saved, edges)`: see `_dispatch/gradients/fused_derivatives.py`."""
    converted: Callable[[Any, Any, Any], Tensor]
    """`(tensor, kind, memory_format)`: a copy as another kind of tensor."""
    to_copy: Callable[[Any, Any, Any], Tensor]
    """`(tensor, dtype, memory_format)`: a copy of another dtype on the same device, which has elements."""
    zeros_like: Callable[[Any], Tensor]
    """Zeros in the shape, layout and dtype of a tensor."""
    dispatch_by_class: Callable[[Any], None]
    """Let the class of a tensor, which has a `__torch_dispatch__`, run the operators that the tensor is given to."""
    operator_body: Callable[[Any], Callable[..., Any] | None]
    """`(schema)`: what takes all arguments of one of PyTorch's operators; None if nothing does."""
    is_compiling: Callable[[], bool]
    """Whether a program is being compiled."""
    ask_for_members: Callable[[type], None]
    """`(subclass of Tensor)`: let its `__torch_function__` be asked for the properties of tensors too."""
    retyped_like: Callable[[Any, Any], Tensor]
    """`(original, tensor)`: the tensor as an instance of the original's class, if that overrides public functions."""
    tensor_repr: Callable[..., str]
    """The text of a tensor."""
    tensor_html: Callable[[Any], str | None]
    """What notebooks show of a tensor."""
    out_of_memory: Callable[..., BaseException]
    """`(error, bytes=None)`: the error that says why so many bytes could not be had, and who holds the others."""
    run_on_sparse: Callable[[Any, tuple[Any, ...], dict[str, Any]], Any]
    """`(function, args, kwargs)`: a public function, of arguments among which are sparse tensors."""
    distributed_function: Callable[[str], Callable[..., Any]]
    """`(name)`: a public function of `torch.distributed`."""
    run_function_on_mesh: Callable[[Any, tuple[Any, ...], dict[str, Any]], Any]
    """`(function, args, kwargs)`: a public function, of arguments among which are distributed tensors."""
    run_op_on_mesh: Callable[[Any, Sequence[Any]], Any]
    """`(op, args)`: an op, of arguments among which are distributed tensors."""
    run_on_quantized: Callable[[Any, tuple[Any, ...], dict[str, Any]], Any]
    """`(function, args, kwargs)`: a public function, of arguments among which are quantized tensors."""

    as_strided: Callable[[], Any]
    """The op `as_strided`, whose nodes connect views to their changed bases."""
    window_of: Callable[..., Tensor]
    """`(base, kind, geometry)`: a recorded window on the memory of a tensor."""
    as_kind: Callable[[Any, Any], Tensor]
    """`(tensor, kind)`: the tensor with the signs that the kind says are still to be taken."""
    regenerate_view_history: Callable[[Any, Any], None]
    """`(tensor, view)`: connect a view to the present history of its base, which was changed in place."""

    join_streams: Callable[[Sequence[int]], Callable[[], None]] | None = None
    """`(numbers of nodes)`: let the stream in use wait for those in which the nodes were recorded, before a backward
    pass; the result is called after it. None: no stream beside the default one was ever used.
    """
    backward: Callable[..., None]
    """`autograd.backward`."""
    backward_from: Callable[[Any, bool | None], None]
    """`(tensor, retain_graph)`: the same for one tensor, with no further arguments."""
    gradients: Callable[..., Any]
    """`autograd.grad`."""
    vmap: Callable[[Callable[..., Any]], Callable[..., Any]]
    """`func.vmap`, over the first dimension of all arguments."""
    accumulate: Callable[[Any, Any], None]
    """`(leaf, gradient)`: add a gradient to the one that a leaf has."""
    propagate_tangents: Callable[..., None]
    """`(op, args, outputs, level)`: give the results of an op their tangents."""
    adopt_tangent: Callable[[Any, Any], None]
    """`(target, source)`: let a tensor that was changed in place have the tangent of what it became."""

    compiled_forward: Callable[[Any, tuple[Any, ...], dict[str, Any]], Any]
    """`(module, args, kwargs)`: its `forward`, compiled as these arguments say."""
    graph_of: Callable[..., Any]
    """`(function, tensors, decompositions=None)`: what a function does with them, as a `GraphModule`."""
    aot_eager: Callable[[Any, Any], Callable[..., Any]]
    """`(graph, inputs)`: what runs the graph of a call and the graph of its derivative as they stand."""
    compiler_options: Callable[[], dict[str, Any]]
    """The options of `compile`, and what they usually are."""
    bytes_of_tensors: Callable[[dict[str, Tensor]], bytes]
    """A file of the safetensors format."""
    tensors_of_bytes: Callable[[bytes], dict[str, Tensor]]
    """What is in such a file."""
    call_module: Callable[..., Any]
    """`(module, forward, args, kwargs)`: call a module with another `forward` than its own."""
    compiled_module: Callable[[Any, Any], Any]
    """What `compile` gives for a module, which is a module too; None for what is none."""
    scripted_module: Callable[[Any], Any]
    """A `jit.ScriptModule` that was written in Python, as the module of a TorchScript program."""
    save_scripted: Callable[..., None]
    """`jit.save`."""
    load_scripted: Callable[[Any], Any]
    """`jit.load`, of a file."""
    tree_flatten: Callable[[Any], tuple[list[Any], Any]]
    """`utils._pytree.tree_flatten`: the leaves of containers, and their structure."""
    tree_unflatten: Callable[[Sequence[Any], Any], Any]
    """`(leaves, structure)`: the containers again."""
    tree_map_only: Callable[[type, Callable[[Any], Any], Any], Any]
    """`(class, function, containers)`: the containers with what is of the class replaced."""

    rank_and_size: Callable[[], tuple[int, int] | None]
    """The number of this process and how many there are; None before the process group is made."""
    pytorch_reduced: Callable[[Any], Any]
    """A tensor as PyTorch pickles it; None where there is no such form."""
    storage_as_bytes: Callable[[Any], tuple[Any, ...]]
    """A storage as PyTorch pickles it."""


SLOTS = Slots()
