"""Convolutional networks: classification, segmentation, generation."""

from __future__ import annotations

from typing import Any

from .alike import Run, descend, same_training, train


@same_training
def test_lenet(T: Any) -> Run:
    """SGD with Nesterov's momentum and a stepped rate."""
    nn = T.nn
    model = nn.Sequential(
        nn.Conv2d(1, 6, 5, padding=2),
        nn.Tanh(),
        nn.AvgPool2d(2),
        nn.Conv2d(6, 16, 5),
        nn.Tanh(),
        nn.AvgPool2d(2),
        nn.Flatten(),
        nn.Linear(64, 20),
        nn.Tanh(),
        nn.Linear(20, 10),
    )
    optimizer = T.optim.SGD(model.parameters(), lr=0.05, momentum=0.9, nesterov=True)
    scheduler = T.optim.lr_scheduler.StepLR(optimizer, step_size=5, gamma=0.5)
    criterion = nn.CrossEntropyLoss()
    step = descend(T, model, lambda x, y: criterion(model(x), y), optimizer, scheduler)
    return train(T, model, step, (T.randn(16, 1, 16, 16), T.randint(10, (16,))), size=4)


@same_training
def test_convnet_of_the_notes(T: Any) -> Run:
    """Two convolutions with pooling, two linear layers, ReLU also at the end, as in users' notes."""
    nn, F = T.nn, T.nn.functional

    class MNISTConvNet(nn.Module):  # type: ignore[name-defined, misc]
        def __init__(self) -> None:
            super().__init__()
            self.conv1 = nn.Conv2d(1, 10, 5)
            self.pool1 = nn.MaxPool2d(2, 2)
            self.conv2 = nn.Conv2d(10, 20, 5)
            self.pool2 = nn.MaxPool2d(2, 2)
            self.fc1 = nn.Linear(320, 50)
            self.fc2 = nn.Linear(50, 10)

        def forward(self, input: Any) -> Any:
            x = self.pool1(F.relu(self.conv1(input)))
            x = self.pool2(F.relu(self.conv2(x)))
            x = x.view(x.size(0), -1)
            return F.relu(self.fc2(F.relu(self.fc1(x))))

    model = MNISTConvNet()
    optimizer = T.optim.SGD(model.parameters(), lr=0.05)
    criterion = nn.CrossEntropyLoss()
    step = descend(T, model, lambda x, y: criterion(model(x), y), optimizer)
    return train(T, model, step, (T.randn(12, 1, 28, 28), T.randint(10, (12,))), size=3)


@same_training
def test_vgg(T: Any) -> Run:
    """Blocks of 3x3 convolutions made in a loop; dropout in the classifier; several milestones."""
    nn = T.nn
    layers: list[Any] = []
    channels = 3
    for width in (8, 8, "pool", 16, 16, "pool"):
        if width == "pool":
            layers.append(nn.MaxPool2d(kernel_size=2, stride=2))
        else:
            layers += [nn.Conv2d(channels, width, kernel_size=3, padding=1), nn.ReLU(inplace=True)]
            channels = width
    model = nn.Sequential(
        nn.Sequential(*layers),
        nn.AdaptiveAvgPool2d(2),
        nn.Flatten(),
        nn.Linear(64, 24),
        nn.ReLU(True),
        nn.Dropout(),
        nn.Linear(24, 5),
    )
    for module in model.modules():
        if isinstance(module, nn.Conv2d):
            nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")
            nn.init.zeros_(module.bias)
        elif isinstance(module, nn.Linear):
            nn.init.normal_(module.weight, 0, 0.05)
    optimizer = T.optim.SGD(model.parameters(), lr=0.02, momentum=0.9, weight_decay=5e-4)
    scheduler = T.optim.lr_scheduler.MultiStepLR(optimizer, milestones=[8, 15])
    criterion = nn.CrossEntropyLoss()
    step = descend(T, model, lambda x, y: criterion(model(x), y), optimizer, scheduler)
    return train(T, model, step, (T.randn(16, 3, 8, 8), T.randint(5, (16,))), size=4)


