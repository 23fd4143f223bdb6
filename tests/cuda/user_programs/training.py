"""Training: networks of several kinds, optimizers, schedulers and what is around a step."""

from __future__ import annotations

import copy
from typing import Any

from .registry import program


def steps(torch: Any, net: Any, optimizer: Any, given: Any, wanted: Any, loss: Any, count: int = 4) -> list[Any]:
    """The losses of some steps."""
    losses = []
    for _ in range(count):
        optimizer.zero_grad()
        found = loss(net(given), wanted)
        found.backward()
        optimizer.step()
        losses.append(found.detach())
    return losses


def classes(torch: Any, count: int, of: int, device: str) -> Any:
    return (torch.arange(count) * 7 % of).to(device)


@program("training")
def perceptron_with_momentum(torch: Any, device: str) -> Any:
    nn = torch.nn
    net = nn.Sequential(nn.Linear(20, 32), nn.ReLU(), nn.Linear(32, 5)).to(device)
    optimizer = torch.optim.SGD(net.parameters(), 0.1, momentum=0.9, nesterov=True, weight_decay=1e-3)
    losses = steps(torch, net, optimizer, torch.randn(64, 20).to(device), classes(torch, 64, 5, device),
                   nn.functional.cross_entropy, 8)  # fmt: skip
    return losses, list(net.parameters())


@program("training")
def images_with_batch_norm(torch: Any, device: str) -> Any:
    nn = torch.nn
    net = nn.Sequential(
        nn.Conv2d(3, 8, 3, padding=1, bias=False), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(8, 16, 3, stride=2, groups=2, bias=False), nn.BatchNorm2d(16), nn.SiLU(),
        nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(16, 10),
    ).to(device)  # fmt: skip
    optimizer = torch.optim.Adam(net.parameters(), 1e-3)
    losses = steps(torch, net, optimizer, torch.randn(16, 3, 16, 16).to(device), classes(torch, 16, 10, device),
                   nn.CrossEntropyLoss(label_smoothing=0.1))  # fmt: skip
    return losses, [each for each in net.buffers() if each.is_floating_point()]


@program("training")
def transformer_with_warmup(torch: Any, device: str) -> Any:
    nn = torch.nn
    layer = nn.TransformerEncoderLayer(32, 4, 64, dropout=0.0, batch_first=True, norm_first=True)
    net = nn.Sequential(nn.TransformerEncoder(layer, 2, enable_nested_tensor=False), nn.Linear(32, 7)).to(device)
    optimizer = torch.optim.AdamW(net.parameters(), 1e-3)
    warmup = torch.optim.lr_scheduler.LinearLR(optimizer, 0.1, total_iters=3)
    given, wanted, losses = torch.randn(4, 9, 32).to(device), classes(torch, 36, 7, device), []
    for _ in range(5):
        optimizer.zero_grad(set_to_none=True)
        loss = nn.functional.cross_entropy(net(given).flatten(0, 1), wanted)
        loss.backward()
        norm = nn.utils.clip_grad_norm_(net.parameters(), 0.5)
        optimizer.step()
        warmup.step()
        losses += [loss.detach(), norm.detach()]
    return losses, warmup.get_last_lr()


