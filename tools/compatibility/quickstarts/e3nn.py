"""e3nn: spherical harmonics, an equivariant tensor product and a gate; a rotation commutes with them."""

import torch
from e3nn import o3
from e3nn.nn import FullyConnectedNet, Gate


def main():
    vectors = torch.randn(6, 3)
    harmonics = o3.spherical_harmonics([0, 1, 2], vectors, normalize=True, normalization="component")
    inputs, sphere = o3.Irreps("4x0e + 2x1o"), o3.Irreps.spherical_harmonics(2)
    gate = Gate("4x0e", [torch.tanh], "2x0e", [torch.sigmoid], "2x1o")
    product = o3.FullyConnectedTensorProduct(inputs, sphere, gate.irreps_in, shared_weights=False)
    radial = FullyConnectedNet([3, 8, product.weight_numel], torch.tanh)
    x = inputs.randn(6, -1)
    out = gate(product(x, harmonics, radial(vectors.abs())))
    out.square().mean().backward()
    rotation = o3.matrix_x(torch.tensor(0.3)) @ o3.matrix_y(torch.tensor(0.7))
    turned = o3.spherical_harmonics([0, 1, 2], vectors @ rotation.T, normalize=True, normalization="component")
    expected = harmonics @ sphere.D_from_matrix(rotation).T
    return {
        "harmonics": harmonics,
        "out": out,
        "gradient": radial.layer0.weight.grad,
        "wigner": o3.wigner_3j(1, 1, 2),
        "equivariant": bool((turned - expected).abs().max() < 1e-4),
    }
