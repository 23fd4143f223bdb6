"""`summary`: the table of a model."""

from __future__ import annotations

from typing import Any

import pytest

import flambeau
from flambeau import nn, summary


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.features = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(inplace=True))
        self.flatten = nn.Flatten()
        self.fc = nn.Linear(8 * 4 * 4, 5)
        self.tied = self.fc
        self.unused = nn.Linear(2, 2, bias=False)
        self.scale = nn.Parameter(flambeau.ones(5), requires_grad=False)
        self.register_buffer("calls", flambeau.zeros(()))

    def forward(self, x: Any, shift: float = 0.0) -> Any:
        self.calls += 1
        return self.fc(self.flatten(self.features(x))) * self.scale + shift + flambeau.rand(())


TABLE = """\
==========================================================
Layer (type)             Output shape   Param #  Mult-adds
==========================================================
Net                      [2, 5]             (5)         --
  features (Sequential)  [2, 8, 4, 4]        --         --
    0 (Conv2d)           [2, 8, 4, 4]       224      6,912
    1 (BatchNorm2d)      [2, 8, 4, 4]        16         --
    2 (ReLU)             [2, 8, 4, 4]        --         --
  flatten (Flatten)      [2, 128]            --         --
  fc (Linear)            [2, 5]             645      1,280
  tied (Linear)          [2, 5]        (shared)         --
  unused (Linear)        --                   4         --
==========================================================
Total params: 894
Trainable params: 889
Frozen params: 5
Total mult-adds: 8,192
----------------------------------------------------------
Input size (MB): 0.00
Forward/backward pass size (MB): 0.00
Params size (MB): 0.00
Estimated total size (MB): 0.01
=========================================================="""


def test_table() -> None:
    result = summary(Net(), input_size=(2, 3, 4, 4))
    assert str(result) == repr(result) == TABLE
    assert (result.total_params, result.trainable_params, result.frozen_params) == (894, 889, 5)
    assert result.input_bytes == 2 * 3 * 4 * 4 * 4
    assert result.output_bytes == (2 * 256 + 10) * 4  # what works in place or looks at its input makes nothing
    assert result.param_bytes == 894 * 4 + (8 + 8 + 1) * 4 + 8
    assert result.total_bytes == result.input_bytes + 2 * result.output_bytes + result.param_bytes


def test_forms_of_input() -> None:
    x = flambeau.ones(2, 3, 4, 4)
    net = Net()
    forms = [
        summary(net, x),
        summary(net, (2, 3, 4, 4)),
        summary(net, [x, 1.0]),
        summary(net, {"x": x}),
        summary(net, x, shift=2.0),
        summary(net, x=x),
        summary(net, input_size=[(2, 3, 4, 4)]),
    ]
    assert {str(each) for each in forms} == {TABLE}
    ids = summary(nn.Embedding(10, 4), (2, 7), dtype=flambeau.int64)
    assert ids.rows[0].output_shape == (2, 7, 4)
    both = summary(nn.Bilinear(3, 4, 5), input_size=[(2, 3), (2, 4)])
    assert (both.rows[0].output_shape, both.mult_adds) == ((2, 5), 2 * 5 * 12)
    assert summary(nn.Linear(2, 2).half(), (1, 2)).input_bytes == 4


def test_without_input() -> None:
    result = summary(Net())
    assert result.total_params == 894
    assert result.mult_adds == result.input_bytes == result.output_bytes == 0
    assert all(row.output_shape is None for row in result.rows)


def test_depth() -> None:
    shallow = summary(Net(), (2, 3, 4, 4), depth=1)
    features = shallow.rows[1]
    assert (features.name, features.params, features.mult_adds) == ("features", 240, 6912)
    assert [row.name for row in shallow.rows] == ["", "features", "flatten", "fc", "tied", "unused"]
    whole = summary(Net(), (2, 3, 4, 4), depth=0)
    assert [(row.params, row.trainable_params, row.mult_adds) for row in whole.rows] == [(894, 889, 8192)]


