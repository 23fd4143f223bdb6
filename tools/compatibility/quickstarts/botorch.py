"""BoTorch: two rounds of Bayesian optimization of a function of two variables."""

import torch
from botorch.acquisition import LogExpectedImprovement, qLogExpectedImprovement
from botorch.fit import fit_gpytorch_mll
from botorch.models import SingleTaskGP
from botorch.models.transforms import Normalize, Standardize
from botorch.optim import optimize_acqf
from botorch.sampling import SobolQMCNormalSampler
from gpytorch.mlls import ExactMarginalLogLikelihood


def target(x):
    return 1 - (x - 0.4).norm(dim=-1, keepdim=True)


def main():
    x = torch.rand(8, 2, dtype=torch.double)
    y = target(x)
    bounds = torch.stack([torch.zeros(2), torch.ones(2)]).to(torch.double)
    values = []
    for _ in range(2):
        model = SingleTaskGP(x, y, input_transform=Normalize(d=2), outcome_transform=Standardize(m=1))
        fit_gpytorch_mll(ExactMarginalLogLikelihood(model.likelihood, model))
        acquisition = LogExpectedImprovement(model, best_f=y.max())
        candidate, value = optimize_acqf(acquisition, bounds, q=1, num_restarts=3, raw_samples=16, options={"seed": 1})
        values.append(value)
        x, y = torch.cat([x, candidate]), torch.cat([y, target(candidate)])
    sampler = SobolQMCNormalSampler(torch.Size([32]), seed=3)
    batch = qLogExpectedImprovement(model, best_f=y.max(), sampler=sampler)(torch.full((1, 2, 2), 0.5).double())
    return {"x": x.round(decimals=3), "y": y.round(decimals=3), "batch": batch.round(decimals=3)}