def resnet_18(T: Any, width: int, classes: int) -> Any:
    """ResNet-18 with `width` channels in its first stage, where the paper has 64."""
    nn = T.nn

    class BasicBlock(nn.Module):  # type: ignore[name-defined, misc]
        def __init__(self, before: int, after: int, stride: int) -> None:
            super().__init__()
            self.conv1 = nn.Conv2d(before, after, 3, stride=stride, padding=1, bias=False)
            self.bn1 = nn.BatchNorm2d(after)
            self.relu = nn.ReLU(inplace=True)
            self.conv2 = nn.Conv2d(after, after, 3, padding=1, bias=False)
            self.bn2 = nn.BatchNorm2d(after)
            self.downsample = None
            if stride != 1 or before != after:
                self.downsample = nn.Sequential(
                    nn.Conv2d(before, after, 1, stride=stride, bias=False), nn.BatchNorm2d(after)
                )

        def forward(self, x: Any) -> Any:
            out = self.bn2(self.conv2(self.relu(self.bn1(self.conv1(x)))))
            out += x if self.downsample is None else self.downsample(x)
            return self.relu(out)

    class ResNet(nn.Module):  # type: ignore[name-defined, misc]
        def __init__(self) -> None:
            super().__init__()
            self.conv1 = nn.Conv2d(3, width, 7, stride=2, padding=3, bias=False)
            self.bn1 = nn.BatchNorm2d(width)
            self.relu = nn.ReLU(inplace=True)
            self.maxpool = nn.MaxPool2d(3, stride=2, padding=1)
            before = width
            for stage in range(4):
                after, stride = width * 2**stage, 1 if stage == 0 else 2
                blocks = [BasicBlock(before, after, stride), BasicBlock(after, after, 1)]
                setattr(self, f"layer{stage + 1}", nn.Sequential(*blocks))
                before = after
            self.avgpool = nn.AdaptiveAvgPool2d((1, 1))
            self.fc = nn.Linear(before, classes)
            for module in self.modules():
                if isinstance(module, nn.Conv2d):
                    nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")

        def forward(self, x: Any) -> Any:
            x = self.maxpool(self.relu(self.bn1(self.conv1(x))))
            x = self.layer4(self.layer3(self.layer2(self.layer1(x))))
            return self.fc(T.flatten(self.avgpool(x), 1))

    return ResNet()


@same_training
def test_resnet_18(T: Any) -> Run:
    """All of its layers, in fewer channels."""
    model = resnet_18(T, width=8, classes=6)
    optimizer = T.optim.SGD(model.parameters(), lr=0.01, momentum=0.9, weight_decay=1e-4)
    criterion = T.nn.CrossEntropyLoss()
    step = descend(T, model, lambda x, y: criterion(model(x), y), optimizer)
    return train(T, model, step, (T.randn(16, 3, 40, 40), T.randint(6, (16,))), size=8)


@same_training
def test_fine_tuning(T: Any) -> Run:
    """All but a new last layer is frozen; the statistics of the frozen layers still move."""
    model = resnet_18(T, width=4, classes=6)
    for parameter in model.parameters():
        parameter.requires_grad = False
    model.fc = T.nn.Linear(32, 3)
    optimizer = T.optim.SGD(model.fc.parameters(), lr=1e-2, momentum=0.9)
    criterion = T.nn.CrossEntropyLoss()
    step = descend(T, model, lambda x, y: criterion(model(x), y), optimizer)
    return train(T, model, step, (T.randn(12, 3, 24, 24), T.randint(3, (12,))), size=4)


@same_training
def test_resnext(T: Any) -> Run:
    """Grouped convolutions with squeeze-and-excitation and channel dropout; AdamW."""
    nn = T.nn

    class Block(nn.Module):  # type: ignore[name-defined, misc]
        def __init__(self, channels: int, groups: int) -> None:
            super().__init__()
            self.body = nn.Sequential(
                nn.Conv2d(channels, channels, 1, bias=False),
                nn.BatchNorm2d(channels),
                nn.ReLU(),
                nn.Conv2d(channels, channels, 3, padding=1, groups=groups, bias=False),
                nn.BatchNorm2d(channels),
                nn.ReLU(),
                nn.Conv2d(channels, channels, 1),
            )
            self.excite = nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Conv2d(channels, channels, 1), nn.Hardsigmoid())

        def forward(self, x: Any) -> Any:
            body = self.body(x)
            return (x + body * self.excite(body)).relu()

    model = nn.Sequential(
        nn.Conv2d(3, 12, 3, stride=2),
        Block(12, groups=4),
        nn.Dropout2d(0.2),
        Block(12, groups=3),
        nn.AdaptiveMaxPool2d(1),
        nn.Flatten(),
        nn.Linear(12, 4),
    )
    optimizer = T.optim.AdamW(model.parameters(), lr=3e-3, weight_decay=0.1)
    scheduler = T.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=1e-2, total_steps=24)
    criterion = nn.MultiMarginLoss()
    step = descend(T, model, lambda x, y: criterion(model(x), y), optimizer, scheduler)
    return train(T, model, step, (T.randn(16, 3, 11, 11), T.randint(4, (16,))), size=4)


