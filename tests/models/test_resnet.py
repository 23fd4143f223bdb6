"""Residual networks beside the same architecture in PyTorch."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch as pytorch

import flambeau
from flambeau import models
from flambeau.models.resnet import BasicBlock, Bottleneck, ResNet

# Parameters, blocks in each of the four groups, width (0: blocks of two convolutions), groups of channels.
NETWORKS = {
    "resnet18": (11_689_512, (2, 2, 2, 2), 0, 1),
    "resnet34": (21_797_672, (3, 4, 6, 3), 0, 1),
    "resnet50": (25_557_032, (3, 4, 6, 3), 64, 1),
    "resnet101": (44_549_160, (3, 4, 23, 3), 64, 1),
    "resnet152": (60_192_808, (3, 8, 36, 3), 64, 1),
    "resnext50_32x4d": (25_028_904, (3, 4, 6, 3), 4, 32),
    "resnext101_32x8d": (88_791_336, (3, 4, 23, 3), 8, 32),
    "resnext101_64x4d": (83_455_272, (3, 4, 23, 3), 4, 64),
    "wide_resnet50_2": (68_883_240, (3, 4, 6, 3), 128, 1),
    "wide_resnet101_2": (126_886_696, (3, 4, 23, 3), 128, 1),
}


class Block(pytorch.nn.Module):
    """The blocks of the reference: of two convolutions, or of three that end four times as wide."""

    def __init__(self, channels: int, planes: int, stride: int, shortcut: Any, groups: int, width: int) -> None:
        super().__init__()
        nn = pytorch.nn
        inner = planes * width // 64 * groups
        sizes = [(channels, inner, 1), (inner, inner, 3), (inner, 4 * planes, 1)]
        if width == 0:
            sizes = [(channels, planes, 3), (planes, planes, 3)]
        self.depth = len(sizes)
        strided = 1 if width == 0 else 2
        for i, (a, b, size) in enumerate(sizes, 1):
            step = stride if i == strided else 1
            grouped = groups if (width and i == 2) else 1
            setattr(self, f"conv{i}", nn.Conv2d(a, b, size, step, size // 2, groups=grouped, bias=False))
            setattr(self, f"bn{i}", nn.BatchNorm2d(b))
        self.downsample = shortcut

    def forward(self, x: Any) -> Any:
        out = x
        for i in range(1, self.depth + 1):
            out = getattr(self, f"bn{i}")(getattr(self, f"conv{i}")(out))
            if i < self.depth:
                out = out.relu()
        return (out + (x if self.downsample is None else self.downsample(x))).relu()


class Reference(pytorch.nn.Module):
    """The published architecture in PyTorch; `width` 0 stands for the blocks of two convolutions."""

    def __init__(self, counts: tuple[int, ...], width: int, groups: int = 1, classes: int = 1000) -> None:
        super().__init__()
        nn = pytorch.nn
        self.conv1 = nn.Conv2d(3, 64, 7, 2, 3, bias=False)
        self.bn1 = nn.BatchNorm2d(64)
        channels = 64
        for i, count in enumerate(counts):
            planes, blocks = 64 * 2**i, []
            wide = planes * (4 if width else 1)
            for j in range(count):
                stride, shortcut = (2 if i and not j else 1), None
                if stride != 1 or channels != wide:
                    shortcut = nn.Sequential(nn.Conv2d(channels, wide, 1, stride, bias=False), nn.BatchNorm2d(wide))
                blocks.append(Block(channels, planes, stride, shortcut, groups, width))
                channels = wide
            setattr(self, f"layer{i + 1}", nn.Sequential(*blocks))
        self.fc = nn.Linear(channels, classes)
        for module in self.modules():
            if isinstance(module, nn.Conv2d):
                nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")

    def forward(self, x: Any) -> Any:
        x = pytorch.nn.functional.max_pool2d(self.bn1(self.conv1(x)).relu(), 3, 2, 1)
        for i in range(1, 5):
            x = getattr(self, f"layer{i}")(x)
        return self.fc(x.mean((2, 3)))


@pytest.mark.parametrize("name", NETWORKS)
def test_names_and_shapes(name: str) -> None:
    count, *architecture = NETWORKS[name]
    with flambeau.device("meta"):
        model = getattr(models, name)()
    with pytorch.device("meta"):
        reference = Reference(*architecture)
    assert sum(each.numel() for each in model.parameters()) == count
    expected = [(key, tuple(value.shape)) for key, value in reference.state_dict().items()]
    assert [(key, tuple(value.shape)) for key, value in model.state_dict().items()] == expected


SMALL = (1, 1, 2, 1)


@pytest.mark.parametrize(
    ("made", "architecture"),
    [
        (lambda: models.resnet18(num_classes=10), ((2, 2, 2, 2), 0, 1, 10)),
        (lambda: ResNet(Bottleneck, SMALL, num_classes=7), (SMALL, 64, 1, 7)),
        (lambda: ResNet(Bottleneck, SMALL, groups=32, width_per_group=4, num_classes=7), (SMALL, 4, 32, 7)),
    ],
)
def test_beside_pytorch(made: Any, architecture: Any) -> None:
    flambeau.manual_seed(0)
    model = made()
    pytorch.manual_seed(0)
    reference = Reference(*architecture)
    expected = {key: value.detach() for key, value in reference.state_dict().items()}
    actual = model.state_dict()
    assert list(actual) == list(expected)
    for key, value in expected.items():  # the same seed, the same network
        np.testing.assert_allclose(actual[key].numpy(), value.numpy(), rtol=1e-5, atol=1e-6, err_msg=key)
    model.load_state_dict({key: flambeau.from_numpy(value.numpy().copy()) for key, value in expected.items()})

    images = np.random.default_rng(0).standard_normal((2, 3, 48, 48), dtype=np.float32)
    results = []
    for library, network in ((pytorch, reference), (flambeau, model)):
        network.double()
        x = library.from_numpy(images).double().requires_grad_()
        scores = network(x)
        scores.square().mean().backward()
        names = ("conv1.weight", "bn1.bias", "layer2.0.downsample.0.weight", "layer3.1.conv2.weight", "fc.weight")
        gradients = [network.get_parameter(each).grad for each in names]
        with library.no_grad():
            evaluated = network.eval()(x)
        results.append(
            [each.detach().numpy() for each in (scores, x.grad, *gradients, evaluated, network.bn1.running_var)]
        )
    for wanted, got in zip(*results, strict=True):
        np.testing.assert_allclose(got, wanted, rtol=1e-6, atol=1e-9)


def test_printing_and_members() -> None:
    model = models.resnet18()
    assert isinstance(model, ResNet)
    assert isinstance(model.layer1[0], BasicBlock)
    assert str(model.layer2[0].downsample).startswith("Sequential(\n  (0): Conv2d(64, 128, kernel_size=(1, 1)")
    assert [name for name, _ in model.layer2[0].named_children()] == [
        "conv1",
        "bn1",
        "relu",
        "conv2",
        "bn2",
        "downsample",
    ]
    assert model.layer1[0].downsample is None
    assert [name for name, _ in model.named_children()] == [
        "conv1", "bn1", "relu", "maxpool", "layer1", "layer2", "layer3", "layer4", "avgpool", "fc",
    ]  # fmt: skip
    deep = Bottleneck(64, 16)
    assert [name for name, _ in deep.named_children()] == ["conv1", "bn1", "conv2", "bn2", "conv3", "bn3", "relu"]


def test_options() -> None:
    model = ResNet(
        Bottleneck,
        (1, 1, 2, 1),
        num_classes=3,
        zero_init_residual=True,
        replace_stride_with_dilation=(False, True, True),
        norm_layer=lambda channels: flambeau.nn.GroupNorm(8, channels),
    )
    assert model.layer3[0].conv2.dilation == (1, 1)
    assert (model.layer3[0].conv2.stride, model.layer3[1].conv2.dilation) == ((1, 1), (2, 2))
    assert (model.layer4[0].conv2.dilation, model.layer4[0].conv2.padding) == ((2, 2), (2, 2))
    assert not model.layer1[0].bn3.weight.any()
    assert isinstance(model.bn1, flambeau.nn.GroupNorm)
    assert model.layer4(flambeau.ones(1, 1024, 4, 4)).shape == (1, 2048, 4, 4)
    with pytest.raises(ValueError, match="should be None or a 3-element tuple"):
        models.resnet50(replace_stride_with_dilation=(True,))
    with pytest.raises(NotImplementedError, match="Dilation > 1 not supported in BasicBlock"):
        models.resnet18(replace_stride_with_dilation=(False, False, True))
    with pytest.raises(ValueError, match="only supports groups=1 and base_width=64"):
        models.resnet18(groups=2)


def test_weights_of_a_checkpoint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    reference = Reference((2, 2, 2, 2), 0, 1, 4)
    folder = tmp_path / "hub" / "checkpoints"
    folder.mkdir(parents=True)
    path = folder / "resnet18-0123abcd.pth"
    pytorch.save(reference.state_dict(), path)
    monkeypatch.setenv("TORCH_HOME", str(tmp_path))
    for model in (models.resnet18(weights=str(path)), models.resnet18(pretrained=True)):
        assert model.fc.out_features == 4
        np.testing.assert_array_equal(model.conv1.weight.detach().numpy(), reference.conv1.weight.detach().numpy())
    with pytest.raises(RuntimeError, match=r"size mismatch for fc\.weight"):
        models.resnet18(weights=flambeau.load(path), num_classes=5)
    with pytest.raises(FileNotFoundError, match=r"there is no such file\. Nothing is downloaded"):
        models.resnet18(weights="IMAGENET1K_V1")
    with pytest.raises(FileNotFoundError, match=r"a checkpoint of resnet34 in .*there is none"):
        models.resnet34(pretrained=True)
    with pytest.raises(TypeError, match="weights must be a path, a state dict or None, not int"):
        models.resnet18(weights=3)


def test_fine_tuning() -> None:
    model = models.resnet18()
    for parameter in model.parameters():
        parameter.requires_grad = False
    model.fc = flambeau.nn.Linear(512, 10)
    optimizer = flambeau.optim.SGD(model.fc.parameters(), lr=1e-2, momentum=0.9)
    frozen = model.conv1.weight.clone()
    before = model.fc.weight.detach().clone()
    model(flambeau.randn(2, 3, 32, 32)).square().sum().backward()
    optimizer.step()
    assert model.conv1.weight.grad is None
    assert model.conv1.weight.equal(frozen)
    assert not model.fc.weight.equal(before)
