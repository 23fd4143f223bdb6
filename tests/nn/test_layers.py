"""Layers beside PyTorch's: signatures, settings, misuse, and what the module database does not reach."""

from __future__ import annotations

import inspect
import pickle
from typing import Any

import pytest
import torch as pytorch

import flambeau
from tests.support.differential import differential, outcome, warned

FAMILIES = [
    *("adaptive", "batchnorm", "channelshuffle", "conv", "distance", "dropout", "flatten", "fold", "instancenorm"),
    *("loss", "normalization", "padding", "pixelshuffle", "pooling", "sparse", "upsampling"),
]
NAMES = [(family, name) for family in FAMILIES for name in getattr(pytorch.nn.modules, family).__all__]


def _parameters(function: Any) -> list[tuple[str, Any, Any]]:
    return [(each.name, each.kind, each.default) for each in inspect.signature(function).parameters.values()]


@pytest.mark.parametrize(("family", "name"), NAMES)
def test_class_is_found_and_called_as_in_pytorch(family: str, name: str) -> None:
    theirs, ours = getattr(pytorch.nn, name), getattr(flambeau.nn, name)
    assert ours.__module__ == f"flambeau.nn.modules.{family}"
    assert getattr(flambeau.nn.modules, name) is ours
    assert _parameters(ours.__init__) == _parameters(theirs.__init__)
    assert _parameters(ours.forward) == _parameters(theirs.forward)
    assert getattr(ours, "__constants__", None) == getattr(theirs, "__constants__", None)
    assert ours._version == theirs._version
    for method in ("reset_parameters", "from_pretrained", "reset_running_stats", "convert_sync_batchnorm"):
        assert hasattr(ours, method) == hasattr(theirs, method)
        if hasattr(theirs, method):
            assert _parameters(getattr(ours, method)) == _parameters(getattr(theirs, method))
    assert ours.__doc__


PRINTED: list[Any] = [
    lambda nn: nn.Conv2d(2, 4, 3, 2, 1, 2, 2, False, "circular"),
    lambda nn: nn.Conv1d(2, 4, 3, padding="same"),
    lambda nn: nn.ConvTranspose2d(2, 4, 3, stride=2, output_padding=1),
    lambda nn: nn.MaxPool3d((3, 2, 2), ceil_mode=True),
    lambda nn: nn.MaxUnpool2d(3, 2, 1),
    lambda nn: nn.AvgPool1d(2),
    lambda nn: nn.AvgPool3d(2, divisor_override=3),
    lambda nn: nn.FractionalMaxPool2d(2, output_ratio=0.5),
    lambda nn: nn.AdaptiveAvgPool2d((None, 3)),
    lambda nn: nn.ZeroPad2d(1),
    lambda nn: nn.ConstantPad1d((2, 1), 3.5),
    lambda nn: nn.BatchNorm2d(3, momentum=None, affine=False, track_running_stats=False),
    lambda nn: nn.RMSNorm((2, 3), eps=1e-3),
    lambda nn: nn.CrossMapLRN2d(3),
    lambda nn: nn.Dropout2d(0.3, True),
    lambda nn: nn.Embedding(3, 4, -1, 2.0, 1, True, True),
    lambda nn: nn.EmbeddingBag(3, 4, 1.0, 3.0, True, "sum", padding_idx=2),
    lambda nn: nn.Upsample(scale_factor=(2, 3)),
    lambda nn: nn.UpsamplingBilinear2d(size=4),
    lambda nn: nn.Fold((3, 4), 2),
    lambda nn: nn.Unfold((2, 2), padding=1),
    lambda nn: nn.Unflatten(1, (2, 3)),
    lambda nn: nn.PixelUnshuffle(3),
    lambda nn: nn.ChannelShuffle(2),
    lambda nn: nn.PairwiseDistance(),
    lambda nn: nn.TripletMarginWithDistanceLoss(),
    lambda nn: nn.AdaptiveLogSoftmaxWithLoss(8, 10, [2, 5]),
    lambda nn: nn.LinearCrossEntropyLoss(4, 3, out_features=(2,), bias=True),
]