@same_training
def test_mobilenet(T: Any) -> Run:
    """Depthwise-separable convolutions with inverted residuals; a cyclic rate."""
    nn = T.nn

    class InvertedResidual(nn.Module):  # type: ignore[name-defined, misc]
        def __init__(self, channels: int, expand: int) -> None:
            super().__init__()
            wide = channels * expand
            self.layers = nn.Sequential(
                nn.Conv2d(channels, wide, 1, bias=False),
                nn.BatchNorm2d(wide),
                nn.ReLU6(),
                nn.Conv2d(wide, wide, 3, padding=1, groups=wide, bias=False),
                nn.BatchNorm2d(wide),
                nn.ReLU6(),
                nn.Conv2d(wide, channels, 1, bias=False),
                nn.BatchNorm2d(channels),
            )

        def forward(self, x: Any) -> Any:
            return x + self.layers(x)

    model = nn.Sequential(
        nn.Conv2d(3, 8, 3, stride=2, padding=1),
        nn.Hardswish(),
        InvertedResidual(8, 3),
        InvertedResidual(8, 2),
        nn.AvgPool2d(4),
        nn.Flatten(),
        nn.Linear(8, 5),
        nn.LogSoftmax(dim=1),
    )
    optimizer = T.optim.RMSprop(model.parameters(), lr=1e-3, alpha=0.9, momentum=0.9)
    scheduler = T.optim.lr_scheduler.CyclicLR(optimizer, base_lr=1e-3, max_lr=5e-3, step_size_up=4)
    criterion = nn.NLLLoss()
    step = descend(T, model, lambda x, y: criterion(model(x), y), optimizer, scheduler)
    return train(T, model, step, (T.randn(16, 3, 8, 8), T.randint(5, (16,))), size=4)


@same_training
def test_unet(T: Any) -> Run:
    """Down by pooling, up by transposed convolutions and by interpolation, with connections across."""
    nn, F = T.nn, T.nn.functional

    def double(before: int, after: int) -> Any:
        return nn.Sequential(
            nn.Conv2d(before, after, 3, padding=1, padding_mode="reflect"),
            nn.GroupNorm(2, after),
            nn.ReLU(inplace=True),
            nn.Conv2d(after, after, 3, padding=1),
            nn.LeakyReLU(inplace=True),
        )

    class UNet(nn.Module):  # type: ignore[name-defined, misc]
        def __init__(self) -> None:
            super().__init__()
            self.down1, self.down2, self.bottom = double(1, 4), double(4, 8), double(8, 16)
            self.up2 = nn.ConvTranspose2d(16, 8, 2, stride=2)
            self.merge2 = double(16, 8)
            self.up1 = nn.Sequential(nn.Upsample(scale_factor=2, mode="bilinear"), nn.Conv2d(8, 4, 1))
            self.merge1 = double(8, 4)
            self.head = nn.Conv2d(4, 3, 1)

        def forward(self, x: Any) -> Any:
            first = self.down1(x)
            second = self.down2(F.max_pool2d(first, 2))
            bottom = self.bottom(F.max_pool2d(second, 2))
            second = self.merge2(T.cat([second, self.up2(bottom)], dim=1))
            return self.head(self.merge1(T.cat([first, self.up1(second)], dim=1)))

    model = UNet()
    optimizer = T.optim.Adam(model.parameters(), lr=5e-3, amsgrad=True)
    weight = T.tensor([1.0, 2.0, 0.5])
    step = descend(T, model, lambda x, y: F.cross_entropy(model(x), y, weight=weight, ignore_index=2), optimizer)
    return train(T, model, step, (T.randn(8, 1, 12, 12), T.randint(3, (8, 12, 12))), size=2)


