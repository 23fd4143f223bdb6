"""Attention: values, masks, shared heads, nodes, derivatives, errors."""

from __future__ import annotations

import contextlib
import math
from typing import Any

import pytest

import flambeau

from ...support.differential import differential, outcome, warned
from ...support.oracle import ON_X86

INF = float("inf")


def _heads(T: Any, *shape: int, seed: int = 0, dtype: Any = None) -> Any:
    T.manual_seed(seed)
    return T.rand(shape, dtype=T.float32).mul(2).sub(1).to(dtype or T.float32)


def _attention(T: Any, query: Any, key: Any, value: Any, **options: Any) -> Any:
    return T.nn.functional.scaled_dot_product_attention(query, key, value, **options)


@pytest.mark.parametrize("batch", [(), (3,), (2, 3), (1, 2, 3)])
@pytest.mark.parametrize("causal", [False, True])
@differential(tolerance=1e-5)
def test_attention_of_every_rank(T: Any, batch: tuple[int, ...], causal: bool) -> Any:
    query, key, value = (_heads(T, *batch, *rest, seed=n) for n, rest in enumerate(((4, 8), (5, 8), (5, 8))))
    query.requires_grad_()
    value.requires_grad_()
    result = _attention(T, query, key, value, is_causal=causal)
    grads = T.autograd.grad((result * result.detach()).sum(), (query, value))
    return result, [grad.contiguous() for grad in grads]


@differential(tolerance=1e-5)
def test_masks(T: Any) -> Any:
    query, key = _heads(T, 2, 3, 4, 8), _heads(T, 2, 3, 5, 8, seed=1)
    numbers = _heads(T, 4, 5, seed=2)
    seen = numbers > 0
    seen[1] = False  # a query that sees nothing
    return (
        _attention(T, query, key, key, attn_mask=numbers),
        _attention(T, query, key, key, attn_mask=seen),
        _attention(T, query, key, key, attn_mask=seen.expand(2, 1, 4, 5)),
        _attention(T, query[0], key[0], key[0], attn_mask=seen),
        _attention(T, query[0], key[0], key[0], attn_mask=numbers.masked_fill(~seen, -INF)),
        _attention(T, query, key, key, attn_mask=numbers.expand(3, 4, 5)),
        _attention(T, query, key, key, attn_mask=numbers.clone().requires_grad_()),
        _attention(T, query, key, key, scale=0.3),
        _attention(T, query, key, key, scale=-0.3),
        _attention(T, query, key, key[..., :6]),
        T.ops.aten._safe_softmax(numbers.masked_fill(~seen, -INF), 1),
        T.ops.aten._safe_softmax(seen, 0, T.float64),
    )


@pytest.mark.skipif(not ON_X86, reason="other machines have products of half precision that round otherwise")
@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("queries", [1, 6])
@differential
def test_half_precision_is_rounded_where_pytorch_rounds(T: Any, dtype: str, queries: int) -> Any:
    half = getattr(T, dtype)
    query, key, value = (_heads(T, 2, 4, n, 8, seed=n, dtype=half) * 3 for n in (queries, 6, 6))
    return _attention(T, query, key, value).view(T.int16), _attention(T, query, key, value, scale=1.0).view(T.int16)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float64"])
@differential(tolerance=1e-5)
def test_dtypes(T: Any, dtype: str) -> Any:
    query, key = (_heads(T, 1, 2, length, 4, dtype=getattr(T, dtype)) for length in (3, 5))
    return _attention(T, query, key, key, is_causal=True), _attention(T, query[0], key[0], key[0])


@differential(tolerance=1e-5)
def test_dropout_of_weights(T: Any) -> Any:
    query = _heads(T, 2, 3, 4, 8)
    T.manual_seed(3)
    return _attention(T, query, query, query, dropout_p=0.4), _attention(T, query[0], query[0], query[0], dropout_p=0.4)