@pytest.mark.parametrize("make", PRINTED)
@differential
def test_settings_and_printing(T: Any, make: Any) -> Any:
    layer = make(T.nn)
    plain = set(vars(T.nn.Module()))
    settings = {name: str(value) for name, value in vars(layer).items() if name not in plain}
    return repr(layer), settings, list(layer._buffers), list(layer._parameters)


WRONG: list[tuple[Any, str]] = [
    (lambda T: T.nn.Conv2d(3, 4, 3, groups=2), "in_channels must be divisible by groups"),
    (lambda T: T.nn.Conv2d(4, 3, 3, groups=2), "out_channels must be divisible by groups"),
    (lambda T: T.nn.Conv2d(3, 4, 3, groups=0), "groups must be a positive integer"),
    (lambda T: T.nn.Conv2d(3, 4, 3, padding="x"), "Invalid padding string 'x', should be one of"),
    (lambda T: T.nn.Conv2d(3, 4, 3, 2, "same"), "padding='same' is not supported for strided convolutions"),
    (lambda T: T.nn.Conv2d(3, 4, 3, padding_mode="x"), "padding_mode must be one of"),
    (lambda T: T.nn.ConvTranspose2d(3, 4, 3, padding_mode="reflect"), 'Only "zeros" padding mode is supported for'),
    (
        lambda T: T.nn.ConvTranspose2d(3, 4, 3)(T.zeros(1, 3, 4, 4), output_size=(3,)),
        "output_size must have 2 or 4 elements (got 1)",
    ),
    (
        lambda T: T.nn.ConvTranspose2d(3, 4, 3, 2)(T.zeros(3, 4, 4), output_size=(3, 3)),
        "requested an output size of (3, 3), but valid sizes range from [9, 9] to [10, 10]",
    ),
    (lambda T: T.nn.LazyConv2d(4, 3)(T.zeros(4, 4)), "Expected 3D (unbatched) or 4D (batched) input to LazyConv2d"),
    (lambda T: T.nn.LazyConv1d(4, 3, groups=2)(T.zeros(2, 3, 4)), "in_channels must be divisible by groups"),
    (lambda T: T.nn.CircularPad2d(1)(T.zeros(4, 4)), "expected 3D or 4D input (got 2D input)"),
    (lambda T: T.nn.FractionalMaxPool2d(1), "requires specifying either an output size, or a pooling ratio"),
    (lambda T: T.nn.FractionalMaxPool3d(1, 2, 0.5), "only one of output_size and output_ratio may be specified"),
    (lambda T: T.nn.FractionalMaxPool2d(1, output_ratio=(0.5, 1)), "output_ratio must be between 0 and 1"),
    (lambda T: T.nn.Dropout(2), "dropout probability has to be between 0 and 1, but got 2"),
    (lambda T: T.nn.BatchNorm1d(2)(T.zeros(2)), "expected 2D or 3D input (got 1D input)"),
    (lambda T: T.nn.BatchNorm2d(2)(T.zeros(2, 2)), "expected 4D input (got 2D input)"),
    (lambda T: T.nn.BatchNorm3d(2)(T.zeros(2, 2)), "expected 5D input (got 2D input)"),
    (lambda T: T.nn.SyncBatchNorm(2)(T.zeros(2)), "expected at least 2D input (got 1D input)"),
    (lambda T: T.nn.SyncBatchNorm(2)(T.zeros(2, 0)), "number of input channels should be non-zero"),
    (lambda T: T.nn.InstanceNorm1d(3)(T.zeros(3)), "expected 2D or 3D input (got 1D input)"),
    (lambda T: T.nn.InstanceNorm1d(3, affine=True)(T.zeros(2, 4, 5)), "size at dim=1 to match num_features (3)"),
    (lambda T: T.nn.GroupNorm(3, 4), "num_channels (4) must be divisible by num_groups (3)"),
    (lambda T: T.nn.CrossMapLRN2d(3)(T.zeros(3, 3)), "Expected input to be 4D, got 2D instead"),
    (lambda T: T.nn.Embedding(3, 4, padding_idx=3), "Padding_idx must be within num_embeddings"),
    (lambda T: T.nn.Embedding(3, 4, _weight=T.zeros(3, 3)), "Shape of weight does not match"),
    (lambda T: T.nn.Embedding.from_pretrained(T.zeros(3)), "parameter is expected to be 2-dimensional"),
    (lambda T: T.nn.EmbeddingBag(3, 4, padding_idx=-4), "padding_idx must be within num_embeddings"),
    (lambda T: T.nn.Unflatten(1, 3), "unflattened_size must be a tuple of ints, but found type int"),
    (lambda T: T.nn.Unflatten(1, (2, 3.0)), "but found element of type float at pos 1"),
    (lambda T: T.nn.MultiMarginLoss(p=3), "only p == 1 and p == 2 supported"),
    (lambda T: T.nn.MultiMarginLoss(weight=T.zeros(2, 2)), "expected weight to be None or 1D tensor, got 2D instead"),
    (lambda T: T.nn.TripletMarginLoss(margin=-1), "expected margin to be greater than 0, got -1 instead"),
    (lambda T: T.nn.TripletMarginWithDistanceLoss(margin=0), "expected margin to be greater than 0, got 0 instead"),
    (lambda T: T.nn.L1Loss(reduction="x")(T.zeros(2), T.zeros(2)), "x is not a valid value for reduction"),
    (lambda T: T.nn.AdaptiveLogSoftmaxWithLoss(8, 10, []), "cutoffs should be a sequence of length larger than 0"),
    (lambda T: T.nn.AdaptiveLogSoftmaxWithLoss(8, 10, [5, 2]), "cutoffs should be a sequence of unique, positive"),
    (lambda T: T.nn.AdaptiveLogSoftmaxWithLoss(8, 10, [10]), "cutoffs should be a sequence of unique, positive"),
    (lambda T: T.nn.AdaptiveLogSoftmaxWithLoss(8, 10, [2.5]), "cutoffs should be a sequence of unique, positive"),
]