@program("training")
def language_model_of_lstm(torch: Any, device: str) -> Any:
    nn = torch.nn

    class Model(nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.table, self.cells, self.out = nn.Embedding(30, 16), nn.LSTM(16, 24, 2), nn.Linear(24, 30)

        def forward(self, tokens: Any) -> Any:
            return self.out(self.cells(self.table(tokens))[0])

    net = Model().to(device)
    tokens = (torch.arange(12 * 5).reshape(12, 5) * 11 % 30).to(device)
    optimizer, losses = torch.optim.RMSprop(net.parameters(), 1e-3), []
    for _ in range(4):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(net(tokens[:-1]).flatten(0, 1), tokens[1:].flatten())
        loss.backward()
        nn.utils.clip_grad_value_(net.parameters(), 0.1)
        optimizer.step()
        losses.append(loss.detach())
    return losses, net.table.weight


@program("training")
def packed_sequences_of_gru(torch: Any, device: str) -> Any:
    rnn = torch.nn.utils.rnn
    net = torch.nn.GRU(6, 10, bidirectional=True).to(device)
    sequences = [torch.randn(length, 6).to(device) for length in (3, 7, 5)]
    packed = rnn.pack_sequence(sequences, enforce_sorted=False)
    output, last = net(packed)
    padded, lengths = rnn.pad_packed_sequence(output, batch_first=True)
    (padded.square().sum() + last.sum()).backward()
    return padded, lengths, last, [each.grad for each in net.parameters()]


@program("training")
def two_networks_against_each_other(torch: Any, device: str) -> Any:
    nn, F = torch.nn, torch.nn.functional
    maker = nn.Sequential(nn.Linear(4, 16), nn.LeakyReLU(0.2), nn.Linear(16, 6), nn.Tanh()).to(device)
    judge = nn.Sequential(nn.Linear(6, 16), nn.LeakyReLU(0.2), nn.Linear(16, 1)).to(device)
    both = [torch.optim.Adam(each.parameters(), 2e-3, betas=(0.5, 0.999)) for each in (maker, judge)]
    real, noise, losses = torch.randn(32, 6).to(device), torch.randn(32, 4).to(device), []
    ones, zeros = torch.ones(32, 1, device=device), torch.zeros(32, 1, device=device)
    for _ in range(4):
        both[1].zero_grad()
        loss = F.binary_cross_entropy_with_logits(judge(real), ones)
        loss = loss + F.binary_cross_entropy_with_logits(judge(maker(noise).detach()), zeros)
        loss.backward()
        both[1].step()
        both[0].zero_grad()
        other = F.binary_cross_entropy_with_logits(judge(maker(noise)), ones)
        other.backward()
        both[0].step()
        losses += [loss.detach(), other.detach()]
    return losses


@program("training")
def autoencoder_with_transposed_convolutions(torch: Any, device: str) -> Any:
    nn = torch.nn
    net = nn.Sequential(
        nn.Conv2d(1, 6, 3, 2, 1), nn.GELU(), nn.Conv2d(6, 12, 3, 2, 1), nn.GELU(),
        nn.ConvTranspose2d(12, 6, 3, 2, 1, 1), nn.GroupNorm(2, 6), nn.GELU(), nn.ConvTranspose2d(6, 1, 4, 2, 1),
    ).to(device)  # fmt: skip
    images = torch.rand(8, 1, 12, 12).to(device)
    return steps(torch, net, torch.optim.NAdam(net.parameters(), 1e-3), images, images, nn.MSELoss()), net(images)


@program("training")
def bags_of_words(torch: Any, device: str) -> Any:
    nn = torch.nn
    table, out = nn.EmbeddingBag(40, 12, mode="mean").to(device), nn.Linear(12, 4).to(device)
    words, starts = (torch.arange(30) * 13 % 40).to(device), torch.tensor([0, 4, 4, 15, 22]).to(device)
    optimizer, losses = torch.optim.Adagrad([*table.parameters(), *out.parameters()], 0.1), []
    for _ in range(4):
        optimizer.zero_grad()
        loss = nn.functional.nll_loss(out(table(words, starts)).log_softmax(1), classes(torch, 5, 4, device))
        loss.backward()
        optimizer.step()
        losses.append(loss.detach())
    return losses, table.weight


@program("training")
def accumulated_gradients(torch: Any, device: str) -> Any:
    net = torch.nn.Linear(8, 3).to(device)
    optimizer = torch.optim.Adamax(net.parameters(), 0.01)
    data = torch.randn(32, 8).to(device)
    for number, part in enumerate(data.split(8)):
        (net(part).square().mean() / 2).backward()
        if number % 2:
            optimizer.step()
            optimizer.zero_grad()
    return list(net.parameters())


@program("training")
def checkpointed_layers(torch: Any, device: str) -> Any:
    from_library = torch.utils.checkpoint.checkpoint
    layers = torch.nn.ModuleList([torch.nn.Linear(16, 16) for _ in range(3)]).to(device)
    given = torch.randn(5, 16).to(device).requires_grad_()
    found = given
    for each in layers:
        found = from_library(lambda x, each=each: torch.tanh(each(x)), found, use_reentrant=False)
    found.square().sum().backward()
    return found, given.grad, [each.weight.grad for each in layers]


@program("training")
def function_with_its_own_backward(torch: Any, device: str) -> Any:
    class Clipped(torch.autograd.Function):  # type: ignore[misc]
        @staticmethod
        def forward(ctx: Any, x: Any, limit: float) -> Any:
            ctx.save_for_backward(x)
            ctx.limit = limit
            return x.clamp(-limit, limit)

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            (x,) = ctx.saved_tensors
            return grad * (x.abs() < ctx.limit) * 0.5, None

    x = torch.randn(50).to(device).requires_grad_()
    Clipped.apply(x * 2, 1.0).pow(2).sum().backward()
    return x.grad


@program("training")
def averaged_weights(torch: Any, device: str) -> Any:
    net = torch.nn.Linear(6, 2).to(device)
    averaged = torch.optim.swa_utils.AveragedModel(net, multi_avg_fn=torch.optim.swa_utils.get_ema_multi_avg_fn(0.9))
    optimizer = torch.optim.SGD(net.parameters(), 0.1)
    data = torch.randn(16, 6).to(device)
    for _ in range(4):
        optimizer.zero_grad()
        net(data).square().mean().backward()
        optimizer.step()
        averaged.update_parameters(net)
    return averaged(data), averaged.n_averaged


@program("training")
def curve_fitted_by_lbfgs(torch: Any, device: str) -> Any:
    x = torch.linspace(-1, 1, 40, dtype=torch.float64).to(device)
    weights = torch.zeros(4, dtype=torch.float64, device=device, requires_grad=True)
    optimizer = torch.optim.LBFGS([weights], max_iter=8, line_search_fn="strong_wolfe")

    def closure() -> Any:
        optimizer.zero_grad()
        loss = (sum(weights[n] * x**n for n in range(4)) - torch.sin(2 * x)).square().mean()
        loss.backward()
        return loss

    return [optimizer.step(closure) for _ in range(2)], weights


@program("training")
def gradients_of_each_sample(torch: Any, device: str) -> Any:
    func = torch.func
    net = torch.nn.Sequential(torch.nn.Linear(5, 7), torch.nn.Tanh(), torch.nn.Linear(7, 2)).to(device)
    params = {name: each.detach() for name, each in net.named_parameters()}

    def loss(params: Any, x: Any, y: Any) -> Any:
        return torch.nn.functional.mse_loss(func.functional_call(net, params, (x[None],)), y[None])

    x, y = torch.randn(6, 5).to(device), torch.randn(6, 2).to(device)
    found = func.vmap(func.grad(loss), (None, 0, 0))(params, x, y)
    return (
        [found[name] for name in sorted(found)],
        func.jacrev(lambda v: net(v))(x[0]),
        func.hessian(lambda v: net(v).square().sum())(x[0]),
    )


@program("training")
def optimizers_fused_and_one_by_one(torch: Any, device: str) -> Any:
    results = []
    for options in ({"fused": True}, {"foreach": True}, {"foreach": False}, {"fused": True, "amsgrad": True}):
        torch.manual_seed(1)
        params = [torch.randn(shape).to(device).requires_grad_() for shape in ((30, 7), (1000,), ())]
        optimizer = torch.optim.AdamW(params, 0.01, **options)
        for number in range(4):
            optimizer.zero_grad()
            sum((each * (number + 1)).sin().sum() for each in params).backward()
            optimizer.step()
        results += [each.detach() for each in params]
    return results


@program("training")
def gradient_penalty(torch: Any, device: str) -> Any:
    net = torch.nn.Sequential(torch.nn.Linear(6, 12), torch.nn.Softplus(), torch.nn.Linear(12, 1)).to(device)
    x = torch.randn(10, 6).to(device).requires_grad_()
    (slope,) = torch.autograd.grad(net(x).sum(), x, create_graph=True)
    penalty = (slope.norm(dim=1) - 1).square().mean()
    penalty.backward()
    return penalty, [each.grad for each in net.parameters()]


@program("training")
def hooks_around_a_layer(torch: Any, device: str) -> Any:
    seen: list[Any] = []
    net = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.ReLU()).to(device)
    handles = [
        net[0].register_forward_hook(lambda module, args, out: seen.append(out.mean().detach())),
        net[0].register_full_backward_hook(lambda module, given, grads: seen.append(grads[0].sum())),
        net[0].weight.register_hook(lambda grad: grad * 2),
        net[0].bias.register_post_accumulate_grad_hook(lambda each: seen.append(each.grad.clone())),
    ]
    net(torch.randn(3, 4).to(device)).sum().backward()
    for each in handles:
        each.remove()
    net(torch.randn(3, 4).to(device)).sum().backward()
    return seen, net[0].weight.grad


