"""A training run on the terminal: how far it is, what its numbers are, and how they have moved.

with Dashboard(epochs=5) as board:
    for _ in board.epochs():
        for images, labels in board.steps(loader):
            ...
            board.log(loss=loss, accuracy=accuracy)
        board.log("test", loss=test_loss)
"""

from .board import Dashboard

__all__ = ["Dashboard"]
