"""`MultiheadAttention`, and the choice of kernels and causal masks in `nn.attention`."""

from __future__ import annotations

import copy
import importlib
import pickle
from typing import Any

import pytest

import flambeau
from flambeau.nn.attention import SDPBackend

from ..support.differential import differential, outcome, warned

MODULES: list[dict[str, Any]] = [
    {},
    {"batch_first": True, "dropout": 0.3},
    {"bias": False, "add_zero_attn": True},
    {"add_bias_kv": True, "batch_first": True},
    {"kdim": 6, "vdim": 3, "batch_first": True},
    {"kdim": 6, "bias": False},
]


def _plain(value: Any) -> Any:
    if isinstance(value, (tuple, list)):
        return [_plain(each) for each in value]
    return value if value is None else value.detach()


def _masks(T: Any, length: int, batch: int, dtype: Any) -> list[dict[str, Any]]:
    hidden = T.zeros(batch, length, dtype=T.bool)
    hidden[0, -1] = True
    causal = T.ones(length, length, dtype=T.bool).triu(1)
    added = T.linspace(-1, 1, length * length, dtype=dtype).reshape(length, length)
    return [
        {},
        {"attn_mask": causal, "need_weights": False},
        {"attn_mask": causal, "is_causal": True, "need_weights": False},
        {"key_padding_mask": hidden, "average_attn_weights": False},
        {"key_padding_mask": hidden, "attn_mask": causal},
        {"attn_mask": added.expand(batch * 2, length, length)},
    ]


@pytest.mark.parametrize("options", MODULES, ids=lambda options: "-".join(options) or "plain")
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@differential(tolerance=2e-5)
def test_same_numbers(T: Any, options: dict[str, Any], dtype: str) -> Any:
    kind = getattr(T, dtype)
    module = T.nn.MultiheadAttention(8, 2, dtype=kind, **options)
    found: list[Any] = [repr(module), list(module.state_dict()), _plain(list(module.parameters()))]
    query = T.randn(3, 3, 8, dtype=kind).requires_grad_()
    key = query if module._qkv_same_embed_dim else T.randn(3, 3, module.kdim, dtype=kind)
    value = key if module._qkv_same_embed_dim else T.randn(3, 3, module.vdim, dtype=kind)
    for mask in _masks(T, 3, 3, kind):
        module.zero_grad()
        query.grad = None
        output, weights = module(query, key, value, **mask)
        (output * output.detach().cos()).sum().backward()
        found.append(_plain([output, weights, query.grad, [each.grad for each in module.parameters()]]))
    module.eval()
    with T.no_grad():
        found.append([module(query, key, value), module(query[0], key[0], value[0])])
    return found


@differential
def test_other_keys_and_merged_masks(T: Any) -> Any:
    module = T.nn.MultiheadAttention(4, 2, batch_first=True)
    query, key, value = T.randn(2, 3, 4), T.randn(2, 5, 4), T.randn(2, 5, 4)
    hidden, mask = T.zeros(2, 3), T.ones(3, 3)
    return (
        _plain(module(query, key, value)),
        _plain(module(query, key, key)),
        module.merge_masks(None, None, query),
        module.merge_masks(None, hidden, query),
        module.merge_masks(mask, None, query),
        module.merge_masks(mask, hidden, query),
        module.merge_masks(mask.expand(4, 3, 3), hidden, query),
    )


@differential
def test_refused_and_warned(T: Any) -> Any:
    module, x = T.nn.MultiheadAttention(4, 2), T.ones(3, 2, 4)
    hidden, mask = T.zeros(2, 3, dtype=T.bool), T.zeros(3, 3)
    return (
        outcome(
            lambda: T.nn.MultiheadAttention(0, 2), "embed_dim and num_heads must be greater than 0, got embed_dim=0"
        ),
        outcome(lambda: T.nn.MultiheadAttention(5, 2), "embed_dim must be divisible by num_heads"),
        outcome(lambda: module(x[0, 0], x[0, 0], x[0, 0]), "query should be unbatched 2D or batched 3D tensor"),
        outcome(lambda: module(x, x, x, attn_mask=T.zeros(3, 3, dtype=T.int64)), "only bool and floating types of"),
        outcome(lambda: module(x, x, x, is_causal=True), "Need attn_mask if specifying the is_causal hint"),
        outcome(lambda: module(x, x, x, attn_mask=T.zeros(2, 3)), "The shape of the 2D attn_mask is"),
        warned(lambda: _plain(module(x, x, x, hidden, attn_mask=mask)), "mismatched key_padding_mask and attn_mask is"),
    )


