"""Networks with attention: classification, text, translation, images."""

from __future__ import annotations

import math
from typing import Any

from .alike import Run, descend, same_training, train


def positions(T: Any, length: int, width: int) -> Any:
    """Sines and cosines of different periods."""
    angle = T.arange(length)[:, None] * T.exp(T.arange(0, width, 2) * (-math.log(10000.0) / width))
    return T.stack([angle.sin(), angle.cos()], dim=-1).flatten(1)


@same_training
def test_transformer_encoder_classifier(T: Any) -> Run:
    """Post-norm encoder layers with dropout and a padding mask."""
    nn = T.nn

    class Classifier(nn.Module):  # type: ignore[name-defined, misc]
        def __init__(self) -> None:
            super().__init__()
            self.embedding = nn.Embedding(20, 8, padding_idx=0)
            layer = nn.TransformerEncoderLayer(8, nhead=2, dim_feedforward=16, dropout=0.1, batch_first=True)
            self.encoder = nn.TransformerEncoder(layer, num_layers=2, enable_nested_tensor=False)
            self.fc = nn.Linear(8, 3)
            self.register_buffer("positions", positions(T, 6, 8))

        def forward(self, words: Any) -> Any:
            padding = words == 0
            hidden = self.encoder(self.embedding(words) * 8**0.5 + self.positions, src_key_padding_mask=padding)
            return self.fc(hidden.mean(1))

    model = Classifier()
    optimizer = T.optim.AdamW(model.parameters(), lr=3e-3)
    scheduler = T.optim.lr_scheduler.LambdaLR(optimizer, lambda step: min((step + 1) ** -0.5, (step + 1) * 0.1))
    criterion = nn.CrossEntropyLoss()
    words = T.randint(1, 20, (16, 6)).masked_fill(T.arange(6) >= T.randint(2, 7, (16, 1)), 0)
    step = descend(T, model, lambda x, y: criterion(model(x), y), optimizer, scheduler)
    return train(T, model, step, (words, T.randint(3, (16,))), size=4)


@same_training
def test_gpt(T: Any) -> Run:
    """Pre-norm decoder blocks with MultiheadAttention under a causal mask; the head shares the embedding."""
    nn = T.nn

    class Block(nn.Module):  # type: ignore[name-defined, misc]
        def __init__(self, width: int, heads: int) -> None:
            super().__init__()
            self.ln_1, self.ln_2 = nn.LayerNorm(width), nn.LayerNorm(width)
            self.attention = nn.MultiheadAttention(width, heads, dropout=0.1, batch_first=True)
            self.mlp = nn.Sequential(
                nn.Linear(width, 4 * width), nn.GELU(approximate="tanh"), nn.Linear(4 * width, width), nn.Dropout(0.1)
            )

        def forward(self, x: Any) -> Any:
            mask = T.triu(T.full((x.size(1), x.size(1)), float("-inf")), diagonal=1)
            normed = self.ln_1(x)
            x = x + self.attention(normed, normed, normed, attn_mask=mask, need_weights=False)[0]
            return x + self.mlp(self.ln_2(x))

    class GPT(nn.Module):  # type: ignore[name-defined, misc]
        def __init__(self) -> None:
            super().__init__()
            self.tokens, self.places = nn.Embedding(15, 12), nn.Embedding(8, 12)
            self.blocks = nn.ModuleList([Block(12, 3) for _ in range(2)])
            self.norm = nn.LayerNorm(12)
            self.head = nn.Linear(12, 15, bias=False)
            self.head.weight = self.tokens.weight
            self.apply(self.initialise)

        def initialise(self, module: Any) -> None:
            if isinstance(module, (nn.Linear, nn.Embedding)):
                nn.init.normal_(module.weight, std=0.02)

        def forward(self, text: Any) -> Any:
            x = self.tokens(text) + self.places(T.arange(text.size(1)))
            for block in self.blocks:
                x = block(x)
            return self.head(self.norm(x))

    model = GPT()
    decayed = [parameter for parameter in model.parameters() if parameter.dim() >= 2]
    others = [parameter for parameter in model.parameters() if parameter.dim() < 2]
    groups = [{"params": decayed, "weight_decay": 0.1}, {"params": others, "weight_decay": 0.0}]
    optimizer = T.optim.AdamW(groups, lr=3e-3, betas=(0.9, 0.95))

    def loss(text: Any) -> Any:
        return nn.functional.cross_entropy(model(text[:, :-1]).flatten(0, 1), text[:, 1:].flatten())

    return train(T, model, descend(T, model, loss, optimizer, clip=1.0), (T.randint(15, (12, 9)),), size=4)


