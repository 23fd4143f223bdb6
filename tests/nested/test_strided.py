"""Nested tensors of the strided layout: rows of any sizes, as in PyTorch."""

from __future__ import annotations

from typing import Any

import pytest

from ..support.differential import differential, outcome


def _shown(value: Any) -> Any:
    """What is compared of a result: the rows of nested tensors."""
    if isinstance(value, (tuple, list)):
        return [_shown(each) for each in value]
    if getattr(value, "is_nested", False):
        return "nested", [each.detach().clone() for each in value.unbind()], value.requires_grad, value.is_contiguous()
    return value


def _names(T: Any) -> dict[str, Any]:
    nested = T.nested.nested_tensor
    a, b = T.arange(6.0).reshape(2, 3), T.ones(3, 3)
    return {
        "T": T, "F": T.nn.functional, "N": nested, "a": a, "b": b, "nt": nested([a, b]),
        "heads": nested([T.arange(16.0).reshape(2, 2, 4), T.ones(2, 3, 4)]),
    }  # fmt: skip


@pytest.mark.parametrize(
    "expression",
    [
        "[nt.layout, nt.is_nested, nt.dim(), nt.size(0), nt.size(-1), nt.numel(), nt.dtype, nt.is_contiguous()]",
        "[nt._nested_tensor_size(), nt._nested_tensor_strides(), nt._nested_tensor_storage_offsets(), nt.values()]",
        "N([[1, 2], [3]])",
        "N([T.tensor(1.0), T.tensor(2.0)])",
        "N([a, b.double()])",
        "N([a, b], dtype=T.float64)",
        "[N([]).dim(), repr(N([])), repr(nt), repr(N([a, b], requires_grad=True) * 2)]",
        "T.nested.as_nested_tensor(T.ones(2, 3))",
        "T.nested.narrow(T.arange(6.0).reshape(3, 2), 0, 1, 2)",
        "[nt[1], nt[0, 1], nt[-1, 0, 2], nt.select(0, 1), nt.unbind(), [each.shape for each in nt]]",
        "[nt * 2, nt - nt, nt + nt, nt / T.tensor(2.0), nt > 1, -nt, nt.masked_fill(nt > 1, 0), nt.isnan()]",
        "[nt.relu(), F.gelu(nt), F.silu(nt), nt.tanh(), nt.abs(), nt.sqrt(), nt.to(T.float64), nt.half().dtype]",
        "[T.ones_like(nt), T.zeros_like(nt), nt.clone().fill_(3), nt.clone().copy_(nt * 2)]",
        "[nt.softmax(-1), nt.softmax(1), nt.sum(-1, keepdim=True), F.softmax(heads, -1)]",
        "[F.linear(nt, b), F.linear(nt, T.ones(4, 3), T.ones(4)), F.layer_norm(nt, (3,), T.ones(3), T.zeros(3))]",
        "F.embedding(N([T.tensor([0, 1]), T.tensor([1])]), T.arange(6.0).reshape(3, 2))",
        "[T.matmul(nt, nt.transpose(1, 2)), T.bmm(nt, nt.transpose(1, 2)), nt @ nt.transpose(1, 2)]",
        "F.scaled_dot_product_attention(heads, heads, heads)",
        "[nt.transpose(1, 2), nt.transpose(1, 2).contiguous(), nt.transpose(-1, -2) * 2, heads.transpose(1, 2)]",
        "nt.transpose(1, 2)._nested_tensor_strides()",
        "[nt.reshape(2, -1, 3), nt.view(2, -1, 1, 3), nt.unsqueeze(1), nt.unsqueeze(-1), nt.unsqueeze(1).squeeze(1)]",
        "[nt.narrow(0, 1, 1), (nt.narrow(0, 1, 1) * 2).unbind(), T.cat([nt, nt])]",
        "[nt.chunk(3, -1), nt.chunk(3, -1)[1].contiguous()]",
        "[nt.to_padded_tensor(0.5), nt.to_padded_tensor(-1.0, (2, 4, 5)), T.nested.to_padded_tensor(nt, 0.0)]",
        "(T.manual_seed(0), F.dropout(nt, 0.5))[1]",
    ],
)
@differential
def test_functions(T: Any, expression: str) -> Any:
    return _shown(eval(expression, _names(T)))