@program("training")
def one_cycle_of_two_groups(torch: Any, device: str) -> Any:
    net = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.Linear(4, 1)).to(device)
    groups = [{"params": net[0].parameters(), "lr": 0.01}, {"params": net[1].parameters()}]
    optimizer = torch.optim.SGD(groups, lr=0.1, momentum=0.5)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, [0.02, 0.2], total_steps=6)
    data, rates = torch.randn(8, 4).to(device), []
    for _ in range(5):
        optimizer.zero_grad()
        net(data).square().mean().backward()
        optimizer.step()
        schedule.step()
        rates.append(schedule.get_last_lr())
    return rates, list(net.parameters())


@program("training")
def distances_and_triplets(torch: Any, device: str) -> Any:
    F = torch.nn.functional
    a, b, c = (torch.randn(6, 9).to(device).requires_grad_() for _ in range(3))
    loss = F.triplet_margin_loss(a, b, c) + torch.cdist(a, b).mean() + F.cosine_similarity(a, c).sum()
    loss = loss + F.cosine_embedding_loss(a, b, torch.ones(6, device=device)) + F.pairwise_distance(b, c).sum()
    loss.backward()
    return loss, a.grad, b.grad, c.grad


@program("training")
def convolutions_of_signals_and_volumes(torch: Any, device: str) -> Any:
    F = torch.nn.functional
    results = []
    for call, given, weight in (
        (F.conv1d, (2, 8, 50), (12, 8, 5)), (F.conv3d, (2, 4, 8, 9, 7), (6, 4, 3, 3, 3)),
        (F.conv_transpose1d, (2, 8, 20), (8, 6, 4)), (F.conv_transpose3d, (1, 4, 5, 6, 4), (4, 5, 3, 3, 3)),
    ):  # fmt: skip
        x, w = torch.randn(given).to(device).requires_grad_(), torch.randn(weight).to(device).requires_grad_()
        found = call(x, w, stride=2, padding=1)
        (found * found.detach().cos()).sum().backward()
        results += [found, x.grad, w.grad]
    return results