def test_model_is_left_as_it_was() -> None:
    net = Net()
    net.features[1].eval()
    modes = [module.training for module in net.modules()]
    state = {name: (each, each.clone(), each._version) for name, each in net.state_dict(keep_vars=True).items()}
    flambeau.manual_seed(3)
    expected = flambeau.rand(2)
    flambeau.manual_seed(3)
    summary(net, (2, 3, 4, 4))
    assert flambeau.rand(2).equal(expected)
    assert [module.training for module in net.modules()] == modes
    for name, each in net.state_dict(keep_vars=True).items():
        assert each is state[name][0], name
        assert each.equal(state[name][1]), name
        assert each.grad is None
    assert not any(module._forward_hooks for module in net.modules())
    with pytest.raises(RuntimeError, match="shapes cannot be multiplied"):
        summary(net, (2, 3, 5, 5))
    assert [module.training for module in net.modules()] == modes
    assert not any(module._forward_hooks for module in net.modules())
    assert net.calls.item() == 0


def test_meta_device() -> None:
    with flambeau.device("meta"):
        result = summary(Net().to("meta"), (2, 3, 4, 4))
    assert result.rows[0].output_shape == (2, 5)
    assert result.mult_adds == 8192


def test_lazy_model_stays_lazy() -> None:
    net = nn.Sequential(nn.LazyLinear(4), nn.LazyLinear(2))
    assert summary(net, (3, 5)).total_params == 24 + 10
    assert summary(net).total_params == 0
    assert all(isinstance(each, nn.parameter.UninitializedParameter) for each in net.parameters())


def test_recurrent_attention_and_transposed_layers() -> None:
    lstm = summary(nn.LSTM(4, 5, 2), (3, 2, 4))
    assert lstm.rows[0].cells()[1] == "[3, 2, 5], [2, 2, 5], [2, 2, 5]"
    assert lstm.mult_adds == 3 * 2 * (4 * 5 * (4 + 5) + 4 * 5 * (5 + 5))
    packed = nn.utils.rnn.pack_sequence([flambeau.ones(3, 4), flambeau.ones(1, 4)])
    assert summary(nn.GRU(4, 5), packed).mult_adds == 4 * 3 * 5 * (4 + 5)
    x = flambeau.ones(2, 7, 8)
    attention = summary(nn.MultiheadAttention(8, 2, batch_first=True), (x, x, x))
    assert attention.mult_adds == 2 * (4 * 7 * 8 * 8 + 2 * 7 * 7 * 8)
    assert attention.output_bytes == 2 * 7 * (8 + 7) * 4
    transposed = summary(nn.ConvTranspose2d(3, 6, 2, stride=2), (1, 3, 4, 4))
    assert transposed.mult_adds == 3 * 16 * 6 * 4
    grouped = summary(nn.Conv1d(4, 8, 3, groups=2), (1, 4, 10))
    assert grouped.mult_adds == 8 * 8 * 2 * 3


def test_layer_called_twice_and_dict_output() -> None:
    class Twice(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = nn.Linear(3, 3, bias=False)

        def forward(self, x: Any) -> Any:
            return {"a": self.inner(self.inner(x)), "b": [x, 1]}

    result = summary(Twice(), (2, 3))
    assert result.mult_adds == 2 * 18
    assert result.total_params == 9
    assert result.rows[0].cells()[1] == "[2, 3], [2, 3]"


def test_misuse() -> None:
    with pytest.raises(TypeError, match="argument 'model' must be a Module, not function"):
        summary(lambda x: x, (1,))
    with pytest.raises(ValueError, match="'input' or 'input_size', not both"):
        summary(nn.ReLU(), flambeau.ones(1), input_size=(1,))
    with pytest.raises(TypeError, match="must be a shape or a list of shapes"):
        summary(nn.ReLU(), input_size=3)
    with pytest.raises(ValueError, match="1 shapes in 'input_size', but 2 dtypes"):
        summary(nn.ReLU(), input_size=(3,), dtype=[flambeau.float32, flambeau.int64])
