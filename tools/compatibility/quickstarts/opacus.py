"""Opacus: training with differential privacy: gradients of single examples, clipped, with noise."""

import torch
from opacus import PrivacyEngine


def main():
    model = torch.nn.Sequential(
        torch.nn.Conv2d(1, 4, 3),
        torch.nn.ReLU(),
        torch.nn.Flatten(),
        torch.nn.Linear(4 * 36, 3),
    )
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    data = torch.utils.data.TensorDataset(torch.randn(24, 1, 8, 8), torch.randint(0, 3, (24,)))
    loader = torch.utils.data.DataLoader(data, batch_size=8)
    engine = PrivacyEngine(accountant="rdp")
    model, optimizer, loader = engine.make_private(
        module=model, optimizer=optimizer, data_loader=loader, noise_multiplier=1.1, max_grad_norm=1.0
    )
    losses = []
    for _ in range(2):
        for x, y in loader:
            optimizer.zero_grad()
            loss = torch.nn.functional.cross_entropy(model(x), y)
            loss.backward()
            each = model._module[3].weight.grad_sample.flatten(1).norm(dim=1)
            optimizer.step()
            losses.append(loss.item())
    return {
        "losses": losses,
        "norms": each,
        "epsilon": engine.get_epsilon(delta=1e-5),
        "weight": model._module[0].weight,
    }
