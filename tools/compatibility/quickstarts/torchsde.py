"""torchsde: paths of a stochastic differential equation and their gradient."""

import torch
import torchsde


class Equation(torch.nn.Module):
    noise_type = "diagonal"
    sde_type = "ito"

    def __init__(self):
        super().__init__()
        self.drift = torch.nn.Linear(3, 3)
        self.diffusion = torch.nn.Linear(3, 3)

    def f(self, t, y):
        return torch.tanh(self.drift(y))

    def g(self, t, y):
        return torch.sigmoid(self.diffusion(y))


def main():
    equation, start, times = Equation(), torch.full((4, 3), 0.1), torch.linspace(0, 1, 5)
    noise = torchsde.BrownianInterval(t0=0.0, t1=1.0, size=(4, 3), entropy=7)
    paths = torchsde.sdeint(equation, start, times, dt=0.05, method="euler", bm=noise)
    paths.square().mean().backward()
    adjoint = torchsde.sdeint_adjoint(equation, start, times, dt=0.1, method="milstein", bm=noise)
    return {"paths": paths, "gradient": equation.drift.weight.grad, "adjoint": adjoint}