@pytest.mark.parametrize(("action", "phrase"), WRONG, ids=[phrase for _, phrase in WRONG])
@differential
def test_misuse(T: Any, action: Any, phrase: str) -> Any:
    return outcome(lambda: action(T), phrase)


@pytest.mark.parametrize(
    ("shape", "target", "phrase"),
    [
        ((3, 8), [0, 1], "Input and target should have the same size in the batch dimension"),
        ((3, 8), [[0], [1], [2]], "0D or 1D target tensor expected, multi-target not supported"),
        ((3, 8), [1, 2, 10], "Target values should be in [0, 9], but values in range [1, 10] were found"),
        ((3, 8), 1, "0D target tensor expects 1D input tensors"),
    ],
)
@differential
def test_adaptive_softmax_misuse(T: Any, shape: Any, target: Any, phrase: str) -> Any:
    layer = T.nn.AdaptiveLogSoftmaxWithLoss(8, 10, [2, 5])
    return outcome(lambda: layer(T.zeros(shape), T.tensor(target)), phrase)


@differential(tolerance=1e-5)
def test_adaptive_softmax(T: Any) -> Any:
    layer = T.nn.AdaptiveLogSoftmaxWithLoss(16, 12, [3, 6], div_value=2.0)
    input = T.randn(9, 16).mul_(3).requires_grad_()
    target = T.tensor([0, 11, 3, 2, 5, 6, 1, 4, 9])
    output, loss = layer(input, target)
    loss.backward()
    single = layer(input[0], target[0])
    results = [output, single.output, single.loss, layer.log_prob(input)]
    few = layer(input[:2], T.tensor([0, 1]))  # only frequent classes
    return (
        [each.detach() for each in results],
        loss.item(),
        few.loss.item(),
        layer.predict(input),
        input.grad,
        [p.grad for p in layer.parameters()],
    )


@differential(tolerance=1e-5)
def test_cross_map_lrn(T: Any) -> Any:
    return [T.nn.CrossMapLRN2d(size, 0.5, 0.6, 2)(T.randn(2, 6, 2, 3)) for size in (1, 2, 3, 4, 5, 9, 20)]