@differential(tolerance=1e-5)
def test_shared_heads(T: Any) -> Any:
    query, key = _heads(T, 2, 4, 3, 8).requires_grad_(), _heads(T, 2, 2, 3, 8, seed=1).requires_grad_()
    result = _attention(T, query, key, key.detach(), enable_gqa=True)
    grads = T.autograd.grad((result * result.detach()).sum(), (query, key))
    return result, [grad.contiguous() for grad in grads]


@pytest.mark.parametrize("key_heads", [1, 2, 4])
@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16"])
@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize("way", ["watched", "step by step"])
def test_shared_heads_whoever_looks(key_heads: int, dtype: str, turned: bool, way: str) -> None:
    def repeated(tensor: Any) -> Any:
        return tensor.unsqueeze(2).expand(2, key_heads, 4 // key_heads, 5, 8).reshape(2, 4, 5, 8)

    def run(by_steps: bool) -> Any:
        query = _heads(flambeau, 2, 4, 3, 8).to(getattr(flambeau, dtype)).requires_grad_()
        pair = [_heads(flambeau, *((2, 5, key_heads) if turned else (2, key_heads, 5)), 8, seed=n) for n in (1, 2)]
        pair = [(each.transpose(1, 2) if turned else each).to(query.dtype).detach().requires_grad_() for each in pair]
        if by_steps:
            result = _attention(flambeau, query, *map(repeated, pair))
        else:
            result = _attention(flambeau, query, *pair, enable_gqa=True)
        return result, *flambeau.autograd.grad((result * result).sum(), (query, *pair))

    plain = run(False)
    with flambeau.autograd.profiler.profile(enabled=way == "watched"):
        other = run(way == "step by step")
    for one, two in zip(plain, other, strict=True):
        assert one.equal(two)
        assert one.stride() == two.stride()


@differential(tolerance=1e-5)
def test_second_derivatives_of_shared_heads(T: Any) -> Any:
    query, *pair = (_heads(T, 2, heads, 3, 8, seed=heads, dtype=T.float64).requires_grad_() for heads in (4, 2, 2))
    with T.nn.attention.sdpa_kernel(T.nn.attention.SDPBackend.MATH):
        result = _attention(T, query, *pair, enable_gqa=True)
    first = T.autograd.grad(result.square().sum(), (query, *pair), create_graph=True)
    second = T.autograd.grad(sum(each.square().sum() for each in first), (query, *pair))
    return [each.detach() for each in first], second


@differential(tolerance=1e-5)
def test_shared_heads_that_nobody_differentiates(T: Any) -> Any:
    """Of one query, as of a decoded token, and of several, in both memory orders, and of a long cache."""
    found = []
    for queries, length in ((1, 3), (1, 70), (3, 70)):
        key, value = _heads(T, 2, 2, length, 8, seed=1), _heads(T, 2, 2, length, 8, seed=2)
        turned = _heads(T, 2, queries, 4, 8).transpose(1, 2)
        for query in (turned, turned.contiguous()):
            for options in ({}, {"scale": 0.3}, {"is_causal": True}):
                result = _attention(T, query, key, value, enable_gqa=True, **options)
                found += [result, result.stride()]
    return found


@pytest.mark.parametrize("queries", [1, 3, 6])
@pytest.mark.parametrize("boolean", [False, True])
@differential(tolerance=1e-5)
def test_shared_heads_under_masks(T: Any, queries: int, boolean: bool) -> Any:
    """Masks of all queries, of each, of each head; one that has as many heads as keys have fits nothing."""
    found = []
    key, value = _heads(T, 2, 2, 7, 8, seed=1), _heads(T, 2, 2, 7, 8, seed=2)
    for shape in ((2, 1, 1, 7), (1, 7), (2, 1, queries, 7), (2, 4, 1, 7), (2, 2, 1, 7)):
        mask = T.arange(math.prod(shape)).reshape(shape) % 3
        mask = mask > 0 if boolean else mask.to(T.float32)
        turned = _heads(T, 2, queries, 4, 8).transpose(1, 2)
        for query in (turned, turned.contiguous()):
            found.append(outcome(lambda q=query, m=mask: _attention(T, q, key, value, attn_mask=m, enable_gqa=True)))
            if found[-1][0] == "value":
                found.append(found[-1][1].stride())
    return found


@differential(tolerance=1e-5)
def test_layout_and_node(T: Any) -> Any:
    query = _heads(T, 2, 4, 3, 8).transpose(1, 2).requires_grad_()
    result = _attention(T, query, query, query)
    node = result.grad_fn
    return (
        result,
        len(node.next_functions),
        (node._saved_scale, node._saved_is_causal, node._saved_dropout_p, node._saved_attn_mask),
        node._saved_logsumexp.detach().contiguous(),
        _attention(T, query.detach().to("meta"), query.detach().to("meta"), query.detach().to("meta")),
    )


@pytest.mark.parametrize("shape", [(1, 1, 3, 2), (1, 3, 2)])
def test_derivatives(shape: tuple[int, ...]) -> None:
    tensors = [_heads(flambeau, *shape, seed=n, dtype=flambeau.float64).requires_grad_() for n in range(3)]

    def op(query: Any, key: Any, value: Any) -> Any:
        return _attention(flambeau, query, key, value, is_causal=True)

    assert flambeau.autograd.gradcheck(op, tensors)
    assert flambeau.autograd.gradgradcheck(op, tensors)


@differential
def test_errors_of_attention(T: Any) -> Any:
    q = T.ones(1, 4, 3, 8)
    return (
        outcome(lambda: _attention(T, q, q.double(), q), "Expected query, key, and value to have the same dtype"),
        outcome(lambda: _attention(T, q[0, 0, 0], q[0, 0, 0], q[0, 0, 0]), "at least 2 dimensional"),
        outcome(
            lambda: _attention(T, q, q, q, attn_mask=T.zeros(3, 3).double()), "Expected attn_mask dtype to be bool"
        ),
        outcome(lambda: _attention(T, q, q[:, :3], q[:, :3], enable_gqa=True), "must divide the number of heads"),
        outcome(
            lambda: _attention(T, q[0], q[0], q[0], attn_mask=T.zeros(3, 3), is_causal=True), "attn_mask should not"
        ),
    )


# ----- several heads -----------------------------------------------------------------------------------------------

WIDTH, HEADS, TARGETS, SOURCES, BATCH = 4, 2, 3, 5, 2


def _multi_head(T: Any, **changes: Any) -> Any:
    query, key = _heads(T, TARGETS, BATCH, WIDTH), _heads(T, SOURCES, BATCH, WIDTH, seed=1)
    arguments = {
        "query": query,
        "key": key,
        "value": key,
        "embed_dim_to_check": WIDTH,
        "num_heads": HEADS,
        "in_proj_weight": _heads(T, 3 * WIDTH, WIDTH, seed=2),
        "in_proj_bias": _heads(T, 3 * WIDTH, seed=3),
        "bias_k": None,
        "bias_v": None,
        "add_zero_attn": False,
        "dropout_p": 0.0,
        "out_proj_weight": _heads(T, WIDTH, WIDTH, seed=4),
        "out_proj_bias": _heads(T, WIDTH, seed=5),
    } | changes
    T.manual_seed(6)
    return T.nn.functional.multi_head_attention_forward(**arguments)


@pytest.mark.parametrize("need_weights", [True, False])
@differential(tolerance=1e-5)
def test_multi_head_attention(T: Any, need_weights: bool) -> Any:
    query, one = _heads(T, TARGETS, BATCH, WIDTH), _heads(T, 1, 1, WIDTH, seed=7)
    separate = {f"{name}_proj_weight": _heads(T, WIDTH, WIDTH, seed=8) for name in "qkv"}
    static = {f"static_{name}": _heads(T, BATCH * HEADS, SOURCES, WIDTH // HEADS, seed=9) for name in "kv"}
    hidden = T.tensor([[False] * 4 + [True], [False] * 5])
    mask = _heads(T, TARGETS, SOURCES, seed=10)
    causal = T.ones(TARGETS, TARGETS, dtype=T.bool).triu(1)
    changes: list[dict[str, Any]] = [
        {},
        {"query": query, "key": query, "value": query},
        {"value": _heads(T, SOURCES, BATCH, WIDTH, seed=11)},
        {"query": query[:, 0], "key": query[:, 0], "value": query[:, 0], "attn_mask": causal},
        {"in_proj_bias": None, "out_proj_bias": None},
        {"bias_k": one, "bias_v": one, "attn_mask": mask},
        {"add_zero_attn": True, "attn_mask": mask > 1, "key_padding_mask": hidden},
        {"key_padding_mask": hidden},
        {"attn_mask": mask.expand(BATCH * HEADS, TARGETS, SOURCES)},
        {"use_separate_proj_weight": True, "in_proj_weight": None, **separate},
        static,
        {"dropout_p": 0.5},
        {"dropout_p": 0.5, "training": False},
        {"average_attn_weights": False},
        {"query": query, "key": query, "value": query, "attn_mask": causal, "is_causal": True},
    ]
    return [_multi_head(T, need_weights=need_weights, **each) for each in changes]


@pytest.mark.parametrize("need_weights", [True, False])
@differential(tolerance=1e-5)
def test_gradients_of_multi_head_attention(T: Any, need_weights: bool) -> Any:
    query = _heads(T, TARGETS, BATCH, WIDTH).requires_grad_()
    weight = _heads(T, 3 * WIDTH, WIDTH, seed=2).requires_grad_()
    result, _ = _multi_head(T, query=query, key=query, value=query, in_proj_weight=weight, need_weights=need_weights)
    return result, T.autograd.grad((result * result.detach()).sum(), (query, weight))


@differential
def test_errors_of_multi_head_attention(T: Any) -> Any:
    def call(**changes: Any) -> Any:
        return lambda: _multi_head(T, **changes)

    square, one = T.zeros(WIDTH, WIDTH), T.zeros(1, 1, WIDTH)
    mask = T.zeros(TARGETS, SOURCES)
    return (
        outcome(call(embed_dim_to_check=5), "was expecting embedding dimension of 5, but got 4"),
        outcome(call(num_heads=3), "not divisible by num_heads 3"),
        outcome(call(query=T.ones(4)), "query should be unbatched 2D or batched 3D tensor"),
        outcome(call(key=T.ones(5, 4), value=T.ones(5, 4)), "expected `key` and `value` to be 3-D"),
        outcome(call(value=T.ones(3, BATCH, WIDTH)), "does not match value shape"),
        outcome(call(in_proj_weight=None), "use_separate_proj_weight is False but in_proj_weight is None"),
        outcome(call(use_separate_proj_weight=True), "use_separate_proj_weight is True but q_proj_weight is None"),
        outcome(
            call(use_separate_proj_weight=True, q_proj_weight=square[:3], k_proj_weight=square, v_proj_weight=square),
            "expecting query weights shape of",
        ),
        outcome(call(attn_mask=T.zeros(3, 3)), "The shape of the 2D attn_mask is"),
        outcome(call(attn_mask=mask[None, None]), "expected `attn_mask` to be `None`, 2-D or 3-D"),
        outcome(call(attn_mask=mask.int()), "only bool and floating types of attn_mask are supported"),
        outcome(call(key_padding_mask=T.zeros(BATCH, 9)), "Expected key_padded_mask.shape[1] to be 5, but got 9"),
        outcome(call(is_causal=True), "Need attn_mask if specifying the is_causal hint"),
        outcome(call(bias_k=one), "bias_k is set but bias_v is None"),
        outcome(call(bias_k=one, bias_v=one, static_k=one), "bias cannot be added to static key"),
        outcome(call(static_k=T.zeros(2, 5, 2)), "expecting static_k.size(0) of 4, but got 2"),
        warned(
            call(attn_mask=mask, key_padding_mask=T.zeros(BATCH, SOURCES, dtype=T.bool)),
            "Support for mismatched key_padding_mask and attn_mask is deprecated",
        ),
    )


@pytest.mark.parametrize("batch", [(2,), (2, 3)])
@pytest.mark.parametrize("masked", [False, True])
@differential
def test_few_elements_with_dropout(T: Any, batch: tuple[int, ...], masked: bool) -> Any:
    T.manual_seed(4)
    query, key, value = (T.randn(*batch, length, 5, dtype=T.float64).requires_grad_() for length in (4, 6, 6))
    mask = None
    if masked:
        mask = T.randn(4, 6, dtype=T.float64)
        mask[1] = -INF  # a query that sees nothing
    options = {"scale": -0.3, "dropout_p": 0.4}
    result = T.nn.functional.scaled_dot_product_attention(query, key, value, mask, is_causal=not masked, **options)
    first = T.autograd.grad(result.sin().sum(), (query, key, value), create_graph=True)
    second = T.autograd.grad(sum((each * each).sum() for each in first), (query, key, value))
    return result, [each.detach() for each in first], second


def test_few_elements_in_parts_and_at_once() -> None:
    """The same bits, whether or not somebody looks at the parts."""

    def run(watch: contextlib.AbstractContextManager[Any]) -> list[Any]:
        flambeau.manual_seed(0)
        query, key, value = (flambeau.randn(2, 3, 4, 5, dtype=flambeau.float64, requires_grad=True) for _ in range(3))
        with watch:
            result = flambeau.nn.functional.scaled_dot_product_attention(query, key, value, None, 0.4, True)
        result.sin().sum().backward()
        return [result, query.grad, key.grad, value.grad]

    def unchanged(tensor: Any) -> Any:
        return tensor

    at_once = run(contextlib.nullcontext())
    in_parts = run(flambeau.autograd.graph.saved_tensors_hooks(unchanged, unchanged))
    assert all(map(flambeau.equal, at_once, in_parts))


def _names(node: Any) -> Any:
    """The names of a node and of those that it leads to."""
    return node.name(), [_names(each) for each, _ in node.next_functions if each is not None]


@pytest.mark.parametrize("heads", [2, 3, 6])
@differential(tolerance=1e-5)
def test_shared_heads_are_recorded_as_one_node(T: Any, heads: int) -> Any:
    query, key, value = (_heads(T, 2, own, 40, 16, seed=own).requires_grad_() for own in (6, heads, heads))
    result = _attention(T, query, key, value, is_causal=True, enable_gqa=True)
    grads = T.autograd.grad(result.square().sum(), (query, key, value))
    return result, [each.contiguous() for each in grads], _names(result.grad_fn)


@pytest.mark.parametrize("length", [3, 40])
@pytest.mark.parametrize("heads", [1, 2, 4])
def test_gradients_of_shared_heads_have_the_bits_of_repeated_ones(length: int, heads: int) -> None:
    T = flambeau
    query, key, value = (_heads(T, 2, own, length, 16, seed=own).requires_grad_() for own in (8, heads, heads))

    def gradients(shared: bool) -> Any:
        others = [key, value] if shared else [each.repeat_interleave(8 // heads, 1) for each in (key, value)]
        result = _attention(T, query, *others, enable_gqa=shared)
        return result, *T.autograd.grad(result.square().sum(), (query, key, value))

    for found, expected in zip(gradients(True), gradients(False), strict=True):
        assert found.equal(expected)


def test_shared_heads_have_second_derivatives() -> None:
    T = flambeau
    query, key, value = (_heads(T, 1, own, 3, 2, seed=own, dtype=T.float64).requires_grad_() for own in (4, 2, 2))
    assert T.autograd.gradgradcheck(lambda *each: _attention(T, *each, enable_gqa=True), (query, key, value))
