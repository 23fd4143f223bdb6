"""Transformers: initial numbers, results, gradients, masks, dropout, warnings, pickles."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import pytest
import torch as pytorch

import flambeau

from ..support.differential import differential, outcome, warned

SETTINGS: list[dict[str, Any]] = [
    {},
    {"batch_first": True, "activation": "gelu"},
    {"norm_first": True, "bias": False},
    {"batch_first": True, "norm_first": True, "layer_norm_eps": 1e-3},
]
settings = pytest.mark.parametrize("options", SETTINGS, ids=lambda options: "-".join(options) or "plain")


def _plain(value: Any) -> Any:
    if isinstance(value, (tuple, list)):
        return [_plain(each) for each in value]
    return value.detach() if hasattr(value, "detach") else value


def _gradients(output: Any, *leaves: Any) -> Any:
    (output * output.detach().cos()).sum().backward()
    return _plain([output, [each.grad for each in leaves]])


def _turned(x: Any, options: dict[str, Any]) -> Any:
    return x.transpose(0, 1).contiguous() if "batch_first" in options else x


@settings
@pytest.mark.parametrize("training", [True, False])
@differential
def test_layers(T: Any, options: dict[str, Any], training: bool) -> Any:
    x = _turned(T.randn(4, 3, 8, dtype=T.float64), options).requires_grad_()
    memory = _turned(T.randn(5, 3, 8, dtype=T.float64), options).requires_grad_()
    hidden = T.zeros(3, 4, dtype=T.bool)
    hidden[1, 2:] = True
    mask = T.ones(4, 4, dtype=T.bool).triu(1)
    encoder = T.nn.TransformerEncoderLayer(8, 2, 16, 0.3, dtype=T.float64, **options).train(training)
    decoder = T.nn.TransformerDecoderLayer(8, 2, 16, 0.3, dtype=T.float64, **options).train(training)
    with T.no_grad():
        quiet = [encoder(x), encoder(x, mask, hidden), decoder(x, memory), decoder(x[0], memory[0])]
    encoded = encoder(x, src_mask=mask, src_key_padding_mask=hidden, is_causal=True)
    decoded = decoder(x, memory, tgt_mask=mask, tgt_key_padding_mask=hidden, tgt_is_causal=True)
    return (
        [repr(encoder), repr(decoder), list(encoder.state_dict()), list(decoder.state_dict())],
        [encoder.activation_relu_or_gelu, encoder.norm_first],
        quiet,
        _gradients(encoded + decoded, x, memory, *encoder.parameters(), *decoder.parameters()),
    )


@settings
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@differential(tolerance=1e-5)
def test_whole(T: Any, options: dict[str, Any], dtype: str) -> Any:
    kind = getattr(T, dtype)
    model = T.nn.Transformer(8, 2, 2, 2, 16, 0.1, dtype=kind, **options)
    src, tgt = (_turned(T.randn(length, 3, 8, dtype=kind), options) for length in (5, 4))
    mask = model.generate_square_subsequent_mask(4, dtype=kind)
    hidden = T.zeros(3, 5, dtype=T.bool)
    hidden[0, 4] = True
    initial = _plain(list(model.parameters()))
    masks = {"tgt_mask": mask, "src_key_padding_mask": hidden, "memory_key_padding_mask": hidden}
    trained = _gradients(model(src, tgt, **masks), *model.parameters())
    model.eval()
    return repr(model), list(model.state_dict()), initial, mask, trained, _plain(model(src, tgt, tgt_is_causal=False))


@pytest.mark.parametrize("kept", [True, False])
@differential
def test_padding_in_evaluation(T: Any, kept: bool) -> Any:
    layer = T.nn.TransformerEncoderLayer(8, 2, 16, batch_first=True, dtype=T.float64)
    norm = T.nn.LayerNorm(8, dtype=T.float64)
    found = []
    for options in ({}, {"mask_check": False}, {"enable_nested_tensor": False}):
        model = T.nn.TransformerEncoder(layer, 2, norm, **options).eval()
        x = T.randn(3, 4, 8, dtype=T.float64)
        hidden = T.zeros(3, 4, dtype=T.bool)
        hidden[0, 3] = hidden[1, 1:] = True
        aside = hidden.clone()
        aside[2, 0] = "mask_check" not in options
        with T.set_grad_enabled(kept):
            found.append([_plain(model(x, src_key_padding_mask=each)) for each in (hidden, aside)])
            found.append(_plain(model(x, T.zeros(4, 4, dtype=T.bool), hidden)))
    return found


@differential
def test_causal_hints(T: Any) -> Any:
    layer = T.nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0)
    model = T.nn.TransformerEncoder(layer, 1, enable_nested_tensor=False)
    decoder = T.nn.TransformerDecoder(T.nn.TransformerDecoderLayer(8, 2, 16, dropout=0.0), 1)
    x, mask = T.randn(4, 2, 8), T.nn.Transformer.generate_square_subsequent_mask(4)
    return (
        [_plain(model(x, mask, is_causal=hint)) for hint in (None, True, False)],
        _plain(model(x, T.zeros(4, 4))),
        _plain(model(x, mask.expand(4, 4, 4))),
        _plain(model(x[:, 0], mask)),
        [_plain(decoder(x, x, mask, tgt_is_causal=hint)) for hint in (None, True, False)],
        _plain(decoder(x, x, mask, mask, memory_is_causal=True)),
    )


class _Square(flambeau.nn.Module):
    def forward(self, x: Any) -> Any:
        return x * x


@differential
def test_activations(T: Any) -> Any:
    F, found = T.nn.functional, []
    for activation in (F.relu, F.gelu, F.silu, T.tanh, T.nn.ReLU(), T.nn.GELU(), T.nn.SiLU(), "relu", "gelu"):
        layer = T.nn.TransformerEncoderLayer(4, 2, 8, 0.0, activation)
        other = T.nn.TransformerDecoderLayer(4, 2, 8, 0.0, activation)
        x = T.randn(3, 2, 4)
        found.append((layer.activation_relu_or_gelu, _plain(layer(x)), _plain(other(x, x)), repr(layer)))
    return found


@differential
def test_refused_and_warned(T: Any) -> Any:
    nn, x = T.nn, T.ones(3, 2, 4)
    model = nn.Transformer(4, 2, 1, 1, 8, batch_first=True)

    def encoder(**options: Any) -> Any:
        return lambda: repr(nn.TransformerEncoder(nn.TransformerEncoderLayer(4, 1, 8, **options), 1))

    phrase = "enable_nested_tensor is True, but self.use_nested_tensor is False because encoder_layer"
    # In double precision: of four numbers that are nearly equal, normalisation shows the rounding of the sums before.
    wide = x.double()
    hidden, mask = T.zeros(2, 3, dtype=T.bool), T.zeros(3, 3, dtype=T.float64)
    return (
        warned(encoder(), f"{phrase}.self_attn.batch_first was not True"),
        warned(encoder(norm_first=True), f"{phrase}.norm_first was True"),
        warned(encoder(batch_first=True, bias=False), f"{phrase}.self_attn was passed bias=False"),
        warned(encoder(batch_first=True, activation=T.tanh), f"{phrase}.activation_relu_or_gelu was not True"),
        warned(encoder(batch_first=True), f"{phrase}.self_attn.num_heads is odd"),
        warned(lambda: repr(nn.TransformerEncoder(nn.TransformerEncoderLayer(4, 2, 8, batch_first=True), 1))),
        warned(
            lambda: _plain(nn.TransformerEncoderLayer(4, 2, 8, dtype=T.float64)(wide, mask, hidden)),
            "Support for mismatched src_key_padding_mask and src_mask is deprecated",
        ),
        outcome(lambda: model(x, x[:2]), "the batch number of src and tgt must be equal"),
        outcome(lambda: model(x[..., :2], x), "the feature number of src and tgt must be equal to d_model"),
        outcome(
            lambda: nn.TransformerDecoderLayer(4, 2, activation="tanh"), "activation should be relu/gelu, not tanh"
        ),
        outcome(
            lambda: nn.TransformerEncoderLayer(4, 2, activation="tanh"), "activation should be relu/gelu, not tanh"
        ),
        outcome(lambda: nn.TransformerEncoderLayer(4, 3), "embed_dim must be divisible by num_heads"),
    )


def test_custom_parts_copies_and_pickles() -> None:
    flambeau.manual_seed(0)
    layer = flambeau.nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
    encoder = flambeau.nn.TransformerEncoder(layer, 1)
    model = flambeau.nn.Transformer(8, 2, 1, 1, 16, batch_first=True, custom_encoder=encoder).eval()
    x = flambeau.randn(2, 3, 8)
    assert model.encoder is encoder
    for twin in (copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        flambeau.testing.assert_close(twin(x, x), model(x, x))
        assert twin.encoder.layers[0].activation is flambeau.nn.functional.relu
    custom = flambeau.nn.TransformerEncoderLayer(8, 2, 16, activation=_Square())
    assert "(activation): _Square()" in repr(custom)


@pytest.mark.parametrize("name", ["TransformerEncoderLayer", "TransformerDecoderLayer"])
def test_state_of_an_older_version(name: str) -> None:
    layer = getattr(flambeau.nn, name)(8, 2, 16)
    old = type(layer).__new__(type(layer))
    old.__setstate__({key: value for key, value in vars(layer).items() if key != "activation"})
    assert old.activation is flambeau.nn.functional.relu


@pytest.mark.parametrize("name", pytorch.nn.modules.transformer.__all__)
def test_home(name: str) -> None:
    assert getattr(flambeau.nn, name).__module__ == "flambeau.nn.modules.transformer"