@differential(tolerance=1e-5)
def test_batch_norm_statistics(T: Any) -> Any:
    observed = []
    for options in ({}, {"momentum": None}, {"momentum": 0.3, "affine": False}, {"track_running_stats": False}):
        layer = T.nn.BatchNorm1d(3, **options)
        for _ in range(3):
            layer(T.randn(5, 3) * 2 + 1)
        observed.append(dict(layer.state_dict()))
        layer.eval()
        observed.append(layer(T.randn(2, 3, 4)).detach())
        layer.reset_running_stats()
        observed.append(dict(layer.state_dict()))
    return observed


@differential
def test_batch_norm_loads_states_without_a_count(T: Any) -> Any:
    layer = T.nn.Sequential(T.nn.BatchNorm1d(3))
    layer[0].num_batches_tracked.fill_(7)
    state = layer.state_dict()
    old = {key: value for key, value in state.items() if "num_batches" not in key}
    loaded = layer.load_state_dict(old)
    state._metadata["0"]["version"] = 2
    del state["0.num_batches_tracked"]
    return (
        layer[0].num_batches_tracked,
        list(loaded.missing_keys),
        outcome(lambda: layer.load_state_dict(state), 'Missing key(s) in state_dict: "0.num_batches_tracked"'),
    )


@differential
def test_instance_norm_refuses_old_statistics(T: Any) -> Any:
    layer = T.nn.InstanceNorm1d(3)
    old = {"running_mean": T.zeros(3), "running_var": T.ones(3)}
    return outcome(lambda: layer.load_state_dict(old), 'Unexpected running stats buffer(s) "running_mean" and')


@differential
def test_instance_norm_of_other_features_warns(T: Any) -> Any:
    return warned(lambda: T.nn.InstanceNorm1d(3)(T.randn(2, 4, 5)), "does not match num_features")


@differential(tolerance=1e-5)
def test_sync_batch_norm(T: Any) -> Any:
    model = T.nn.Sequential(T.nn.Conv1d(2, 3, 1), T.nn.Sequential(T.nn.BatchNorm1d(3, bias=False)), T.nn.BatchNorm2d(2))
    converted = T.nn.SyncBatchNorm.convert_sync_batchnorm(model)
    input = T.randn(4, 2, 5)
    first = model[0](input)
    return repr(converted), converted is model, converted[1](first), dict(converted.state_dict())


def test_sync_batch_norm_of_one_process_asks_no_group() -> None:
    layer = flambeau.nn.SyncBatchNorm(2, process_group=object())
    assert layer(flambeau.ones(3, 2)).tolist() == [[0, 0]] * 3


@differential(tolerance=1e-5)
def test_embeddings_from_pretrained(T: Any) -> Any:
    table = T.randn(4, 3)
    frozen = T.nn.Embedding.from_pretrained(table, padding_idx=1)
    free = T.nn.EmbeddingBag.from_pretrained(table, freeze=False, mode="sum", padding_idx=0)
    numbers = T.tensor([[0, 1], [3, 3]])
    return (
        repr(frozen),
        repr(free),
        frozen.weight.requires_grad,
        free.weight.requires_grad,
        frozen.weight.data_ptr() == table.data_ptr(),
        frozen(numbers),
        free(numbers),
        free(numbers.flatten(), T.tensor([0, 3])),
    )


@differential
def test_transposed_convolution_of_a_wanted_size(T: Any) -> Any:
    layer = T.nn.ConvTranspose2d(2, 3, 3, stride=2, padding=1, dilation=2)
    input = T.ones(1, 2, 4, 4)
    return [layer(input, output_size=size).detach() for size in ([9, 10], [1, 3, 10, 9])]


@pytest.mark.parametrize("padding", [1, "same"])
@pytest.mark.parametrize("mode", ["zeros", "reflect", "replicate", "circular"])
@differential(tolerance=1e-5)
def test_padding_modes(T: Any, mode: str, padding: Any) -> Any:
    observed = []
    for dims in (1, 2, 3):
        layer = getattr(T.nn, f"Conv{dims}d")(2, 3, 4, padding=padding, padding_mode=mode)
        observed += [layer._reversed_padding_repeated_twice, layer(T.randn(2, *(5,) * dims)).detach()]
    return observed


