"""A small convolutional network for 28x28 digits: the one of PyTorch's introductory examples."""

from __future__ import annotations

from flambeau import Tensor, nn
from flambeau.nn import functional as F


class ConvNet(nn.Module):
    """Two convolutions with max pooling, then two linear layers; 21,840 parameters."""

    def __init__(self) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(1, 10, kernel_size=5)
        self.conv2 = nn.Conv2d(10, 20, kernel_size=5)
        self.dropout = nn.Dropout(0.2)
        self.fc1 = nn.Linear(320, 50)
        self.fc2 = nn.Linear(50, 10)

    def forward(self, images: Tensor) -> Tensor:
        """Scores of the ten classes for images of shape (batch, 1, 28, 28)."""
        x = F.relu(F.max_pool2d(self.conv1(images), 2))  # (batch, 10, 12, 12)
        x = F.relu(F.max_pool2d(self.conv2(x), 2))  # (batch, 20, 4, 4)
        x = self.dropout(F.relu(self.fc1(x.flatten(1))))
        return self.fc2(x)