def test_copies_pickles_and_home() -> None:
    module = flambeau.nn.MultiheadAttention(4, 2)
    assert type(module).__module__ == "flambeau.nn.modules.activation"
    assert flambeau.nn.modules.activation.MultiheadAttention is type(module)
    x = flambeau.randn(3, 2, 4)
    old = flambeau.nn.MultiheadAttention.__new__(flambeau.nn.MultiheadAttention)
    old.__setstate__({key: value for key, value in vars(module).items() if key != "_qkv_same_embed_dim"})
    for twin in (copy.deepcopy(module), pickle.loads(pickle.dumps(module)), old):
        flambeau.testing.assert_close(twin(x, x, x), module(x, x, x))


# ----- nn.attention ------------------------------------------------------------------------------------------------


@differential
def test_choice_of_kernels(T: Any) -> Any:
    F, attention = T.nn.functional, T.nn.attention
    x = T.linspace(-1, 1, 24).reshape(1, 2, 3, 4).requires_grad_()
    choices = [attention.SDPBackend.MATH, [attention.SDPBackend.FLASH_ATTENTION]]
    found = []
    for choice in choices:
        with attention.sdpa_kernel(choice, set_priority=True):
            found.append(F.scaled_dot_product_attention(x, x, x))

    def within(choice: Any, p: float) -> Any:
        with attention.sdpa_kernel(choice):
            return F.scaled_dot_product_attention(x, x, x, dropout_p=p)

    return (
        found,
        outcome(lambda: within([], 0.0), "No viable backend for scaled_dot_product_attention was found"),
        outcome(lambda: within(attention.SDPBackend.CUDNN_ATTENTION, 0.0), "No viable backend for"),
        outcome(lambda: within(attention.SDPBackend.FLASH_ATTENTION, 0.5), "No available kernel"),
        outcome(lambda: within("math", 0.5), "Backend must be an instance of SDPBackend or a list of SDPBackend"),
        F.scaled_dot_product_attention(x, x, x),
        [(name, int(each), str(each), repr(each)) for name, each in attention.SDPBackend.__members__.items()],
    )


@differential
def test_causal_masks(T: Any) -> Any:
    F, bias = T.nn.functional, importlib.import_module(f"{T.__name__}.nn.attention.bias")
    q, kv = T.linspace(-1, 1, 16).reshape(1, 2, 2, 4), T.linspace(2, -1, 32).reshape(1, 2, 4, 4)
    short = bias.causal_lower_right(2, 4)
    return (
        [
            F.scaled_dot_product_attention(q, kv, kv, make(2, 4))
            for make in (bias.causal_upper_left, bias.causal_lower_right)
        ],
        F.scaled_dot_product_attention(q, q, q, attn_mask=bias.causal_lower_right(2, 2), scale=0.3),
        F.scaled_dot_product_attention(q, kv, kv, attn_mask=short),
        (int(short.variant), short.seq_len_q, short.seq_len_kv, short._materialize()),
        warned(lambda: int(bias.causal_lower_right(4, 2).variant), "Lower right causal bias will produce NaNs"),
        outcome(lambda: bias.causal_upper_left(2), "causal_upper_left only supports 2D tensors"),
        outcome(lambda: bias.CausalBias(1, 2, 2), "variant must be a CausalVariant, got int"),
        outcome(lambda: F.scaled_dot_product_attention(q, kv, kv, short, 0.0, True), "should not be used with causal"),
    )


def test_kernels_are_restored_after_an_error() -> None:
    x = flambeau.ones(1, 1, 2, 2)
    with pytest.raises(ZeroDivisionError), flambeau.nn.attention.sdpa_kernel(SDPBackend.ERROR):
        raise ZeroDivisionError
    assert flambeau.nn.functional.scaled_dot_product_attention(x, x, x).shape == x.shape
    assert repr(flambeau.nn.attention.bias.causal_upper_left(1, 2)) == "tensor([[ True, False]])"