@program("training")
def losses_of_labels(torch: Any, device: str) -> Any:
    F = torch.nn.functional
    x, labels = torch.randn(12, 6).to(device).requires_grad_(), classes(torch, 12, 6, device)
    spread = torch.softmax(torch.randn(12, 6), 1).to(device)
    found = [
        F.cross_entropy(x, labels, weight=torch.arange(1.0, 7).to(device)), F.cross_entropy(x, spread),
        F.kl_div(x.log_softmax(1), spread, reduction="batchmean"), F.multi_margin_loss(x, labels),
        F.smooth_l1_loss(x, spread), F.huber_loss(x, spread, delta=0.3), F.soft_margin_loss(x, spread.sign()),
        F.gaussian_nll_loss(x, spread, spread), F.poisson_nll_loss(x, spread), F.multilabel_soft_margin_loss(x, spread),
    ]  # fmt: skip
    sum(found).backward()
    return found, x.grad


@program("training")
def speech_with_ctc(torch: Any, device: str) -> Any:
    scores = torch.randn(20, 3, 8).to(device).requires_grad_()
    labels = (torch.arange(15).reshape(3, 5) * 3 % 7 + 1).to(device)
    loss = torch.nn.functional.ctc_loss(
        scores.log_softmax(2), labels, torch.tensor([20, 18, 15]), torch.tensor([5, 3, 4]), zero_infinity=True
    )
    loss.backward()
    return loss, scores.grad


@program("training")
def frozen_layers_and_a_copy(torch: Any, device: str) -> Any:
    net = torch.nn.Sequential(torch.nn.Linear(5, 5), torch.nn.Dropout(0.0), torch.nn.Linear(5, 2)).to(device)
    twin = copy.deepcopy(net)
    net[0].requires_grad_(False)
    optimizer = torch.optim.Adadelta([each for each in net.parameters() if each.requires_grad], 1.0)
    losses = steps(torch, net, optimizer, torch.randn(7, 5).to(device), torch.randn(7, 2).to(device),
                   torch.nn.functional.l1_loss)  # fmt: skip
    same = [torch.equal(a, b) for a, b in zip(net.parameters(), twin.parameters(), strict=True)]
    return losses, same
