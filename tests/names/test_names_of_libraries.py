"""Names outside of the documented API that libraries reach for, beside PyTorch's."""

from __future__ import annotations

import importlib
from typing import Any

import flambeau
from tests.support.differential import differential, outcome


def _module(torch: Any, name: str) -> Any:
    """A module of PyTorch's, or Flambeau's counterpart."""
    return importlib.import_module(f"{torch.__name__}.{name}")


def _functorch(torch: Any, name: str = "") -> Any:
    return importlib.import_module(("flambeau." if torch is flambeau else "") + f"functorch{name}")


@differential
def test_functorch(torch: Any) -> Any:
    functorch = _functorch(torch)
    layer = torch.nn.Linear(2, 1)
    torch.nn.init.ones_(layer.weight)
    torch.nn.init.ones_(layer.bias)
    function, params = functorch.make_functional(layer)
    normed = torch.nn.BatchNorm1d(2)
    with_buffers, weights, buffers = functorch.make_functional_with_buffers(normed)
    combined, stacked, _ = functorch.combine_state_for_ensemble([layer, layer])
    x = torch.tensor([[1.0, 2.0]])
    return (
        function(params, x).detach(),
        [tuple(each.shape) for each in params],
        with_buffers(weights, buffers, torch.arange(4.0).view(2, 2)).detach(),
        len(buffers),
        [tuple(each.shape) for each in stacked],
        functorch.vmap(combined, in_dims=(0, 0, None))(stacked, (), x).detach(),
        outcome(lambda: functorch.make_functional(normed), "has buffers"),
        functorch.grad(torch.sin)(torch.tensor(1.0)),
        _functorch(torch, ".einops").rearrange(torch.ones(2, 3), "a b -> b a").shape,
        _functorch(torch, ".experimental").chunk_vmap(torch.sin, chunks=2)(torch.arange(3.0)),
    )


@differential
def test_control_flow_by_its_files(torch: Any) -> Any:
    loop = _module(torch, "_higher_order_ops.while_loop").while_loop
    from_package = _module(torch, "_higher_order_ops").while_loop
    inputs = (torch.tensor(0), torch.ones(2))
    results = loop(lambda i, x: i < 3, lambda i, x: (i + 1, x * 2), inputs)
    return tuple(results), loop is from_package


@differential
def test_classes_of_nodes(torch: Any) -> Any:
    functions = torch._C._functions
    x = torch.ones(2, requires_grad=True)
    y = x.exp()
    return (
        isinstance(y.grad_fn, functions.ExpBackward0),
        isinstance(y.grad_fn, functions.AddBackward0),
        isinstance(y.grad_fn.next_functions[0][0], functions.AccumulateGrad),
        isinstance(3, functions.ExpBackward0),
        issubclass(type(y.grad_fn), functions.ExpBackward0),
        hasattr(functions, "nonsense"),
    )


@differential
def test_the_number_of_a_backward_pass(torch: Any) -> Any:
    number = torch._C._current_graph_task_id
    seen = []
    x = torch.ones(2, requires_grad=True)
    for _ in range(2):
        y = x * 2
        y.register_hook(lambda grad: seen.append(number()))
        x.register_hook(lambda grad: seen.append(number()))
        y.sum().backward()
    return number(), seen[0] == seen[1] >= 0, seen[0] != seen[2]


@differential
def test_settings_and_small_names(torch: Any) -> Any:
    backends = _module(torch, "backends")
    with getattr(backends, "__allow_nonbracketed_mutation")():
        frozen = backends.flags_frozen()
    attention = _module(torch, "nn.attention")
    return (
        frozen,
        getattr(backends, "__allow_nonbracketed_mutation_flag"),
        sorted(each.name for each in attention._cur_sdpa_kernel_backends()),
        torch.autograd.kineto_available(),
        torch._disable_dynamo(lambda x: x + 1)(1),
        torch._disable_dynamo()(lambda x: x + 1)(1),
        torch._C.StorageBase is not None,
        str(torch.ops.nothing_of_the_kind),
    )


@differential
def test_old_classes_of_sparse_tensors(torch: Any) -> Any:
    indices, values = torch.tensor([[0, 1]]), torch.tensor([1.0, 2.0])
    return (
        torch.sparse.FloatTensor(indices, values, torch.Size([3])).to_dense(),
        torch.sparse.FloatTensor(indices, values).to_dense(),
        torch.sparse.LongTensor(indices, values.long()).dtype,
        torch.sparse.FloatTensor().shape,
    )


@differential
def test_sequences_with_names(torch: Any) -> Any:
    import os
    import time

    pytree = _module(torch, "utils._pytree")
    values = [time.gmtime(0), os.stat("/"), (1, 2), torch.ones(2)]
    return [(pytree.is_structseq(each), pytree.is_structseq_instance(each)) for each in values]
