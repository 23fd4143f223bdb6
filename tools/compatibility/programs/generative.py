"""Networks that make pictures: a variational autoencoder, an adversarial pair, super resolution, a style network."""

import torch
from torch import nn
from torch.nn import functional as F


def blobs(count, size, seed=0):
    """Pictures with one bright spot each."""
    generator = torch.Generator().manual_seed(seed)
    places = torch.rand(count, 2, 1, 1, generator=generator)
    grid = torch.linspace(0, 1, size)
    distance = (grid[None, :, None] - places[:, 0]) ** 2 + (grid[None, None] - places[:, 1]) ** 2
    return torch.exp(-distance * 20)[:, None]


def variational():
    images = blobs(400, 10).flatten(1)
    encoder, mean, spread = nn.Linear(100, 32), nn.Linear(32, 4), nn.Linear(32, 4)
    decoder = nn.Sequential(nn.Linear(4, 32), nn.ReLU(), nn.Linear(32, 100), nn.Sigmoid())
    parts = nn.ModuleList([encoder, mean, spread, decoder])
    optimizer = torch.optim.Adam(parts.parameters(), lr=1e-3)
    losses = []
    for _ in range(50):
        x = images[torch.randint(0, 400, (32,))]
        hidden = F.relu(encoder(x))
        mu, logvar = mean(hidden), spread(hidden)
        std = torch.exp(0.5 * logvar)
        again = decoder(mu + torch.randn_like(std) * std)
        loss = F.binary_cross_entropy(again, x, reduction="sum")
        loss = loss - 0.5 * torch.sum(1 + logvar - mu.pow(2) - logvar.exp())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return {"losses": losses, "sample": decoder(torch.randn(2, 4))}


def adversarial():
    generator = nn.Sequential(
        nn.ConvTranspose2d(8, 16, 4, 1, 0, bias=False),
        nn.BatchNorm2d(16),
        nn.ReLU(True),
        nn.ConvTranspose2d(16, 8, 4, 2, 1, bias=False),
        nn.BatchNorm2d(8),
        nn.ReLU(True),
        nn.ConvTranspose2d(8, 1, 4, 2, 1, bias=False),
        nn.Tanh(),
    )
    judge = nn.Sequential(
        nn.Conv2d(1, 8, 4, 2, 1, bias=False),
        nn.LeakyReLU(0.2, inplace=True),
        nn.Conv2d(8, 16, 4, 2, 1, bias=False),
        nn.BatchNorm2d(16),
        nn.LeakyReLU(0.2, inplace=True),
        nn.Conv2d(16, 1, 4, 1, 0, bias=False),
        nn.Sigmoid(),
    )
    for each in (*generator.modules(), *judge.modules()):
        if isinstance(each, (nn.Conv2d, nn.ConvTranspose2d)):
            nn.init.normal_(each.weight, 0.0, 0.02)
        elif isinstance(each, nn.BatchNorm2d):
            nn.init.normal_(each.weight, 1.0, 0.02)
    images, criterion, losses = blobs(256, 16) * 2 - 1, nn.BCELoss(), []
    first = torch.optim.Adam(judge.parameters(), lr=2e-4, betas=(0.5, 0.999))
    second = torch.optim.Adam(generator.parameters(), lr=2e-4, betas=(0.5, 0.999))
    for _ in range(50):
        judge.zero_grad()
        real = judge(images[torch.randint(0, 256, (16,))]).view(-1)
        fake = generator(torch.randn(16, 8, 1, 1))
        false = judge(fake.detach()).view(-1)
        error = criterion(real, torch.ones(16)) + criterion(false, torch.zeros(16))
        error.backward()
        first.step()
        generator.zero_grad()
        wish = criterion(judge(fake).view(-1), torch.ones(16))
        wish.backward()
        second.step()
        losses.append((error.item(), wish.item()))
    return {"losses": losses}


def super_resolution():
    network = nn.Sequential(
        nn.Conv2d(1, 16, 5, padding=2),
        nn.ReLU(),
        nn.Conv2d(16, 8, 3, padding=1),
        nn.ReLU(),
        nn.Conv2d(8, 4, 3, padding=1),
        nn.PixelShuffle(2),
    )
    for each in network:
        if isinstance(each, nn.Conv2d):
            nn.init.orthogonal_(each.weight, nn.init.calculate_gain("relu"))
    optimizer, images, losses = torch.optim.Adam(network.parameters(), lr=1e-3), blobs(200, 16), []
    for _ in range(50):
        sharp = images[torch.randint(0, 200, (8,))]
        coarse = F.interpolate(sharp, scale_factor=0.5, mode="bicubic", align_corners=False)
        loss = F.mse_loss(network(coarse), sharp)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return {"losses": losses}


def style():
    """A network of residual blocks with instance normalization, to match features and their products."""
    network = nn.Sequential(
        nn.ReflectionPad2d(2),
        nn.Conv2d(1, 8, 5),
        nn.InstanceNorm2d(8, affine=True),
        nn.ReLU(),
        nn.Conv2d(8, 8, 3, 2, 1),
        nn.Upsample(scale_factor=2, mode="nearest"),
        nn.Conv2d(8, 1, 3, padding=1),
    )
    features = nn.Sequential(nn.Conv2d(1, 8, 3), nn.ReLU(), nn.AvgPool2d(2), nn.Conv2d(8, 8, 3)).requires_grad_(False)

    def products(x):
        flat = features(x).flatten(2)
        return flat.bmm(flat.transpose(1, 2)) / flat.size(2)

    optimizer, images, losses = torch.optim.Adam(network.parameters(), lr=1e-3), blobs(100, 16), []
    wanted = products(torch.rand(1, 1, 16, 16)).detach()
    for _ in range(50):
        x = images[torch.randint(0, 100, (4,))]
        y = network(x)
        loss = F.mse_loss(features(y), features(x)) + 10 * F.mse_loss(products(y), wanted.expand(4, -1, -1))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return {"losses": losses}


CASES = {
    "variational autoencoder": variational,
    "adversarial networks": adversarial,
    "super resolution": super_resolution,
    "style transfer": style,
}
