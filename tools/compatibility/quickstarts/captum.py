"""Captum: which inputs made a network decide as it did, by five methods."""

import torch
from captum.attr import DeepLift, GradientShap, IntegratedGradients, LayerConductance, NeuronConductance, Occlusion


class Network(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.lin1 = torch.nn.Linear(5, 8)
        self.relu = torch.nn.ReLU()
        self.lin2 = torch.nn.Linear(8, 3)

    def forward(self, x):
        return self.lin2(self.relu(self.lin1(x)))


def main():
    model = Network().eval()
    x, baseline = torch.rand(4, 5), torch.zeros(4, 5)
    integrated, delta = IntegratedGradients(model).attribute(x, baseline, target=1, return_convergence_delta=True)
    lift = DeepLift(model).attribute(x, baseline, target=1)
    shap = GradientShap(model).attribute(x, n_samples=4, stdevs=0.0001, baselines=baseline, target=1)
    layer = LayerConductance(model, model.lin1).attribute(x, target=1)
    neuron = NeuronConductance(model, model.lin1).attribute(x, neuron_selector=1, target=1)
    hidden = Occlusion(model).attribute(x, sliding_window_shapes=(2,), target=1)
    return {
        "integrated": integrated,
        "delta": delta.abs() < 1e-2,
        "lift": lift,
        "shap": shap,
        "layer": layer,
        "neuron": neuron,
        "occlusion": hidden,
    }
