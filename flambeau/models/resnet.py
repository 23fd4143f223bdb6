"""Residual networks (He and others, 2015), and the wider ones with grouped convolutions (ResNeXt, Wide ResNet).

Members are named and made in torchvision's order, so that its checkpoints fit and the same seed gives the same weights.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from .. import nn
from .._core.tensor import Tensor
from .._core.text.inherited_docs import documented_like
from ._weights import Weights, downloaded, state_dict_of

Norm = Callable[[int], nn.Module]


def conv3x3(in_planes: int, out_planes: int, stride: int = 1, groups: int = 1, dilation: int = 1) -> nn.Conv2d:
    """A convolution of 3x3 that keeps the size, but for its stride."""
    return nn.Conv2d(in_planes, out_planes, 3, stride, padding=dilation, dilation=dilation, groups=groups, bias=False)


def conv1x1(in_planes: int, out_planes: int, stride: int = 1) -> nn.Conv2d:
    """A convolution of 1x1."""
    return nn.Conv2d(in_planes, out_planes, 1, stride, bias=False)


class _Block(nn.Module):
    """Convolutions, around which the input goes along."""

    expansion: int

    def __init__(
        self,
        inplanes: int,
        planes: int,
        stride: int = 1,
        downsample: nn.Module | None = None,
        groups: int = 1,
        base_width: int = 64,
        dilation: int = 1,
        norm_layer: Norm | None = None,
    ) -> None:
        super().__init__()
        self._add_convolutions(inplanes, planes, stride, groups, base_width, dilation, norm_layer or nn.BatchNorm2d)
        self.downsample = downsample
        self.stride = stride

    def _add_convolutions(
        self, inplanes: int, planes: int, stride: int, groups: int, base_width: int, dilation: int, norm: Norm
    ) -> None:
        raise NotImplementedError

    def _convolved(self, x: Tensor) -> Tensor:
        raise NotImplementedError

    def forward(self, x: Tensor) -> Tensor:
        """`x` plus what the convolutions make of it."""
        out = self._convolved(x)
        out += x if self.downsample is None else self.downsample(x)
        result: Tensor = self.relu(out)
        return result


class BasicBlock(_Block):
    """Two convolutions of 3x3, around which the input goes along: the block of ResNet 18 and 34."""

    expansion = 1

    def _add_convolutions(
        self, inplanes: int, planes: int, stride: int, groups: int, base_width: int, dilation: int, norm: Norm
    ) -> None:
        if groups != 1 or base_width != 64:
            raise ValueError("BasicBlock only supports groups=1 and base_width=64")
        if dilation > 1:
            raise NotImplementedError("Dilation > 1 not supported in BasicBlock")
        self.conv1 = conv3x3(inplanes, planes, stride)
        self.bn1 = norm(planes)
        self.relu = nn.ReLU(inplace=True)
        self.conv2 = conv3x3(planes, planes)
        self.bn2 = norm(planes)

    def _convolved(self, x: Tensor) -> Tensor:
        out: Tensor = self.bn2(self.conv2(self.relu(self.bn1(self.conv1(x)))))
        return out


class Bottleneck(_Block):
    """A convolution of 3x3 between two of 1x1, around which the input goes along: the block of the deeper networks."""

    expansion = 4

    def _add_convolutions(
        self, inplanes: int, planes: int, stride: int, groups: int, base_width: int, dilation: int, norm: Norm
    ) -> None:
        width = int(planes * (base_width / 64)) * groups
        self.conv1 = conv1x1(inplanes, width)
        self.bn1 = norm(width)
        self.conv2 = conv3x3(width, width, stride, groups, dilation)
        self.bn2 = norm(width)
        self.conv3 = conv1x1(width, planes * self.expansion)
        self.bn3 = norm(planes * self.expansion)
        self.relu = nn.ReLU(inplace=True)

    def _convolved(self, x: Tensor) -> Tensor:
        narrowed = self.relu(self.bn1(self.conv1(x)))
        out: Tensor = self.bn3(self.conv3(self.relu(self.bn2(self.conv2(narrowed)))))
        return out


class ResNet(nn.Module):
    """A residual network of four groups of blocks: `layers` says how many each has.

    `zero_init_residual` lets every block begin as the identity. `replace_stride_with_dilation` says for each of the
    last three groups whether it keeps the size of its input.

    Args:
        block (type[BasicBlock | Bottleneck]): the class of its blocks: `BasicBlock` of two convolutions, or
            `Bottleneck` of three.
        layers (sequence of ints): how many blocks each of the four groups has.
        num_classes (int): the number of outputs. Default: `1000`.
        zero_init_residual (bool): whether each block starts as the identity: the last normalisation's weight begins at
            zero. Default: `False`.
        groups (int): the number of groups of the middle convolutions. Default: `1`.
        width_per_group (int): the number of channels of each such group. Default: `64`.
        replace_stride_with_dilation (sequence of bools, optional): for each of the last three groups, whether it
            dilates in place of halving the image.
        norm_layer (Norm, optional): what makes a normalisation from a number of channels; None means `BatchNorm2d`.

    Returns:
        scores, (N, num_classes).

    Example:
        >>> from flambeau.models.resnet import BasicBlock
        >>> model = torch.models.ResNet(BasicBlock, [1, 1, 1, 1], num_classes=10).eval()
        >>> model(torch.zeros(1, 3, 64, 64)).shape
        torch.Size([1, 10])
    """

    def __init__(
        self,
        block: type[BasicBlock | Bottleneck],
        layers: Sequence[int],
        num_classes: int = 1000,
        zero_init_residual: bool = False,
        groups: int = 1,
        width_per_group: int = 64,
        replace_stride_with_dilation: Sequence[bool] | None = None,
        norm_layer: Norm | None = None,
    ) -> None:
        super().__init__()
        dilate = (False, False, False) if replace_stride_with_dilation is None else replace_stride_with_dilation
        if len(dilate) != 3:
            raise ValueError(
                f"replace_stride_with_dilation should be None or a 3-element tuple, got {replace_stride_with_dilation}"
            )
        self._norm_layer = norm_layer or nn.BatchNorm2d
        self.inplanes = 64
        self.dilation = 1
        self.groups = groups
        self.base_width = width_per_group
        self.conv1 = nn.Conv2d(3, self.inplanes, kernel_size=7, stride=2, padding=3, bias=False)
        self.bn1 = self._norm_layer(self.inplanes)
        self.relu = nn.ReLU(inplace=True)
        self.maxpool = nn.MaxPool2d(kernel_size=3, stride=2, padding=1)
        self.layer1 = self._make_layer(block, 64, layers[0])
        self.layer2 = self._make_layer(block, 128, layers[1], stride=2, dilate=dilate[0])
        self.layer3 = self._make_layer(block, 256, layers[2], stride=2, dilate=dilate[1])
        self.layer4 = self._make_layer(block, 512, layers[3], stride=2, dilate=dilate[2])
        self.avgpool = nn.AdaptiveAvgPool2d((1, 1))
        self.fc = nn.Linear(512 * block.expansion, num_classes)
        self._initialise(zero_init_residual)

    def _initialise(self, zero_init_residual: bool) -> None:
        for module in self.modules():
            if isinstance(module, nn.Conv2d):
                nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")
            elif isinstance(module, (nn.BatchNorm2d, nn.GroupNorm)):
                nn.init.constant_(module.weight, 1)
                nn.init.constant_(module.bias, 0)
        if zero_init_residual:
            for module in self.modules():
                if isinstance(module, (BasicBlock, Bottleneck)):
                    last = module.bn3 if isinstance(module, Bottleneck) else module.bn2
                    nn.init.constant_(last.weight, 0)

    def _make_layer(
        self, block: type[BasicBlock | Bottleneck], planes: int, blocks: int, stride: int = 1, dilate: bool = False
    ) -> nn.Sequential:
        norm = self._norm_layer
        dilation = self.dilation
        if dilate:
            self.dilation *= stride
            stride = 1
        downsample = None
        wide = planes * block.expansion
        if stride != 1 or self.inplanes != wide:
            downsample = nn.Sequential(conv1x1(self.inplanes, wide, stride), norm(wide))
        made = [block(self.inplanes, planes, stride, downsample, self.groups, self.base_width, dilation, norm)]
        self.inplanes = wide
        made += [
            block(wide, planes, 1, None, self.groups, self.base_width, self.dilation, norm) for _ in range(1, blocks)
        ]
        return nn.Sequential(*made)

    def forward(self, x: Tensor) -> Tensor:
        """The scores of every class for images of shape `(batch, 3, height, width)`."""
        x = self.maxpool(self.relu(self.bn1(self.conv1(x))))
        x = self.layer4(self.layer3(self.layer2(self.layer1(x))))
        return self.fc(self.avgpool(x).flatten(1))


def _resnet(
    name: str, block: type[BasicBlock | Bottleneck], layers: Sequence[int], weights: Weights, options: dict[str, Any]
) -> ResNet:
    if options.pop("pretrained", False) and weights is None:
        weights = downloaded(name)
    if weights is None:
        return ResNet(block, layers, **options)
    state = state_dict_of(weights)
    if "fc.bias" in state:
        options.setdefault("num_classes", len(state["fc.bias"]))
    model = ResNet(block, layers, **options)
    model.load_state_dict(state)
    return model


def resnet18(*, weights: Weights = None, **kwargs: Any) -> ResNet:
    """ResNet-18, with new weights, or with those of a checkpoint or state dict; further arguments are `ResNet`'s.

    `pretrained=True`, torchvision's older way, takes the checkpoint that torchvision has downloaded to this machine.

    >>> model = flambeau.models.resnet18()
    >>> model.fc = flambeau.nn.Linear(model.fc.in_features, 10)
    >>> model(flambeau.zeros(2, 3, 64, 64)).shape
    torch.Size([2, 10])

    Args:
        weights (Weights): a checkpoint's path or a state dict; None means new weights.
        **kwargs: further arguments of `ResNet`.

    Returns:
        ResNet: the network, in training mode.
    """
    return _resnet("resnet18", BasicBlock, (2, 2, 2, 2), weights, kwargs)


def resnet34(*, weights: Weights = None, **kwargs: Any) -> ResNet:
    """Make a ResNet-34: 34 layers in blocks of two convolutions.

    Args:
        weights (Weights): a checkpoint's path or a state dict; None means new weights.
        **kwargs: further arguments of `ResNet`.

    Returns:
        ResNet: the network, in training mode.

    Example:
        >>> sum(each.numel() for each in torch.models.resnet34().parameters())
        21797672
    """
    return _resnet("resnet34", BasicBlock, (3, 4, 6, 3), weights, kwargs)


@documented_like(resnet34)
def resnet50(*, weights: Weights = None, **kwargs: Any) -> ResNet:
    """Make a ResNet-50: 50 layers in blocks of three convolutions.

    Example:
        >>> with torch.device("meta"):
        ...     model = torch.models.resnet50()
        >>> sum(each.numel() for each in model.parameters())
        25557032
    """
    return _resnet("resnet50", Bottleneck, (3, 4, 6, 3), weights, kwargs)


@documented_like(resnet34)
def resnet101(*, weights: Weights = None, **kwargs: Any) -> ResNet:
    """Make a ResNet-101: 101 layers in blocks of three convolutions.

    Example:
        >>> with torch.device("meta"):
        ...     model = torch.models.resnet101()
        >>> sum(each.numel() for each in model.parameters())
        44549160
    """
    return _resnet("resnet101", Bottleneck, (3, 4, 23, 3), weights, kwargs)


@documented_like(resnet34)
def resnet152(*, weights: Weights = None, **kwargs: Any) -> ResNet:
    """Make a ResNet-152: 152 layers in blocks of three convolutions.

    Example:
        >>> with torch.device("meta"):
        ...     model = torch.models.resnet152()
        >>> sum(each.numel() for each in model.parameters())
        60192808
    """
    return _resnet("resnet152", Bottleneck, (3, 8, 36, 3), weights, kwargs)


@documented_like(resnet34)
def resnext50_32x4d(*, weights: Weights = None, **kwargs: Any) -> ResNet:
    """Make a ResNeXt-50 whose middle convolutions have 32 groups of 4 channels.

    Example:
        >>> with torch.device("meta"):
        ...     model = torch.models.resnext50_32x4d()
        >>> sum(each.numel() for each in model.parameters())
        25028904
    """
    return _resnet("resnext50_32x4d", Bottleneck, (3, 4, 6, 3), weights, {"groups": 32, "width_per_group": 4} | kwargs)


@documented_like(resnet34)
def resnext101_32x8d(*, weights: Weights = None, **kwargs: Any) -> ResNet:
    """Make a ResNeXt-101 whose middle convolutions have 32 groups of 8 channels.

    Example:
        >>> with torch.device("meta"):
        ...     model = torch.models.resnext101_32x8d()
        >>> sum(each.numel() for each in model.parameters())
        88791336
    """
    return _resnet(
        "resnext101_32x8d", Bottleneck, (3, 4, 23, 3), weights, {"groups": 32, "width_per_group": 8} | kwargs
    )


@documented_like(resnet34)
def resnext101_64x4d(*, weights: Weights = None, **kwargs: Any) -> ResNet:
    """Make a ResNeXt-101 whose middle convolutions have 64 groups of 4 channels.

    Example:
        >>> with torch.device("meta"):
        ...     model = torch.models.resnext101_64x4d()
        >>> sum(each.numel() for each in model.parameters())
        83455272
    """
    return _resnet(
        "resnext101_64x4d", Bottleneck, (3, 4, 23, 3), weights, {"groups": 64, "width_per_group": 4} | kwargs
    )


@documented_like(resnet34)
def wide_resnet50_2(*, weights: Weights = None, **kwargs: Any) -> ResNet:
    """Make a ResNet-50 with twice as many channels inside the blocks.

    Example:
        >>> with torch.device("meta"):
        ...     model = torch.models.wide_resnet50_2()
        >>> sum(each.numel() for each in model.parameters())
        68883240
    """
    return _resnet("wide_resnet50_2", Bottleneck, (3, 4, 6, 3), weights, {"width_per_group": 128} | kwargs)


@documented_like(resnet34)
def wide_resnet101_2(*, weights: Weights = None, **kwargs: Any) -> ResNet:
    """Make a ResNet-101 with twice as many channels inside the blocks.

    Example:
        >>> with torch.device("meta"):
        ...     model = torch.models.wide_resnet101_2()
        >>> sum(each.numel() for each in model.parameters())
        126886696
    """
    return _resnet("wide_resnet101_2", Bottleneck, (3, 4, 23, 3), weights, {"width_per_group": 128} | kwargs)
