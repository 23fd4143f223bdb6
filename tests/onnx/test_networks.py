"""The networks of `tests/training`: exported, run by onnxruntime and read back, the batch fixed and free."""

from __future__ import annotations

import warnings
from typing import Any

import onnx
import pytest

import flambeau

from . import networks, runtime

BATCH_SECOND = {"test_transformer_translation", "test_gru_seq2seq", "test_character_rnn",
                "test_lstm_with_projection_and_cells"}  # fmt: skip
DRAWS = {"test_variational_autoencoder": slice(1, None)}
"""Outputs that do not depend on random numbers."""
FIXED = {
    "test_shared_weights_and_control_flow": "how often a layer runs is drawn at random",
    "test_word_bags": "Python loops over the batch",
    "test_bidirectional_lstm_with_packed_sequences": "the lengths are numbers of Python's",
}


def exported(model: Any, args: tuple[Any, ...], **options: Any) -> Any:
    flambeau.manual_seed(3)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        program = flambeau.onnx.export(model, args, **options)
    onnx.checker.check_model(program.model_proto, full_check=True)
    return program.model_proto


def computed(model: Any, args: Any) -> list[Any]:
    flambeau.manual_seed(3)
    with flambeau.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return runtime.tensors(model(*args))


@pytest.mark.parametrize("name", networks.names())
def test_network(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    model, args = networks.network(name, monkeypatch)
    test = name.partition(".")[2]
    dim = 1 if test in BATCH_SECOND else 0
    compared = DRAWS.get(test, slice(None))
    given = runtime.tensors(args)
    if test in FIXED:
        message = exported(model, args)
        expected = computed(model, args)[compared]
        runtime.check(runtime.run(message, given)[compared], expected)
        runtime.check(runtime.read(message, given)[compared], expected)
        return
    shapes = tuple({dim: "batch"} if isinstance(each, flambeau.Tensor) else None for each in args)
    message = exported(model, args, dynamic_shapes=shapes)
    size = given[0].shape[dim]
    for count in (size, size + 3):
        rows = flambeau.arange(count) % size
        others = [each.index_select(dim, rows) if isinstance(each, flambeau.Tensor) else each for each in args]
        expected = computed(model, others)[compared]
        runtime.check(runtime.run(message, runtime.tensors(others))[compared], expected)
        runtime.check(runtime.read(message, runtime.tensors(others))[compared], expected)