@same_training
def test_hand_written_attention(T: Any) -> Run:
    """Attention from matrix products and scaled_dot_product_attention, with rotary positions."""
    nn, F = T.nn, T.nn.functional

    class Attention(nn.Module):  # type: ignore[name-defined, misc]
        def __init__(self, fused: bool) -> None:
            super().__init__()
            self.fused = fused
            self.qkv = nn.Linear(8, 24, bias=False)
            self.register_buffer("angle", T.arange(5)[:, None] * 10.0 ** -T.arange(2), persistent=False)

        def rotate(self, x: Any) -> Any:
            left, right = x.chunk(2, dim=-1)
            cos, sin = self.angle.cos(), self.angle.sin()
            return T.cat([left * cos - right * sin, left * sin + right * cos], dim=-1)

        def forward(self, x: Any) -> Any:
            q, k, v = (part.unflatten(-1, (2, 4)).transpose(1, 2) for part in self.qkv(x).split(8, dim=-1))
            q, k = self.rotate(q), self.rotate(k)
            if self.fused:
                mixed = F.scaled_dot_product_attention(q, k, v, is_causal=True)
            else:
                scores = q @ k.mT / 2 + T.ones(5, 5, dtype=T.bool).triu(1).float().mul(-1e9)
                mixed = F.dropout(scores.softmax(-1), 0.1, self.training) @ v
            return x + mixed.transpose(1, 2).flatten(2)

    model = nn.Sequential(nn.Linear(3, 8), Attention(True), nn.RMSNorm(8), Attention(False), nn.Linear(8, 3))
    optimizer = T.optim.Adam(model.parameters(), lr=5e-3)
    step = descend(T, model, lambda x: F.mse_loss(model(x)[:, :-1], x[:, 1:]), optimizer)
    return train(T, model, step, (T.randn(16, 5, 3),), size=4)


@same_training
def test_transformer_translation(T: Any) -> Run:
    """nn.Transformer whole: encoder, decoder, causal mask, dropout, warm restarts."""
    nn = T.nn

    class Translator(nn.Module):  # type: ignore[name-defined, misc]
        def __init__(self) -> None:
            super().__init__()
            self.source, self.target = nn.Embedding(11, 8), nn.Embedding(9, 8)
            self.transformer = nn.Transformer(
                8, nhead=2, num_encoder_layers=1, num_decoder_layers=1, dim_feedforward=12, dropout=0.2
            )
            self.generator = nn.Linear(8, 9)

        def forward(self, source: Any, target: Any) -> Any:
            mask = nn.Transformer.generate_square_subsequent_mask(len(target))
            source = self.source(source) + positions(T, len(source), 8)[:, None]
            target = self.target(target) + positions(T, len(target), 8)[:, None]
            return self.generator(self.transformer(source, target, tgt_mask=mask))

    model = Translator()
    optimizer = T.optim.Adam(model.parameters(), lr=5e-3, betas=(0.9, 0.98), eps=1e-9)
    scheduler = T.optim.lr_scheduler.CosineAnnealingWarmRestarts(optimizer, T_0=6)

    def loss(source: Any, target: Any) -> Any:
        source, target = source.t(), target.t()
        return nn.functional.cross_entropy(model(source, target[:-1]).flatten(0, 1), target[1:].flatten())

    step = descend(T, model, loss, optimizer, scheduler)
    return train(T, model, step, (T.randint(11, (12, 6)), T.randint(9, (12, 5))), size=4)


@same_training
def test_vision_transformer(T: Any) -> Run:
    """Patches by a strided convolution, a class token, pre-norm encoder layers with GELU."""
    nn = T.nn

    class VisionTransformer(nn.Module):  # type: ignore[name-defined, misc]
        def __init__(self) -> None:
            super().__init__()
            self.patches = nn.Conv2d(3, 8, 4, stride=4)
            self.token = nn.Parameter(T.zeros(1, 1, 8))
            self.places = nn.Parameter(T.empty(1, 5, 8).normal_(std=0.02))
            layer = nn.TransformerEncoderLayer(
                8, 4, dim_feedforward=16, activation="gelu", batch_first=True, norm_first=True
            )
            self.encoder = nn.TransformerEncoder(layer, 2, norm=nn.LayerNorm(8), enable_nested_tensor=False)
            self.head = nn.Linear(8, 4)
            nn.init.trunc_normal_(self.head.weight, std=0.02)

        def forward(self, x: Any) -> Any:
            x = self.patches(x).flatten(2).transpose(1, 2)
            x = T.cat([self.token.expand(len(x), -1, -1), x], dim=1) + self.places
            return self.head(self.encoder(x)[:, 0])

    model = VisionTransformer()
    optimizer = T.optim.Adafactor(model.parameters(), lr=1e-2)
    criterion = nn.CrossEntropyLoss()
    step = descend(T, model, lambda x, y: criterion(model(x), y), optimizer)
    return train(T, model, step, (T.randn(12, 3, 8, 8), T.randint(4, (12,))), size=4)