@pytest.mark.parametrize(
    ("expression", "phrase"),
    [
        ("nt.size()", "NestedTensorImpl doesn't support sizes"),
        ("nt.shape", "NestedTensorImpl doesn't support sizes"),
        ("len(nt)", "NestedTensorImpl doesn't support sizes"),
        ("nt.stride()", "NestedTensorImpl doesn't support strides"),
        ("nt.size(1)", "Given dimension 1 is irregular and does not have a size"),
        ("N([a, T.ones(2)])", "All Tensors given to nested_tensor must have the same dimension. Found dimension 1"),
        ("N([a], layout=T.sparse_coo)", "Specified layout is unsupported for nested tensors"),
        ("nt + N([a, a])", "add does not support broadcasting when given a NestedTensor"),
        ("nt + T.ones(3)", "Expected both self and other to be nested, but got a nested self and non-nested other"),
        ("nt.to_padded_tensor(0, (2, 2, 3))", "Value in output_size is less than NestedTensor padded size"),
        ("nt.transpose(0, 1)", "Nested tensor dimension 0 cannot be transposed"),
        ("nt.reshape(2, 3, -1)", "is invalid for input of size 6"),
        ("nt.softmax(0)", "Cannot apply softmax across nested dimension 0"),
        ("nt.sum(1)", "NestedTensor can only be reduced across the last dimension for now"),
        ("nt.sum(-1)", "NestedTensor always requires keepdim=True for now"),
        ("nt[5]", "index 5 is out of bounds for dimension 0 with size 2"),
        ("nt[:1]", "Could not run 'aten::slice.Tensor' with arguments from the 'NestedTensorCPU' backend"),
        ("nt.unbind(1)", "NestedTensor can only be unbound along dimension 0 got dimension 1 instead"),
        ("nt.matmul(T.ones(3, 2))", "Expected both to be nested, but got a nested self and non-nested other"),
        ("nt.chunk(3, 1)", "Chunk for nested tensors is currently only supported for the last dimension"),
        ("nt.unsqueeze(0)", "For nested tensors, unsqueezing dimension 0 is not supported"),
        ("nt.squeeze()", "For nested tensors, squeeze without the dim argument is not supported"),
        ("nt.narrow(1, 0, 1)", "narrow(): only dim=0 supported for nested tensors, but got: 1"),
        ("T.stack([nt, nt])", "Could not run 'aten::stack'"),
    ],
)
@differential
def test_refusals(T: Any, expression: str, phrase: str) -> Any:
    return outcome(lambda: eval(expression, _names(T)), phrase)[:2]


@differential
def test_gradients(T: Any) -> Any:
    F = T.nn.functional
    a, b = T.arange(6.0).reshape(2, 3), T.ones(3, 3)
    weight = T.arange(12.0).reshape(4, 3).requires_grad_()
    leaf = T.nested.nested_tensor([a, b], requires_grad=True)
    hidden = F.relu(F.linear(leaf, weight)).to_padded_tensor(0.0)
    (hidden * hidden).sum().backward()
    row = a.clone().requires_grad_()
    joined = T.nested.as_nested_tensor([row, b])
    (joined * 2)[0].sum().backward()
    found = T.autograd.grad((leaf.softmax(-1) * leaf).to_padded_tensor(0.0).pow(2).sum(), leaf)
    return _shown([leaf.grad, found]), weight.grad, row.grad, leaf.is_leaf, leaf.grad_fn, joined.requires_grad


@differential
def test_rows_share_memory(T: Any) -> Any:
    nt = T.nested.nested_tensor([T.arange(6.0).reshape(2, 3), T.ones(3, 3)])
    nt[0].mul_(5)
    nt.unbind()[1][0].zero_()
    nt.mul_(2)
    return _shown(nt), nt.values()