@differential
def test_unpooling(T: Any) -> Any:
    observed = []
    for dims in (1, 2, 3):
        pool = getattr(T.nn, f"MaxPool{dims}d")(2, stride=2, return_indices=True)
        unpool = getattr(T.nn, f"MaxUnpool{dims}d")(2, stride=2)
        input = T.randn(2, 1, *(5,) * dims)
        values, indices = pool(input)
        observed += [values, indices, unpool(values, indices, output_size=input.shape)]
        values, indices = pool(T.randn(1, *(4,) * dims))
        observed.append(unpool(values, indices))
    return observed


@pytest.mark.parametrize(
    "name", ["Dropout", "Dropout1d", "Dropout2d", "Dropout3d", "AlphaDropout", "FeatureAlphaDropout"]
)
@differential
def test_dropout(T: Any, name: str) -> Any:
    shape = {"Dropout1d": (2, 3, 4), "Dropout3d": (2, 3, 2, 2, 2)}.get(name, (2, 3, 4, 4))
    input = T.randn(shape)
    layer, same = getattr(T.nn, name)(0.4), getattr(T.nn, name)(0.4, inplace=True)
    in_place = input.clone()
    return layer(input), same(in_place) is in_place, in_place, layer.eval()(input) is input


@differential
def test_old_reduction_flags(T: Any) -> Any:
    return [
        warned(lambda flags=flags: T.nn.MSELoss(*flags).reduction, "please use reduction=")
        for flags in ((True, None), (False, True), (None, False))
    ] + [warned(lambda: T.nn.NLLLoss2d(ignore_index=3).ignore_index, "`NLLLoss2d` has been deprecated")]


@differential
def test_losses_outside_the_database(T: Any) -> Any:
    a, b, c = T.randn(4, 5), T.randn(4, 5), T.randn(4, 5)
    nn = T.nn
    return [
        nn.TripletMarginLoss(2.0, p=1, swap=True)(a, b, c),
        nn.TripletMarginWithDistanceLoss(margin=2.0)(a, b, c),
        nn.TripletMarginWithDistanceLoss(distance_function=lambda x, y: (x - y).abs().sum(1), swap=True)(a, b, c),
        nn.PairwiseDistance(1, keepdim=True)(a, b),
        nn.CosineSimilarity(0)(a, b),
        nn.BCEWithLogitsLoss(pos_weight=T.arange(5.0))(a, b.sigmoid()),
        sorted(nn.BCEWithLogitsLoss(T.ones(5), pos_weight=T.arange(5.0)).state_dict()),
    ]


@differential
def test_rearranging_layers(T: Any) -> Any:
    nn, image = T.nn, T.arange(2 * 4 * 4 * 4.0).reshape(2, 4, 4, 4)
    layers = [
        nn.PixelShuffle(2),
        nn.PixelUnshuffle(2),
        nn.ChannelShuffle(2),
        nn.Unfold(2, stride=2),
        nn.Sequential(nn.Unfold((2, 3)), nn.Fold((4, 4), (2, 3))),
        nn.Flatten(),
        nn.Flatten(0, 2),
        nn.Unflatten(1, (2, 2)),
        nn.Unflatten(-1, T.Size([2, 2])),
        nn.Upsample(scale_factor=1.5, mode="bilinear"),
        nn.UpsamplingNearest2d(size=(3, 5)),
        nn.UpsamplingBilinear2d(scale_factor=2),
    ]
    return [layer(image) for layer in layers]


def test_lazy_layers_keep_waiting_through_pickle() -> None:
    layer = pickle.loads(pickle.dumps(flambeau.nn.LazyConv2d(4, 3)))
    assert layer.has_uninitialized_params()
    assert layer(flambeau.zeros(1, 2, 5, 5)).shape == (1, 4, 3, 3)
    assert type(layer) is flambeau.nn.Conv2d


@differential
def test_prefix_is_taken_off_a_state_dict(T: Any) -> Any:
    model = T.nn.Sequential(T.nn.Linear(2, 1), T.nn.Linear(1, 1))
    wrapped = T.nn.Sequential()
    wrapped.add_module("module", model)
    state = wrapped.state_dict()
    T.nn.modules.utils.consume_prefix_in_state_dict_if_present(state, "module.")
    return list(state), sorted(state._metadata), list(model.load_state_dict(state).missing_keys)
