"""Networks of linear layers: classification, reconstruction, generation, comparison, shared weights."""

from __future__ import annotations

from typing import Any

from .alike import Run, descend, same_training, train


@same_training
def test_mlp_with_dropout(T: Any) -> Run:
    """SGD with momentum and weight decay."""
    nn = T.nn
    model = nn.Sequential(
        nn.Linear(12, 32), nn.ReLU(), nn.Dropout(0.5), nn.Linear(32, 16), nn.GELU(), nn.Dropout(0.2), nn.Linear(16, 4)
    )
    criterion = nn.CrossEntropyLoss()
    optimizer = T.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, weight_decay=1e-3)
    data = T.randn(40, 12), T.randint(4, (40,))
    return train(T, model, descend(T, model, lambda x, y: criterion(model(x), y), optimizer), data, size=8)


@same_training
def test_autoencoder(T: Any) -> Run:
    """Adam, exponential decay, normalisation over the batch, an encoder and a decoder."""
    nn = T.nn

    class Autoencoder(nn.Module):  # type: ignore[name-defined, misc]
        def __init__(self) -> None:
            super().__init__()
            self.encoder = nn.Sequential(nn.Linear(20, 12), nn.BatchNorm1d(12), nn.ELU(), nn.Linear(12, 3))
            self.decoder = nn.Sequential(nn.Linear(3, 12), nn.Softplus(), nn.Linear(12, 20), nn.Sigmoid())

        def forward(self, x: Any) -> Any:
            return self.decoder(self.encoder(x))

    model = Autoencoder()
    optimizer = T.optim.Adam(model.parameters(), lr=1e-2)
    scheduler = T.optim.lr_scheduler.ExponentialLR(optimizer, gamma=0.95)
    criterion = nn.BCELoss()
    step = descend(T, model, lambda x: criterion(model(x), x), optimizer, scheduler)
    return train(T, model, step, (T.rand(32, 20),), size=8)


@same_training
def test_variational_autoencoder(T: Any) -> Run:
    """The noise of the reparameterisation comes from the seed too."""
    nn, F = T.nn, T.nn.functional

    class VAE(nn.Module):  # type: ignore[name-defined, misc]
        def __init__(self) -> None:
            super().__init__()
            self.hidden = nn.Linear(16, 24)
            self.mean = nn.Linear(24, 4)
            self.log_variance = nn.Linear(24, 4)
            self.decoder = nn.Sequential(nn.Linear(4, 24), nn.Tanh(), nn.Linear(24, 16))

        def forward(self, x: Any) -> Any:
            hidden = F.silu(self.hidden(x))
            mean, log_variance = self.mean(hidden), self.log_variance(hidden)
            code = mean + T.randn_like(mean) * (0.5 * log_variance).exp()
            return self.decoder(code), mean, log_variance

    def loss(x: Any) -> Any:
        output, mean, log_variance = model(x)
        divergence = -0.5 * T.sum(1 + log_variance - mean.pow(2) - log_variance.exp())
        return (F.binary_cross_entropy_with_logits(output, x, reduction="sum") + divergence) / len(x)

    model = VAE()
    optimizer = T.optim.Adamax(model.parameters(), lr=2e-2)
    return train(T, model, descend(T, model, loss, optimizer), (T.rand(24, 16).round(),), size=6)


@same_training
def test_siamese_network(T: Any) -> Run:
    """One network sees both inputs; cosine embedding loss; RMSprop with centred statistics."""
    nn = T.nn
    model = nn.Sequential(nn.Linear(10, 16), nn.LeakyReLU(0.1), nn.LayerNorm(16), nn.Linear(16, 6))
    criterion = nn.CosineEmbeddingLoss(margin=0.2)
    optimizer = T.optim.RMSprop(model.parameters(), lr=5e-3, centered=True, momentum=0.5)
    data = T.randn(30, 10), T.randn(30, 10), T.randint(2, (30,)) * 2 - 1
    step = descend(T, model, lambda a, b, same: criterion(model(a), model(b), same), optimizer)
    return train(T, model, step, data, size=10)