@same_training
def test_dcgan(T: Any) -> Run:
    """A generator and a discriminator in turns, each with its optimizer; weights set by `apply`."""
    nn = T.nn
    generator = nn.Sequential(
        nn.ConvTranspose2d(6, 12, 4, 1, 0, bias=False),
        nn.BatchNorm2d(12),
        nn.ReLU(True),
        nn.ConvTranspose2d(12, 6, 4, 2, 1, bias=False),
        nn.BatchNorm2d(6),
        nn.ReLU(True),
        nn.ConvTranspose2d(6, 1, 4, 2, 1, bias=False),
        nn.Tanh(),
    )
    discriminator = nn.Sequential(
        nn.Conv2d(1, 6, 4, 2, 1, bias=False),
        nn.LeakyReLU(0.2, inplace=True),
        nn.Conv2d(6, 12, 4, 2, 1, bias=False),
        nn.BatchNorm2d(12),
        nn.LeakyReLU(0.2, inplace=True),
        nn.Conv2d(12, 1, 4, 1, 0, bias=False),
        nn.Sigmoid(),
    )

    def initialise(module: Any) -> None:
        name = type(module).__name__
        if "Conv" in name:
            nn.init.normal_(module.weight.data, 0.0, 0.02)
        elif "BatchNorm" in name:
            nn.init.normal_(module.weight.data, 1.0, 0.02)
            nn.init.constant_(module.bias.data, 0)

    model = nn.ModuleDict({"generator": generator, "discriminator": discriminator})
    model.apply(initialise)
    criterion = nn.BCELoss()
    optimizers = [T.optim.Adam(each.parameters(), lr=2e-4, betas=(0.5, 0.999)) for each in (generator, discriminator)]

    def step(real: Any) -> float:
        fake = generator(T.randn(len(real), 6, 1, 1))
        ones, zeros = T.ones(len(real)), T.zeros(len(real))
        discriminator.zero_grad()
        truth = criterion(discriminator(real).view(-1), ones) + criterion(discriminator(fake.detach()).view(-1), zeros)
        truth.backward()
        optimizers[1].step()
        generator.zero_grad()
        deceit = criterion(discriminator(fake).view(-1), ones)
        deceit.backward()
        optimizers[0].step()
        return float(truth.detach()) + 10 * float(deceit.detach())

    return train(T, model, step, (T.rand(16, 1, 16, 16) * 2 - 1,), size=4)


@same_training
def test_mixed_normalisations(T: Any) -> Run:
    """Batch, group, instance, layer, RMS and local response normalisation in one network."""
    nn = T.nn
    model = nn.Sequential(
        nn.Conv2d(2, 8, 3, padding=1, padding_mode="circular"),
        nn.BatchNorm2d(8, momentum=None),
        nn.CELU(),
        nn.Conv2d(8, 8, 3, dilation=2, padding="same"),
        nn.GroupNorm(4, 8),
        nn.Softsign(),
        nn.Conv2d(8, 4, 3),
        nn.InstanceNorm2d(4, affine=True, track_running_stats=True),
        nn.LocalResponseNorm(3),
        nn.LPPool2d(2, 2),
        nn.Flatten(),
        nn.LayerNorm(36),
        nn.Linear(36, 10),
        nn.RMSNorm(10),
        nn.Linear(10, 2),
    )
    optimizer = T.optim.ASGD(model.parameters(), lr=0.05)
    criterion = nn.SoftMarginLoss()
    step = descend(T, model, lambda x, y: criterion(model(x), y), optimizer)
    return train(T, model, step, (T.randn(12, 2, 8, 8), T.randint(2, (12, 2)) * 2 - 1), size=4)


@same_training
def test_super_resolution(T: Any) -> Run:
    """Pixel shuffle; Rprop, which only looks at signs."""
    nn = T.nn
    model = nn.Sequential(
        nn.ReplicationPad2d(1), nn.Conv2d(1, 6, 3), nn.Tanh(), nn.Conv2d(6, 4, 3, padding=1), nn.PixelShuffle(2)
    )
    optimizer = T.optim.Rprop(model.parameters(), lr=1e-3)
    criterion = nn.L1Loss()
    step = descend(T, model, lambda small, large: criterion(model(small), large), optimizer)
    return train(T, model, step, (T.rand(4, 1, 6, 6), T.rand(4, 1, 12, 12)), size=4)


@same_training
def test_volumes(T: Any) -> Run:
    """Convolutions and pooling in three dimensions and in one."""
    nn = T.nn
    model = nn.Sequential(
        nn.Conv3d(1, 4, 3, padding=1),
        nn.BatchNorm3d(4),
        nn.ReLU(),
        nn.MaxPool3d(2),
        nn.Dropout3d(0.25),
        nn.Flatten(2),
        nn.Conv1d(4, 6, 3, stride=2),
        nn.SiLU(),
        nn.AdaptiveAvgPool1d(3),
        nn.Flatten(),
        nn.Linear(18, 3),
    )
    optimizer = T.optim.AdamW(model.parameters(), lr=1e-2)
    scheduler = T.optim.lr_scheduler.PolynomialLR(optimizer, total_iters=20, power=2)
    criterion = nn.BCEWithLogitsLoss(pos_weight=T.tensor([1.0, 2.0, 3.0]))
    step = descend(T, model, lambda x, y: criterion(model(x), y), optimizer, scheduler)
    return train(T, model, step, (T.randn(12, 1, 6, 6, 6), T.rand(12, 3).round()), size=4)
