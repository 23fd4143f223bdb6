"""higher: a learning rate is learned through three steps of SGD."""

import higher
import torch


def main():
    model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 1))
    x, y = torch.randn(16, 4), torch.randn(16, 1)
    rate = torch.tensor(0.1, requires_grad=True)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    losses = []
    with higher.innerloop_ctx(model, optimizer, override={"lr": [rate]}) as (functional, inner):
        for _ in range(3):
            loss = torch.nn.functional.mse_loss(functional(x), y)
            inner.step(loss)
            losses.append(loss.item())
        outer = torch.nn.functional.mse_loss(functional(x), y)
        outer.backward()
    return {"losses": losses, "outer": outer, "rate": rate.grad, "weight": model[0].weight.grad}
