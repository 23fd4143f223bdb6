"""Whole networks, exported under both libraries: the same signature, and the results of the network itself."""

from __future__ import annotations

import warnings
from typing import Any

import pytest

import flambeau

from ..support.networks import network
from ..support.oracle import pytorch

NAMES = [
    "gpt", "hand_written_attention", "lenet", "convnet_of_the_notes", "vgg", "resnext", "mobilenet", "unet", "dcgan",
    "mixed_normalisations", "super_resolution", "volumes", "mlp_with_dropout", "autoencoder", "siamese_network",
    "triplets", "mixture_of_experts", "rnn_of_the_notes", "lstm_classifier", "character_rnn", "speech_with_ctc",
    "lstm_with_projection_and_cells", "closures", "transformer_encoder_classifier", "vision_transformer",
]  # fmt: skip
"""Those that PyTorch exports too, and that draw no random numbers; one of each pair that differ in size alone."""
BESIDE_PYTORCH = ("gpt", "mobilenet", "lstm_classifier")
"""Export in PyTorch takes seconds for each: some suffice for the form of signatures."""


def _exported(T: Any, name: str) -> tuple[Any, Any, list[Any], list[Any]]:
    model, args, kwargs = network(T, name)
    model.eval()
    program = T.export.export(model, args, kwargs)
    leaves = T.utils._pytree.tree_leaves
    with T.no_grad():
        expected, actual = leaves(model(*args, **kwargs)), leaves(program.module()(*args, **kwargs))
    return program, model, expected, actual


@pytest.mark.parametrize("name", NAMES)
def test_results(name: str) -> None:
    program, model, expected, actual = _exported(flambeau, name)
    program.validate()
    assert len(expected) == len(actual) > 0
    assert all(flambeau.equal(a, b) for a, b in zip(expected, actual, strict=True))
    assert list(program.graph_signature.parameters) == [n for n, _ in model.named_parameters(remove_duplicate=False)]
    targets = {str(node.target) for node in program.graph.nodes if node.op == "call_function"}
    assert any(each.startswith("aten.") for each in targets)


@pytest.mark.parametrize("name", BESIDE_PYTORCH)
@pytest.mark.skipif(pytorch is None, reason="there is no PyTorch to compare with")
def test_signature(name: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # PyTorch warns of its own layers
        ours, theirs = (_exported(T, name)[0].graph_signature for T in (flambeau, pytorch))
    assert [str(each) for each in ours.input_specs] == [str(each) for each in theirs.input_specs]
    kinds = [[(each.kind.name, type(each.arg).__name__) for each in s.output_specs] for s in (ours, theirs)]
    assert kinds[0] == kinds[1]


@pytest.mark.parametrize("name", ["word_bags", "shared_weights_and_control_flow"])
def test_decisions_by_elements_are_refused(name: str) -> None:
    model, args, kwargs = network(flambeau, name)
    with pytest.raises(RuntimeError, match="data-dependent"):
        flambeau.export.export(model, args, kwargs)
