"""torchdiffeq: learn the vector field of a spiral, by backpropagation and by the adjoint method."""

import torch
from torchdiffeq import odeint, odeint_adjoint


class Field(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.net = torch.nn.Sequential(torch.nn.Linear(2, 16), torch.nn.Tanh(), torch.nn.Linear(16, 2))

    def forward(self, t, y):
        return self.net(y**3)


def main():
    matrix = torch.tensor([[-0.1, 2.0], [-2.0, -0.1]])
    start, times = torch.tensor([[2.0, 0.0]]), torch.linspace(0.0, 2.0, 10)
    truth = odeint(lambda t, y: (y**3) @ matrix, start, times, method="dopri5")
    field = Field()
    odeint_adjoint(field, start, times, method="rk4").square().mean().backward()
    adjoint = field.net[0].weight.grad.clone()
    optimizer = torch.optim.RMSprop(field.parameters(), lr=1e-2)
    losses = []
    for _ in range(4):
        optimizer.zero_grad()
        loss = (odeint(field, start, times, rtol=1e-4, atol=1e-5) - truth).abs().mean()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return {"truth": truth, "losses": losses, "adjoint": adjoint}
