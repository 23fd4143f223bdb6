"""Devices, the meta device, layouts and memory formats."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import pytest
import torch as pytorch

from tests.support.differential import differential, outcome


@differential
@pytest.mark.parametrize(
    "arguments",
    [
        ("cpu",),
        ("cpu:0",),
        ("cpu", 0),
        ("cuda",),
        ("cuda:0",),
        ("cuda:7",),
        ("cuda", 1),
        ("meta",),
        ("meta:0",),
        ("mps",),
        ("xpu:1",),
    ],
    ids=str,
)
def test_parsing_and_text(T: Any, arguments: tuple[Any, ...]) -> Any:
    device = T.device(*arguments)
    return device.type, device.index, str(device), repr(device), f"{device}"


@differential
@pytest.mark.parametrize(
    ("argument", "phrase"),
    [
        ("", "must not be empty"),
        ("gpu", "Expected one of cpu"),
        ("CPU", "Expected one of cpu"),
        ("cuda:", "Invalid device string"),
        ("cuda:-1", "Invalid device string"),
        ("cuda:x", "Invalid device string"),
        ("cuda:1:2", "Invalid device string"),
        ("cuda:01", "Invalid device string"),
        (" cpu", "Invalid device string"),
    ],
)
def test_strings_that_name_no_device(T: Any, argument: str, phrase: str) -> Any:
    return outcome(lambda: T.device(argument), phrase)


@differential
def test_wrong_arguments(T: Any) -> Any:
    return {
        "none": outcome(lambda: T.device(None)),
        "nothing": outcome(lambda: T.device()),
        "float": outcome(lambda: T.device(1.5)),
        "index twice": outcome(lambda: T.device("cuda:0", 1), "index"),
        "negative": outcome(lambda: T.device("cuda", -2)),
        "tensor": outcome(lambda: T.device(T.ones(1))),
    }


@differential
def test_from_a_device(T: Any) -> Any:
    return T.device(T.device("cuda:1")), T.device(type="cpu"), T.device(type="cuda", index=2)


@differential
def test_comparison_and_hash(T: Any) -> Any:
    device = T.device
    return (
        device("cpu") == device("cpu"),
        device("cuda") == device("cuda:0"),
        device("cuda:0") == device("cuda", 0),
        device("cpu") == "cpu",
        device("cpu") != device("meta"),
        hash(device("cuda:1")) == hash(device("cuda:1")),
        {device("cpu"): 1}.get(device("cpu")),
        len({device("cpu"), device("cpu"), device("meta")}),
        outcome(lambda: device("cpu") < device("cuda")),
    )


@differential
def test_devices_are_immutable(T: Any) -> Any:
    device = T.device("cuda", 5)  # no other test uses it: a device that can be changed must not spoil them
    return outcome(lambda: setattr(device, "type", "cpu")), outcome(lambda: setattr(device, "index", 1)), device


@differential
@pytest.mark.parametrize("text", ["cpu", "cuda:1", "meta"])
def test_copies_and_pickles(T: Any, text: str) -> Any:
    device = T.device(text)
    return pickle.loads(pickle.dumps(device)), copy.copy(device), copy.deepcopy(device) == device


@differential
def test_tensors_know_their_device(T: Any) -> Any:
    tensor = T.ones(2)
    return (
        tensor.device,
        isinstance(tensor.device, T.device),
        tensor.is_cpu,
        tensor.is_cuda,
        tensor.is_meta,
        tensor.is_sparse,
        tensor.is_quantized,
        tensor.get_device(),
        T.get_device(tensor),
        T.empty(1, device="meta").is_meta,
    )


@differential
@pytest.mark.parametrize("spelling", ["cpu", "cpu:0"])
def test_moving_to_the_same_device_gives_the_same_tensor(T: Any, spelling: str) -> Any:
    tensor = T.ones(2)
    return tensor.to(spelling) is tensor, tensor.to(T.device(spelling)) is tensor, tensor.cpu() is tensor


@differential
def test_device_as_context_manager(T: Any) -> Any:
    with T.device("meta"):
        inside = T.ones(2)
        like = T.tensor([1.0])
        explicit = T.ones(2, device="cpu")
    return inside, like, explicit, T.ones(2)


@differential
def test_default_device(T: Any) -> Any:
    before = T.get_default_device()
    try:
        T.set_default_device("meta")
        unmoved = T.normal(0.0, 1.0, (2,)).device, T.range(0, 2).device
        return before, T.get_default_device(), T.zeros(2), T.ones(2, device="cpu"), unmoved
    finally:
        T.set_default_device(None)


# --- CUDA on a machine without it ---------------------------------------------------------------------------


without_cuda = pytest.mark.skipif(pytorch.cuda.is_available(), reason="says what happens on a machine without CUDA")

CUDA_CALLS: dict[str, Any] = {
    "factory": lambda T: T.ones(2, device="cuda"),
    "tensor": lambda T: T.tensor([1.0], device="cuda:0"),
    "to": lambda T: T.ones(2).to("cuda"),
    "to device": lambda T: T.ones(2).to(T.device("cuda", 3)),
    "cuda()": lambda T: T.ones(2).cuda(),
    "cuda(0)": lambda T: T.ones(2).cuda(0),
    "empty_like": lambda T: T.empty_like(T.ones(2), device="cuda"),
    "arange": lambda T: T.arange(3, device="cuda"),
    "generator": lambda T: T.Generator("cuda:0"),
}


@without_cuda
@differential
@pytest.mark.parametrize("call", CUDA_CALLS)
def test_cuda_is_refused(T: Any, call: str) -> Any:
    # A build without CUDA and a build without a GPU raise different types with different words: what counts is that
    # each call raises, and that the message is about CUDA, its driver, or the accelerator that a number names.
    try:
        CUDA_CALLS[call](T)
    except (AssertionError, RuntimeError) as error:
        return "refused", any(word in str(error).lower() for word in ("cuda", "nvidia driver", "accelerator"))
    return "accepted"


@without_cuda
@differential
def test_a_number_names_an_accelerator(T: Any) -> Any:
    return outcome(lambda: T.ones(2, device=0), "")


@without_cuda
@differential
def test_cuda_answers_without_a_device(T: Any) -> Any:
    return T.cuda.is_available(), T.cuda.device_count()


# --- the meta device ----------------------------------------------------------------------------------------


@differential
def test_meta_tensors_have_shapes_but_no_values(T: Any) -> Any:
    tensor = T.empty(2, 3, device="meta")
    return (
        tensor,
        tensor + 1,
        tensor @ T.empty(3, 4, device="meta"),
        tensor.sum(1),
        tensor.t(),
        tensor[0],
        tensor.to(T.float64),
        T.zeros_like(tensor),
        tensor.view(6),
        tensor.reshape(3, 2).stride(),
        tensor.numel(),
        tensor.device,
    )


@differential
def test_meta_tensors_cannot_be_read(T: Any) -> Any:
    tensor = T.empty(2, device="meta")
    return {
        "item": outcome(lambda: T.empty((), device="meta").item(), "meta"),
        "tolist": outcome(lambda: tensor.tolist(), "meta"),
        "cpu": outcome(lambda: tensor.cpu(), "meta"),
        "to": outcome(lambda: tensor.to("cpu"), "meta"),
        "numpy": outcome(lambda: tensor.numpy(), "meta"),
        "bool": outcome(lambda: bool(T.empty((), device="meta")), "meta"),
    }


@differential
def test_meta_text(T: Any) -> Any:
    return repr(T.empty(2, device="meta")), repr(T.empty(2, 2, device="meta", dtype=T.int64, requires_grad=False))


@differential
def test_meta_checks_shapes_too(T: Any) -> Any:
    left, right = T.empty(2, 3, device="meta"), T.empty(4, 5, device="meta")
    return outcome(lambda: left + right), outcome(lambda: left.view(5), "shape '[5]' is invalid")


@differential
def test_moving_to_meta(T: Any) -> Any:
    tensor = T.ones(2, 3).t()
    return tensor.to("meta"), tensor.to("meta").stride(), T.ones(2, dtype=T.int8).to("meta")


@differential
def test_devices_must_agree(T: Any) -> Any:
    cpu, meta = T.ones(2), T.empty(2, device="meta")
    return {
        "add": outcome(lambda: cpu + meta),
        "scalar tensor": T.tensor(2.0) * meta,
    }


# --- layouts and memory formats -----------------------------------------------------------------------------


@differential
def test_layouts(T: Any) -> Any:
    tensor = T.ones(2)
    return (
        tensor.layout,
        repr(T.strided),
        str(T.sparse_coo),
        repr(T.sparse_csr),
        isinstance(tensor.layout, T.layout),
        T.ones(2, layout=T.strided),
        tensor.layout is T.strided,
        pickle.loads(pickle.dumps(T.strided)) is T.strided,
    )


@differential
@pytest.mark.parametrize("name", ["contiguous_format", "channels_last", "channels_last_3d", "preserve_format"])
def test_memory_formats(T: Any, name: str) -> Any:
    memory_format = getattr(T, name)
    return (
        repr(memory_format),
        isinstance(memory_format, T.memory_format),
        memory_format == memory_format,
        pickle.loads(pickle.dumps(memory_format)) is memory_format,
    )


@differential
def test_channels_last_factories(T: Any) -> Any:
    return (
        T.empty(2, 3, 4, 5, memory_format=T.channels_last).stride(),
        T.empty_like(T.ones(2, 3, 4, 5), memory_format=T.channels_last).stride(),
        T.empty(2, 3, 4, 5, 6, memory_format=T.channels_last_3d).stride(),
        outcome(lambda: T.empty(2, 3, memory_format=T.channels_last), "rank 4"),
        outcome(lambda: T.empty(2, 3, 4, 5, memory_format=T.preserve_format)),
    )
