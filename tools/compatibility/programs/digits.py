"""Networks for pictures of digits: a convolutional one, a recurrent one over rows, and one trained layer by layer."""

import torch
from torch import nn
from torch.nn import functional as F


def pictures(count=800):
    """Noisy pictures, 12 by 12, with a bar whose place and direction are the label."""
    generator = torch.Generator().manual_seed(5)
    labels = torch.randint(0, 10, (count,), generator=generator)
    images = 0.3 * torch.randn(count, 1, 12, 12, generator=generator)
    for number, label in enumerate(labels.tolist()):
        if label < 5:
            images[number, 0, 1 + 2 * label] += 1
        else:
            images[number, 0, :, 1 + 2 * (label - 5)] += 1
    return images, labels


class Convolutional(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1, self.conv2 = nn.Conv2d(1, 8, 3), nn.Conv2d(8, 16, 3)
        self.dropout1, self.dropout2 = nn.Dropout(0.25), nn.Dropout(0.5)
        self.fc1, self.fc2 = nn.Linear(16 * 16, 32), nn.Linear(32, 10)

    def forward(self, x):
        x = F.relu(self.conv2(F.relu(self.conv1(x))))
        x = torch.flatten(self.dropout1(F.max_pool2d(x, 2)), 1)
        return F.log_softmax(self.fc2(self.dropout2(F.relu(self.fc1(x)))), dim=1)


class Recurrent(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn = nn.LSTM(12, 24, batch_first=True)
        self.norm, self.head = nn.BatchNorm1d(24), nn.Linear(24, 10)

    def forward(self, x):
        out, _ = self.rnn(x.squeeze(1))
        return F.log_softmax(self.head(self.norm(out[:, -1])), dim=1)


def trained(model, optimizer, scheduler=None):
    images, labels = pictures()
    data = torch.utils.data.TensorDataset(images, labels)
    losses = []
    for x, y in torch.utils.data.DataLoader(data, batch_size=16, shuffle=True):
        optimizer.zero_grad()
        loss = F.nll_loss(model(x), y)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
        if scheduler is not None:
            scheduler.step()
    model.eval()
    with torch.no_grad():
        return {"losses": losses, "right": model(images[:100]).argmax(1).eq(labels[:100]).sum().item()}


def convolutional():
    model = Convolutional()
    optimizer = torch.optim.Adadelta(model.parameters(), lr=1.0)
    return trained(model, optimizer, torch.optim.lr_scheduler.StepLR(optimizer, 10, gamma=0.7))


def recurrent():
    model = Recurrent()
    return trained(model, torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, nesterov=True))


def forward_forward():
    """Each layer learns by itself to tell right labels from wrong ones."""
    images, labels = pictures(200)
    flat = images.flatten(1)

    def labelled(labels):
        return torch.cat([flat, F.one_hot(labels, 10).float()], 1)

    good, bad = labelled(labels), labelled(labels[torch.randperm(200)])
    losses = []
    for layer in (nn.Linear(154, 32), nn.Linear(32, 32)):
        optimizer = torch.optim.Adam(layer.parameters(), lr=0.03)

        def through(x, layer=layer):
            return torch.relu(layer(x / (x.norm(2, 1, keepdim=True) + 1e-4)))

        for _ in range(25):
            energies = [through(x).pow(2).mean(1) for x in (good, bad)]
            loss = torch.log(1 + torch.exp(torch.cat([2 - energies[0], energies[1] - 2]))).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        good, bad = through(good).detach(), through(bad).detach()
    return {"losses": losses}


def siamese():
    """Whether two pictures have the same label."""
    images, labels = pictures(320)
    body = nn.Sequential(nn.Conv2d(1, 8, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(200, 16))
    head = nn.Sequential(nn.Linear(32, 16), nn.ReLU(inplace=True), nn.Linear(16, 1), nn.Sigmoid())
    optimizer = torch.optim.Adam([*body.parameters(), *head.parameters()], lr=1e-3)
    losses = []
    for _ in range(50):
        pick = torch.randint(0, 320, (2, 16))
        same = (labels[pick[0]] == labels[pick[1]]).float()
        out = head(torch.cat([body(images[pick[0]]), body(images[pick[1]])], 1)).squeeze(1)
        loss = nn.BCELoss()(out, same)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return {"losses": losses}


CASES = {
    "convolutional network": convolutional,
    "recurrent network": recurrent,
    "forward-forward": forward_forward,
    "siamese network": siamese,
}
