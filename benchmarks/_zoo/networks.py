"""Networks of no library, as tutorials and papers write them: each returns a model and the arguments of its `forward`.

They are made under whichever framework stands for `torch`.
"""

from __future__ import annotations

import importlib
from typing import Any

_BATCH = 4


def _torch() -> Any:
    return importlib.import_module("torch")


def transformer() -> tuple[Any, dict[str, Any]]:
    """`nn.Transformer` with a causal mask."""
    torch = _torch()
    model = torch.nn.Transformer(64, 4, 2, 2, 128, batch_first=True)
    inputs = {"src": torch.randn(_BATCH, 12, 64), "tgt": torch.randn(_BATCH, 10, 64)}
    return model, {**inputs, "tgt_mask": torch.nn.Transformer.generate_square_subsequent_mask(10)}


def unet() -> tuple[Any, dict[str, Any]]:
    """A UNet of a diffusion model: group norm, attention in the middle, the time as sines."""
    torch = _torch()
    nn = torch.nn

    class Block(nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self, inside: int, outside: int) -> None:
            super().__init__()
            self.first = nn.Sequential(nn.GroupNorm(4, inside), nn.SiLU(), nn.Conv2d(inside, outside, 3, padding=1))
            self.time = nn.Linear(32, outside)
            self.second = nn.Sequential(nn.GroupNorm(4, outside), nn.SiLU(), nn.Conv2d(outside, outside, 3, padding=1))
            self.skip = nn.Conv2d(inside, outside, 1) if inside != outside else nn.Identity()

        def forward(self, x: Any, time: Any) -> Any:
            return self.skip(x) + self.second(self.first(x) + self.time(time)[:, :, None, None])

    class Attention(nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self, channels: int) -> None:
            super().__init__()
            self.norm, self.inner = nn.GroupNorm(4, channels), nn.MultiheadAttention(channels, 4, batch_first=True)

        def forward(self, x: Any) -> Any:
            flat = self.norm(x).flatten(2).transpose(1, 2)
            return x + self.inner(flat, flat, flat, need_weights=False)[0].transpose(1, 2).reshape(x.shape)

    class UNet(nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.begin, self.end = nn.Conv2d(3, 16, 3, padding=1), nn.Conv2d(16, 3, 3, padding=1)
            self.down = nn.ModuleList([Block(16, 16), Block(16, 32)])
            self.middle, self.attention = Block(32, 32), Attention(32)
            self.up = nn.ModuleList([Block(64, 16), Block(32, 16)])

        def forward(self, x: Any, t: Any) -> Any:
            angles = t[:, None] * torch.exp(torch.arange(16, device=t.device) * -0.5)
            time = torch.cat([angles.sin(), angles.cos()], 1)
            x = self.begin(x)
            kept = []
            for block in self.down:
                x = block(x, time)
                kept.append(x)
                x = torch.nn.functional.avg_pool2d(x, 2)
            x = self.attention(self.middle(x, time))
            for block in self.up:
                x = torch.nn.functional.interpolate(x, scale_factor=2, mode="nearest")
                x = block(torch.cat([x, kept.pop()], 1), time)
            return self.end(x)

    return UNet(), {"x": torch.randn(_BATCH, 3, 16, 16), "t": torch.rand(_BATCH)}


def graph_network() -> tuple[Any, dict[str, Any]]:
    """Messages along the edges of a graph, summed at their ends."""
    torch = _torch()
    nn = torch.nn

    class Layer(nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self, inside: int, outside: int) -> None:
            super().__init__()
            self.message, self.own = nn.Linear(2 * inside, outside), nn.Linear(inside, outside)

        def forward(self, x: Any, edges: Any) -> Any:
            source, target = edges
            messages = self.message(torch.cat([x[source], x[target]], 1)).relu()
            return self.own(x) + messages.new_zeros(x.shape[0], messages.shape[1]).index_add(0, target, messages)

    class Network(nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.layers, self.head = nn.ModuleList([Layer(8, 16), Layer(16, 16)]), nn.Linear(16, 3)

        def forward(self, x: Any, edges: Any) -> Any:
            for layer in self.layers:
                x = layer(x, edges).relu()
            return self.head(x.mean(0))

    return Network(), {"x": torch.randn(30, 8), "edges": torch.randint(0, 30, (2, 90))}


def tagger() -> tuple[Any, dict[str, Any]]:
    """An LSTM in both directions that gives each word of a text a tag."""
    torch = _torch()
    nn = torch.nn

    class Tagger(nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.words = nn.Embedding(100, 16)
            self.inner = nn.LSTM(16, 24, num_layers=2, bidirectional=True, batch_first=True)
            self.tags = nn.Linear(48, 9)

        def forward(self, words: Any) -> Any:
            return torch.log_softmax(self.tags(self.inner(self.words(words))[0]), -1)

    return Tagger(), {"words": torch.randint(0, 100, (_BATCH, 12))}


def autoencoder() -> tuple[Any, dict[str, Any]]:
    """A variational autoencoder, with its random numbers."""
    torch = _torch()
    nn = torch.nn

    class Autoencoder(nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.encoder = nn.Sequential(nn.Flatten(), nn.Linear(64, 32), nn.ReLU())
            self.mean, self.log_variance = nn.Linear(32, 8), nn.Linear(32, 8)
            self.decoder = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 64), nn.Sigmoid())

        def forward(self, x: Any) -> dict[str, Any]:
            hidden = self.encoder(x)
            mean, log_variance = self.mean(hidden), self.log_variance(hidden)
            latent = mean + torch.randn_like(mean) * torch.exp(0.5 * log_variance)
            return {"image": self.decoder(latent).view_as(x), "mean": mean, "log_variance": log_variance}

    return Autoencoder(), {"x": torch.rand(_BATCH, 1, 8, 8)}


def adversaries() -> tuple[Any, dict[str, Any]]:
    """A generator and its discriminator, in one module."""
    torch = _torch()
    nn = torch.nn

    class Adversaries(nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.generator = nn.Sequential(
                nn.ConvTranspose2d(16, 16, 4),
                nn.BatchNorm2d(16),
                nn.ReLU(),
                nn.ConvTranspose2d(16, 3, 4, 2, 1),
                nn.Tanh(),
            )
            self.discriminator = nn.Sequential(
                nn.Conv2d(3, 16, 4, 2, 1), nn.LeakyReLU(0.2), nn.Conv2d(16, 1, 4), nn.Flatten()
            )

        def forward(self, noise: Any, real: Any) -> tuple[Any, Any, Any]:
            made = self.generator(noise)
            return self.discriminator(made), self.discriminator(made.detach()), self.discriminator(real)

    return Adversaries(), {"noise": torch.randn(_BATCH, 16, 1, 1), "real": torch.randn(_BATCH, 3, 8, 8)}


def two_heads() -> tuple[Any, dict[str, Any]]:
    """The network of PPO: the policy's probabilities and the value of a state, with the clipped objective."""
    torch = _torch()
    nn = torch.nn

    class Agent(nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.body = nn.Sequential(nn.Linear(8, 32), nn.Tanh(), nn.Linear(32, 32), nn.Tanh())
            self.policy, self.value = nn.Linear(32, 4), nn.Linear(32, 1)

        def forward(self, states: Any, actions: Any, before: Any, advantages: Any, returns: Any) -> Any:
            hidden = self.body(states)
            chosen = torch.distributions.Categorical(logits=self.policy(hidden))
            ratio = torch.exp(chosen.log_prob(actions) - before)
            objective = torch.min(ratio * advantages, ratio.clamp(0.8, 1.2) * advantages).mean()
            return (self.value(hidden)[:, 0] - returns).square().mean() - objective - 0.01 * chosen.entropy().mean()

    numbers = [torch.randn(16) for _ in range(3)]
    inputs = dict(zip(("before", "advantages", "returns"), numbers, strict=True))
    return Agent(), {"states": torch.randn(16, 8), "actions": torch.randint(0, 4, (16,)), **inputs}


NETWORKS = {
    "nn.Transformer": transformer,
    "net unet": unet,
    "net graph": graph_network,
    "net lstm tagger": tagger,
    "net vae": autoencoder,
    "net gan": adversaries,
    "net ppo": two_heads,
}
