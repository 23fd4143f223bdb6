"""Pyro: stochastic variational inference and Hamiltonian Monte Carlo of a small regression."""

import pyro
import pyro.distributions as dist
import torch
from pyro.infer import MCMC, NUTS, SVI, Predictive, Trace_ELBO
from pyro.infer.autoguide import AutoNormal
from pyro.nn import PyroModule, PyroSample


class Regression(PyroModule):
    def __init__(self):
        super().__init__()
        self.linear = PyroModule[torch.nn.Linear](2, 1)
        self.linear.weight = PyroSample(dist.Normal(0.0, 1.0).expand([1, 2]).to_event(2))
        self.linear.bias = PyroSample(dist.Normal(0.0, 10.0).expand([1]).to_event(1))

    def forward(self, x, y=None):
        sigma = pyro.sample("sigma", dist.Uniform(0.0, 10.0))
        mean = self.linear(x).squeeze(-1)
        with pyro.plate("data", x.shape[0]):
            pyro.sample("obs", dist.Normal(mean, sigma), obs=y)
        return mean


def coin(data):
    fairness = pyro.sample("fairness", dist.Beta(2.0, 2.0))
    with pyro.plate("flips", len(data)):
        pyro.sample("flip", dist.Bernoulli(fairness), obs=data)


def main():
    pyro.set_rng_seed(0)
    x = torch.randn(20, 2)
    y = x @ torch.tensor([1.0, -2.0]) + 0.5 + 0.1 * torch.randn(20)
    model = Regression()
    guide = AutoNormal(model)
    svi = SVI(model, guide, pyro.optim.Adam({"lr": 0.03}), loss=Trace_ELBO())
    losses = [svi.step(x, y) for _ in range(15)]
    samples = Predictive(model, guide=guide, num_samples=8)(x)["obs"]
    mcmc = MCMC(NUTS(coin, jit_compile=False), num_samples=20, warmup_steps=10, disable_progbar=True)
    mcmc.run(torch.tensor([1.0, 1.0, 0.0, 1.0, 1.0, 0.0]))
    return {
        "losses": losses,
        "median": guide.median()["linear.weight"],
        "samples": samples.mean(0),
        "fairness": mcmc.get_samples()["fairness"],
    }
