"""GPyTorch: hyperparameters of an exact Gaussian process, its prediction, and a variational one."""

import math

import gpytorch
import torch


class Exact(gpytorch.models.ExactGP):
    def __init__(self, x, y, likelihood):
        super().__init__(x, y, likelihood)
        self.mean_module = gpytorch.means.ConstantMean()
        self.covar_module = gpytorch.kernels.ScaleKernel(gpytorch.kernels.RBFKernel())

    def forward(self, x):
        return gpytorch.distributions.MultivariateNormal(self.mean_module(x), self.covar_module(x))


class Variational(gpytorch.models.ApproximateGP):
    def __init__(self, points):
        distribution = gpytorch.variational.CholeskyVariationalDistribution(points.size(0))
        strategy = gpytorch.variational.VariationalStrategy(self, points, distribution)
        super().__init__(strategy)
        self.mean_module = gpytorch.means.ZeroMean()
        self.covar_module = gpytorch.kernels.ScaleKernel(gpytorch.kernels.MaternKernel(nu=2.5))

    forward = Exact.forward


def main():
    x = torch.linspace(0, 1, 30)
    y = torch.sin(x * 2 * math.pi) + torch.randn(30) * 0.1
    likelihood = gpytorch.likelihoods.GaussianLikelihood()
    model = Exact(x, y, likelihood)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.1)
    objective = gpytorch.mlls.ExactMarginalLogLikelihood(likelihood, model)
    losses = []
    for _ in range(10):
        optimizer.zero_grad()
        loss = -objective(model(x), y)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    model.eval()
    likelihood.eval()
    with torch.no_grad(), gpytorch.settings.fast_pred_var():
        prediction = likelihood(model(torch.linspace(0, 1, 7)))
        lower, upper = prediction.confidence_region()
    approximate, noise = Variational(x[::4].clone()), gpytorch.likelihoods.GaussianLikelihood()
    bound = gpytorch.mlls.VariationalELBO(noise, approximate, num_data=30)
    elbo = bound(approximate(x), y)
    elbo.backward()
    return {
        "losses": losses,
        "mean": prediction.mean,
        "lower": lower,
        "upper": upper,
        "scale": model.covar_module.base_kernel.lengthscale,
        "elbo": elbo,
        "gradient": approximate.covar_module.base_kernel.raw_lengthscale.grad,
    }
