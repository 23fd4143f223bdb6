"""The networks of the benchmark, each written once: a function of the module that plays `torch` builds it."""

from __future__ import annotations

from typing import Any


def mlp(torch: Any) -> Any:
    """784-256-10."""
    nn = torch.nn
    return nn.Sequential(nn.Linear(784, 256), nn.ReLU(), nn.Linear(256, 10))


def convnet(torch: Any) -> Any:
    """The classic convnet for images of 28x28: twice convolution and pooling, then two linear layers."""
    nn, functional = torch.nn, torch.nn.functional
    Module: Any = nn.Module

    class ConvNet(Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.conv1 = nn.Conv2d(1, 10, 5)
            self.pool1 = nn.MaxPool2d(2, 2)
            self.conv2 = nn.Conv2d(10, 20, 5)
            self.pool2 = nn.MaxPool2d(2, 2)
            self.fc1 = nn.Linear(320, 50)
            self.fc2 = nn.Linear(50, 10)

        def forward(self, images: Any) -> Any:
            x = self.pool1(functional.relu(self.conv1(images)))
            x = self.pool2(functional.relu(self.conv2(x)))
            x = x.view(x.size(0), -1)
            x = functional.relu(self.fc1(x))
            return functional.relu(self.fc2(x))

    return ConvNet()


def linear_rnn(torch: Any) -> Any:
    """A recurrence of two linear layers, which is called once for each time step."""
    nn = torch.nn
    Module: Any = nn.Module

    class RNN(Module):  # type: ignore[misc]
        def __init__(self, data_size: int, hidden_size: int, output_size: int) -> None:
            super().__init__()
            self.i2h = nn.Linear(data_size + hidden_size, hidden_size)
            self.h2o = nn.Linear(hidden_size, output_size)

        def forward(self, data: Any, last_hidden: Any) -> Any:
            hidden = self.i2h(torch.cat((data, last_hidden), 1))
            return hidden, self.h2o(hidden)

    return RNN(50, 20, 10)


def resnet18(torch: Any) -> Any:
    """ResNet-18 for ten classes: the one that Flambeau has, and for PyTorch the same one written out.

    Both make and initialise their layers in torchvision's order, so that the same seed gives the same weights.
    """
    if torch.__name__ == "flambeau":
        import flambeau.models

        return flambeau.models.resnet18(num_classes=10)
    nn = torch.nn
    Module: Any = nn.Module

    class Block(Module):  # type: ignore[misc]
        def __init__(self, before: int, planes: int, stride: int) -> None:
            super().__init__()
            self.downsample = None
            if stride != 1 or before != planes:  # made before the others
                self.downsample = nn.Sequential(
                    nn.Conv2d(before, planes, 1, stride, bias=False), nn.BatchNorm2d(planes)
                )
            self.conv1 = nn.Conv2d(before, planes, 3, stride, padding=1, bias=False)
            self.bn1 = nn.BatchNorm2d(planes)
            self.relu = nn.ReLU(inplace=True)
            self.conv2 = nn.Conv2d(planes, planes, 3, padding=1, bias=False)
            self.bn2 = nn.BatchNorm2d(planes)

        def forward(self, x: Any) -> Any:
            out = self.relu(self.bn1(self.conv1(x)))
            out = self.bn2(self.conv2(out))
            out += x if self.downsample is None else self.downsample(x)
            return self.relu(out)

    stem = [nn.Conv2d(3, 64, 7, 2, padding=3, bias=False), nn.BatchNorm2d(64), nn.ReLU(inplace=True)]
    groups = [
        nn.Sequential(Block(before, planes, stride), Block(planes, planes, 1))
        for before, planes, stride in ((64, 64, 1), (64, 128, 2), (128, 256, 2), (256, 512, 2))
    ]
    pool, head = nn.AdaptiveAvgPool2d((1, 1)), nn.Linear(512, 10)
    model = nn.Sequential(*stem, nn.MaxPool2d(3, 2, padding=1), *groups, pool, nn.Flatten(), head)
    initialise_resnet(nn, model)
    return model


def initialise_resnet(nn: Any, model: Any) -> None:
    """New weights for the convolutions. A block's shortcut comes after its other layers, as in torchvision."""

    def convolutions(module: Any) -> Any:
        shortcut = getattr(module, "downsample", None)
        for child in module.children():
            if child is not shortcut:
                yield from convolutions(child)
        if isinstance(module, nn.Conv2d):
            yield module
        if shortcut is not None:
            yield from convolutions(shortcut)

    for convolution in convolutions(model):
        nn.init.kaiming_normal_(convolution.weight, mode="fan_out", nonlinearity="relu")


def permuted_attention(torch: Any, qkv: Any, heads: int) -> Any:
    """Causal attention of queries, keys and values that one product gave, side by side: `permute` tells them apart."""
    batch, length, three_widths = qkv.shape
    query, key, value = qkv.view(batch, length, 3, heads, three_widths // (3 * heads)).permute(2, 0, 3, 1, 4)
    mixed = torch.nn.functional.scaled_dot_product_attention(query, key, value, is_causal=True)
    return mixed.transpose(1, 2).reshape(batch, length, three_widths // 3)


def gpt(
    torch: Any, vocabulary: int, width: int, heads: int, layers: int, tokens: int, attend: Any = permuted_attention
) -> Any:
    """A decoder of `layers` blocks with learned positions and norms before each part."""
    nn = torch.nn
    Module: Any = nn.Module

    class Block(Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.norm1 = nn.LayerNorm(width)
            self.qkv = nn.Linear(width, 3 * width)
            self.projection = nn.Linear(width, width)
            self.norm2 = nn.LayerNorm(width)
            self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

        def forward(self, x: Any) -> Any:
            x = x + self.projection(attend(torch, self.qkv(self.norm1(x)), heads))
            return x + self.mlp(self.norm2(x))

    class GPT(Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.embedding = nn.Embedding(vocabulary, width)
            self.position = nn.Embedding(tokens, width)
            self.blocks = nn.Sequential(*[Block() for _ in range(layers)])
            self.norm = nn.LayerNorm(width)
            self.head = nn.Linear(width, vocabulary, bias=False)

        def forward(self, ids: Any) -> Any:
            x = self.embedding(ids) + self.position(torch.arange(ids.shape[1], device=ids.device))
            return self.head(self.norm(self.blocks(x)))

    return GPT()


def residual(torch: Any, bottleneck: bool, counts: tuple[int, ...]) -> Any:
    """A residual network for a thousand classes: of two convolutions in a block, or with a bottleneck of three."""
    nn = torch.nn
    Module: Any = nn.Module
    growth = 4 if bottleneck else 1

    class Block(Module):  # type: ignore[misc]
        def __init__(self, before: int, planes: int, stride: int) -> None:
            super().__init__()
            kernels = (1, 3, 1) if bottleneck else (3, 3)
            sizes = (before, planes, planes, planes * growth) if bottleneck else (before, planes, planes)
            layers = []
            for number, kernel in enumerate(kernels):
                step = stride if number == len(kernels) - 2 else 1
                layers += [
                    nn.Conv2d(sizes[number], sizes[number + 1], kernel, step, kernel // 2, bias=False),
                    nn.BatchNorm2d(sizes[number + 1]),
                    nn.ReLU(inplace=True),
                ]
            self.body = nn.Sequential(*layers[:-1])
            self.relu = layers[-1]
            self.shortcut = nn.Sequential()
            if stride != 1 or before != planes * growth:
                self.shortcut = nn.Sequential(
                    nn.Conv2d(before, planes * growth, 1, stride, bias=False), nn.BatchNorm2d(planes * growth)
                )

        def forward(self, x: Any) -> Any:
            return self.relu(self.body(x) + self.shortcut(x))

    layers = [nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64), nn.ReLU(inplace=True), nn.MaxPool2d(3, 2, 1)]
    before = 64
    for stage, count in enumerate(counts):
        planes = 64 << stage
        for number in range(count):
            layers.append(Block(before, planes, 2 if stage and not number else 1))
            before = planes * growth
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(before, 1000))


def llama(torch: Any, vocabulary: int, width: int, hidden: int, heads: int, shared: int, layers: int) -> Any:
    """A decoder with RMS norms, rotated positions, gated layers, and keys and values shared by several heads."""
    nn, functional = torch.nn, torch.nn.functional
    Module: Any = nn.Module
    size = width // heads

    def rotated(x: Any, cosines: Any, sines: Any) -> Any:
        first, second = x.chunk(2, -1)
        return x * cosines + torch.cat((-second, first), -1) * sines

    class Block(Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.norm1, self.norm2 = nn.RMSNorm(width), nn.RMSNorm(width)
            self.query = nn.Linear(width, width, bias=False)
            self.key = nn.Linear(width, shared * size, bias=False)
            self.value = nn.Linear(width, shared * size, bias=False)
            self.projection = nn.Linear(width, width, bias=False)
            self.gate, self.up = nn.Linear(width, hidden, bias=False), nn.Linear(width, hidden, bias=False)
            self.down = nn.Linear(hidden, width, bias=False)

        def forward(self, x: Any, cosines: Any, sines: Any) -> Any:
            batch, length, _ = x.shape
            y = self.norm1(x)
            query = self.query(y).view(batch, length, heads, size).transpose(1, 2)
            key = self.key(y).view(batch, length, shared, size).transpose(1, 2)
            value = self.value(y).view(batch, length, shared, size).transpose(1, 2)
            query, key = rotated(query, cosines, sines), rotated(key, cosines, sines)
            mixed = functional.scaled_dot_product_attention(query, key, value, is_causal=True, enable_gqa=True)
            x = x + self.projection(mixed.transpose(1, 2).reshape(batch, length, width))
            y = self.norm2(x)
            return x + self.down(functional.silu(self.gate(y)) * self.up(y))

    class Llama(Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.embedding = nn.Embedding(vocabulary, width)
            self.blocks = nn.ModuleList([Block() for _ in range(layers)])
            self.norm = nn.RMSNorm(width)
            self.head = nn.Linear(width, vocabulary, bias=False)

        def forward(self, ids: Any) -> Any:
            x = self.embedding(ids)
            steps = torch.arange(0, size, 2, device=ids.device).float() / size
            angles = torch.outer(torch.arange(ids.shape[1], device=ids.device).float(), 10000.0**-steps)
            angles = torch.cat((angles, angles), -1)
            cosines, sines = angles.cos().to(x.dtype), angles.sin().to(x.dtype)
            for block in self.blocks:
                x = block(x, cosines, sines)
            return self.head(self.norm(x))

    return Llama()