@same_training
def test_triplets(T: Any) -> Run:
    """Triplet margin loss, Adadelta, a learnt activation, alpha dropout."""
    nn = T.nn
    model = nn.Sequential(nn.Linear(8, 16), nn.SELU(), nn.AlphaDropout(0.3), nn.Linear(16, 8), nn.PReLU(8))
    criterion = nn.TripletMarginLoss()
    optimizer = T.optim.Adadelta(model.parameters(), lr=1.0)
    data = T.randn(24, 8), T.randn(24, 8), T.randn(24, 8)
    return train(T, model, descend(T, model, lambda *batch: criterion(*map(model, batch)), optimizer), data, size=8)


@same_training
def test_shared_weights_and_control_flow(T: Any) -> Run:
    """One layer is used as often as the data says, and a decoder shares the encoder's matrix."""
    nn, F = T.nn, T.nn.functional

    class Dynamic(nn.Module):  # type: ignore[name-defined, misc]
        def __init__(self) -> None:
            super().__init__()
            self.first = nn.Linear(6, 12)
            self.middle = nn.Linear(12, 12)
            self.last_bias = nn.Parameter(T.zeros(6))

        def forward(self, x: Any) -> Any:
            hidden = self.first(x).clamp(min=0)
            for _ in range(int(x.abs().sum()) % 3 + 1):
                hidden = F.hardswish(self.middle(hidden))
            return F.linear(hidden, self.first.weight.t(), self.last_bias)

    model = Dynamic()
    optimizer = T.optim.NAdam(model.parameters(), lr=1e-2)
    scheduler = T.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=10)
    step = descend(T, model, lambda x: F.smooth_l1_loss(model(x), x), optimizer, scheduler)
    return train(T, model, step, (T.randn(20, 6),), size=5)


@same_training
def test_mixture_of_experts(T: Any) -> Run:
    """Experts in a ModuleList, chosen by a gate; two parameter groups; a warm-up."""
    nn = T.nn

    class Experts(nn.Module):  # type: ignore[name-defined, misc]
        def __init__(self) -> None:
            super().__init__()
            self.gate = nn.Linear(7, 3)
            self.experts = nn.ModuleList(nn.Sequential(nn.Linear(7, 9), nn.Mish(), nn.Linear(9, 2)) for _ in range(3))

        def forward(self, x: Any) -> Any:
            weights = self.gate(x).softmax(-1)
            return T.einsum("be,ebo->bo", weights, T.stack([expert(x) for expert in self.experts]))

    model = Experts()
    optimizer = T.optim.RAdam(
        [{"params": model.gate.parameters(), "lr": 1e-3}, {"params": model.experts.parameters()}], lr=2e-2
    )
    scheduler = T.optim.lr_scheduler.LinearLR(optimizer, start_factor=0.2, total_iters=8)
    criterion = nn.HuberLoss()
    step = descend(T, model, lambda x, y: criterion(model(x), y), optimizer, scheduler)
    return train(T, model, step, (T.randn(28, 7), T.randn(28, 2)), size=7)


@same_training
def test_word_bags(T: Any) -> Run:
    """EmbeddingBag over texts of different lengths; Adagrad."""
    nn = T.nn

    class Classifier(nn.Module):  # type: ignore[name-defined, misc]
        def __init__(self) -> None:
            super().__init__()
            self.bag = nn.EmbeddingBag(50, 8, mode="mean")
            self.fc = nn.Linear(8, 3)

        def forward(self, words: Any, lengths: Any) -> Any:
            texts = [text[: int(length)] for text, length in zip(words, lengths, strict=True)]
            offsets = T.cat([T.zeros(1, dtype=T.int64), lengths.cumsum(0)[:-1]])
            return self.fc(self.bag(T.cat(texts), offsets))

    model = Classifier()
    optimizer = T.optim.Adagrad(model.parameters(), lr=0.1)
    criterion = nn.CrossEntropyLoss(label_smoothing=0.1)
    data = T.randint(50, (30, 9)), T.randint(1, 10, (30,)), T.randint(3, (30,))
    step = descend(T, model, lambda words, lengths, y: criterion(model(words, lengths), y), optimizer)
    return train(T, model, step, data, size=6)
