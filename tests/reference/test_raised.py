"""What docstrings of classes say of errors is true: a wrong use of each class raises those errors, and no class that
says so lacks its wrong use here.
"""

from __future__ import annotations

import builtins
import inspect
import re
from typing import Any

import pytest

import flambeau as torch
from flambeau import nn
from flambeau.optim import lr_scheduler
from flambeau.utils import data

M = torch.ones(2, 3)
ADAM = torch.optim.Adam([M])

WRONG: dict[Any, tuple[str, ...]] = {
    nn.Linear: ("f(4, 5)(M)",),
    nn.Bilinear: ("f(0, 1, 1)",),
    nn.Embedding: ("f(3, 4)(torch.tensor([3]))",),
    nn.EmbeddingBag: ("f(3, 4)(torch.tensor([[1]]), torch.tensor([0]))",),
    nn.LayerNorm: ("f(4)(M)",),
    nn.RMSNorm: ("f(4)(M)",),
    nn.CrossEntropyLoss: ("f()(M, torch.tensor([0, 9]))", "f(reduction='most')(M, torch.tensor([0, 1]))"),
    nn.NLLLoss: ("f()(M, torch.tensor([0, 9]))", "f()(M, torch.tensor([0]))"),
    nn.BCELoss: ("f()(M * 2, M)", "f()(M, M[:1])"),
    nn.BCEWithLogitsLoss: ("f()(M, M[:1])",),
    nn.MSELoss: ("f()(M, torch.ones(5))", "f(reduction='most')(M, M)"),
    nn.L1Loss: ("f()(M, torch.ones(5))", "f(reduction='most')(M, M)"),
    nn.KLDivLoss: ("f(reduction='most')(M, M)",),
    nn.MaxPool1d: ("f(7)(M)",),
    nn.AvgPool1d: ("f(7)(M)",),
    nn.PixelShuffle: ("f(2)(torch.ones(1, 3, 2, 2))",),
    nn.PixelUnshuffle: ("f(2)(torch.ones(1, 1, 3, 2))",),
    nn.Unflatten: ("f(1, (2, 2))(M)",),
    nn.ChannelShuffle: ("f(2)(torch.ones(1, 3, 2, 2))",),
    nn.Softmax: ("f(7)(M)",),
    nn.GLU: ("f()(M)",),
    nn.PReLU: ("f(7)(M)",),
    nn.RNNCell: ("f(4, 5)(M)",),
    nn.GRUCell: ("f(4, 5)(M)",),
    nn.LSTMCell: ("f(4, 5)(M)",),
    nn.TransformerEncoderLayer: ("f(5, 2)",),
    nn.TransformerDecoderLayer: ("f(5, 2)",),
    nn.Transformer: ("f(4, 2, 1, 1, 8)(torch.ones(3, 2, 4), torch.ones(3, 1, 4))",),
    nn.Sequential: ("f(3)",),
    nn.ModuleList: ("f([3])",),
    data.DataLoader: ("f([1], shuffle=True, sampler=[0])",),
    data.Subset: ("f([1], [3])[0]",),
    data.TensorDataset: ("f(M, M[:1])",),
    data.RandomSampler: ("f([1], num_samples=-1)",),
    data.WeightedRandomSampler: ("f([1.0], 0)",),
    data.ConcatDataset: ("f([])",),
    torch.optim.Optimizer: ("f([], {})",),
    torch.optim.LBFGS: ("f([{'params': [M]}, {'params': [M + 1]}])",),
    lr_scheduler.StepLR: ("f(M, 1)",),
    lr_scheduler.CosineAnnealingLR: ("f(M, 1)",),
    lr_scheduler.OneCycleLR: ("f(ADAM, 0.1)",),
    lr_scheduler.LambdaLR: ("f(ADAM, [abs, abs])",),
    lr_scheduler.SequentialLR: ("f(ADAM, [lr_scheduler.StepLR(ADAM, 1)], [1, 2, 3])",),
    lr_scheduler.ReduceLROnPlateau: ("f(ADAM, factor=2.0)",),
    **dict.fromkeys(
        (
            torch.optim.Adadelta, torch.optim.Adagrad, torch.optim.Adam, torch.optim.Adamax, torch.optim.AdamW,
            torch.optim.ASGD, torch.optim.NAdam, torch.optim.RAdam, torch.optim.RMSprop, torch.optim.Rprop,
            torch.optim.SGD, torch.optim.Adafactor,
        ),
        ("f([M], lr=-1.0)",),
    ),
}  # fmt: skip
"""For each class a wrong use for each error under `Raises:`, in its order."""


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("cls", WRONG, ids=lambda cls: cls.__name__)
def test_errors_that_docstrings_name(cls: Any) -> None:
    section = re.search(r"^Raises:\n((?: {4}.*\n?)+)", inspect.getdoc(cls) or "", re.MULTILINE)
    assert section is not None
    named = re.findall(r"^ {4}(\w+): ", section[1], re.MULTILINE)
    assert len(named) == len(WRONG[cls])
    for error, use in zip(named, WRONG[cls], strict=True):
        with pytest.raises(getattr(builtins, error)):
            eval(use, {**globals(), "f": cls})
