"""`SummaryWriter`: the files are read back by a decoder of the tests' own, written from the format's description.

The expected messages are those that PyTorch's writer gives, as TensorBoard's own reader sees them.
"""

from __future__ import annotations

import io
import struct
import wave
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import flambeau
from flambeau.utils.tensorboard import FileWriter, SummaryWriter
from flambeau.utils.tensorboard._images import encode_png
from flambeau.utils.tensorboard._protobuf import varint
from flambeau.utils.tensorboard._records import crc32c

Fields = dict[int, list[Any]]


def bitwise_crc32c(content: bytes) -> int:
    crc = 0xFFFFFFFF
    for byte in content:
        crc ^= byte
        for _ in range(8):
            crc = (crc >> 1) ^ (0x82F63B78 * (crc & 1))
    return crc ^ 0xFFFFFFFF


def check(content: bytes, masked: int) -> None:
    rotated = (masked - 0xA282EAD8) % 2**32
    assert bitwise_crc32c(content) == ((rotated >> 17) | (rotated << 15)) % 2**32


def records(path: Path) -> list[bytes]:
    """The contents of a file's records, their checksums compared."""
    data, found, at = path.read_bytes(), [], 0
    while at < len(data):
        (length,), (first,) = struct.unpack_from("<Q", data, at), struct.unpack_from("<I", data, at + 8)
        content = data[at + 12 : at + 12 + length]
        check(data[at : at + 8], first)
        check(content, struct.unpack_from("<I", data, at + 12 + length)[0])
        found.append(content)
        at += 16 + length
    assert at == len(data)
    return found


def decode(data: bytes) -> Fields:
    """The fields of a message by number: ints, 8 or 4 bytes unpacked as float, and bytes."""
    fields: Fields = {}
    at = 0

    def number() -> int:
        nonlocal at
        value = shift = 0
        while True:
            byte = data[at]
            at += 1
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value

    while at < len(data):
        key = number()
        kind: Any = key & 7
        value: Any
        if kind == 0:
            value = number()
        elif kind == 1:
            value, at = struct.unpack_from("<d", data, at)[0], at + 8
        elif kind == 5:
            value, at = struct.unpack_from("<f", data, at)[0], at + 4
        else:
            assert kind == 2
            length = number()
            value, at = data[at : at + length], at + length
        fields.setdefault(key >> 3, []).append(value)
    return fields


def events(folder: Path) -> list[Fields]:
    (path,) = folder.glob("events.out.tfevents.*")
    return [decode(each) for each in records(path)]


def values(folder: Path) -> dict[str, Fields]:
    """The summaries in a folder's file by tag, each with its step as field 0."""
    found = {}
    for event in events(folder):
        for summary in event.get(5, []):
            for each in decode(summary)[1]:
                value = decode(each)
                value[0] = event.get(2, [None])
                found[value[1][0].decode()] = value
    return found


def plugin(value: Fields) -> tuple[str, bytes]:
    data = decode(decode(value[9][0])[1][0])
    return data[1][0].decode(), data[2][0]


def doubles(data: bytes) -> list[float]:
    return np.frombuffer(data, "<f8").tolist()


def png(data: bytes) -> Any:
    """The pixels of a PNG without filters."""
    assert data[:8] == b"\x89PNG\r\n\x1a\n"
    at, chunks = 8, {}
    while at < len(data):
        length, kind = struct.unpack_from(">I4s", data, at)
        content = data[at + 8 : at + 8 + length]
        assert struct.unpack_from(">I", data, at + 8 + length)[0] == zlib.crc32(kind + content)
        chunks[kind] = content
        at += 12 + length
    width, height, depth, colour = struct.unpack(">IIBB3x", chunks[b"IHDR"])
    channels = {0: 1, 4: 2, 2: 3, 6: 4}[colour]
    lines = np.frombuffer(zlib.decompress(chunks[b"IDAT"]), np.uint8).reshape(height, -1)
    assert depth == 8
    assert not lines[:, 0].any()
    return lines[:, 1:].reshape(height, width, channels)


def test_checksum_and_numbers() -> None:
    assert crc32c(b"123456789") == 0xE3069283  # the check value of the algorithm's catalogue
    assert crc32c(b"") == 0
    assert (varint(0), varint(300), varint(-1)) == (b"\0", b"\xac\x02", b"\xff" * 9 + b"\1")


def test_scalars(tmp_path: Path) -> None:
    with SummaryWriter(tmp_path) as writer:
        writer.add_scalar("loss", 0.5, 3, walltime=1.5)
        writer.add_scalar("tensor", flambeau.tensor([2.0], requires_grad=True), flambeau.tensor(4))
        writer.add_scalar("half", flambeau.tensor(1.5, dtype=flambeau.bfloat16), -1)
        writer.add_scalar("array", np.float64(3))
        writer.add_scalar("new", 0.1, 1, new_style=True)
        writer.add_scalar("double", 0.1, 1, new_style=True, double_precision=True)
        assert writer.get_logdir() == str(tmp_path)
    first, second, *_ = events(tmp_path)
    assert first[3] == [b"brain.Event:2"]
    assert (second[1], second[2]) == ([1.5], [3])
    found = values(tmp_path)
    assert found["loss"][2] == [0.5]
    assert (found["tensor"][2], found["tensor"][0]) == ([2.0], [4])
    assert (found["half"][2], found["half"][0]) == ([1.5], [2**64 - 1])
    assert (found["array"][2], found["array"][0]) == ([3.0], [None])
    assert decode(found["new"][8][0]) == {1: [1], 5: [np.float32(0.1)]}
    assert decode(found["double"][8][0]) == {1: [2], 6: [0.1]}
    assert plugin(found["new"]) == ("scalars", b"")


def test_several_scalars_have_files_of_their_own(tmp_path: Path) -> None:
    with SummaryWriter(tmp_path) as writer:
        writer.add_scalars("run/14", {"a": 1, "b": 2.0}, 4)
        writer.add_scalars("run/14", {"a": 3}, 5)
    assert sorted(each.name for each in tmp_path.iterdir() if each.is_dir()) == ["run_14_a", "run_14_b"]
    assert values(tmp_path / "run_14_a")["run/14"][2] == [3.0]
    assert len(events(tmp_path / "run_14_a")) == 3
    assert values(tmp_path / "run_14_b")["run/14"][0] == [4]


def test_histograms(tmp_path: Path) -> None:
    with SummaryWriter(tmp_path) as writer:
        writer.add_histogram("edges", np.array([1, 1, 2]), 1, bins=[0, 1, 2, 3])
        writer.add_histogram("fewer", np.arange(10.0), 1, bins=10, max_bins=4)
        writer.add_histogram("default", flambeau.arange(10.0) - 3, 1)
        writer.add_histogram("zeros", np.zeros(4))
        writer.add_histogram_raw("raw", 0, 1, 3, 2, 2.5, [0.5, 1], [1, 2])
        with pytest.raises(ValueError, match="The input has no element"):
            writer.add_histogram("empty", flambeau.zeros(0))
        with pytest.raises(ValueError, match="bucket_counts"):
            writer.add_histogram_raw("raw", 0, 1, 3, 2, 2.5, [0.5, 1], [1])
    found = {tag: decode(value[5][0]) for tag, value in values(tmp_path).items()}
    edges = found["edges"]
    assert [edges[field][0] for field in range(1, 6)] == [1, 2, 3, 4, 6]
    assert (doubles(edges[6][0]), doubles(edges[7][0])) == ([1, 2, 3], [0, 2, 1])
    assert doubles(found["fewer"][7][0]) == [0, 2, 2, 2, 2, 2]
    assert (doubles(found["zeros"][6][0]), doubles(found["zeros"][7][0])) == ([0, 1e-12], [0, 4])
    assert [found["raw"][field][0] for field in range(1, 6)] == [0, 1, 3, 2, 2.5]
    limits, counts = doubles(found["default"][6][0]), doubles(found["default"][7][0])
    assert sum(counts) == 10
    assert limits[:2] == [-3.1665833053880363, -2.8787120958073054]  # as PyTorch has them
    assert found["default"][5] == [105.0]


def test_images(tmp_path: Path) -> None:
    image = np.arange(60, dtype=np.uint8).reshape(3, 5, 4)
    with SummaryWriter(tmp_path) as writer:
        writer.add_image("bytes", image, 1)
        writer.add_image("floats", flambeau.tensor([[[0.0, 0.5, 1.0, 2.0, -1.0]]]), 1)
        writer.add_image("rows", image.transpose(1, 2, 0), 1, dataformats="HWC")
        writer.add_image("grey", image[0], 1, dataformats="HW")
        writer.add_image("alpha", np.ones((4, 2, 2)), 1)
        writer.add_images("grid", np.ones((9, 1, 2, 3)), 1)
        with pytest.raises(AssertionError, match="size of input tensor and input format are different"):
            writer.add_image("wrong", image[0])
        with pytest.raises(AssertionError, match="twice"):
            writer.add_image("wrong", image, dataformats="HHW")
        with pytest.raises(ValueError, match="dataformats"):
            writer.add_image("wrong", image, dataformats="CXW")
        with pytest.raises(ValueError, match="channels"):
            writer.add_image("wrong", np.ones((5, 2, 2)))
    found = {tag: decode(value[4][0]) for tag, value in values(tmp_path).items()}
    assert [found["bytes"][field] for field in (1, 2, 3)] == [[5], [4], [3]]
    pixels = {tag: png(value[4][0]) for tag, value in found.items()}
    assert (pixels["bytes"] == image.transpose(1, 2, 0)).all()
    assert (pixels["rows"] == pixels["bytes"]).all()
    assert (pixels["grey"] == image[0][..., None]).all()
    assert pixels["floats"][0, :, 0].tolist() == [0, 127, 255, 255, 0]
    assert pixels["alpha"].shape == (2, 2, 4)
    assert pixels["grid"].shape == (4, 24, 3)
    assert pixels["grid"][:2].all()
    assert pixels["grid"][2:, :3].all()
    assert not pixels["grid"][2:, 3:].any()


def test_pillow_reads_our_png() -> None:
    pillow = pytest.importorskip("PIL.Image")
    for channels in (1, 2, 3, 4):
        image = np.random.RandomState(0).randint(0, 256, (7, 5, channels)).astype(np.uint8)
        read = np.asarray(pillow.open(io.BytesIO(encode_png(image)))).reshape(image.shape)
        assert (read == image).all()


def test_figures(tmp_path: Path) -> None:
    pyplot = pytest.importorskip("matplotlib.pyplot")
    pyplot.switch_backend("agg")
    with SummaryWriter(tmp_path) as writer:
        writer.add_figure("one", pyplot.figure(figsize=(1, 0.5), dpi=100), 1)
        writer.add_figure("two", [pyplot.figure(figsize=(1, 1), dpi=50) for _ in range(2)], 1, close=False)
    assert len(pyplot.get_fignums()) == 2
    pyplot.close("all")
    found = {tag: png(decode(value[4][0])[4][0]) for tag, value in values(tmp_path).items()}
    assert found["one"].shape == (50, 100, 3)
    assert found["two"].shape == (50, 100, 3)
    assert (found["one"] == 255).all()


def test_images_with_boxes(tmp_path: Path) -> None:
    pytest.importorskip("PIL")
    boxes = flambeau.tensor([[2.0, 3.0, 12.0, 9.0], [20.0, 2.0, 29.0, 17.0]])
    with SummaryWriter(tmp_path) as writer:
        writer.add_image_with_boxes("a", flambeau.zeros(3, 20, 32), boxes, 5)
        writer.add_image_with_boxes("labels", flambeau.zeros(20, 32), boxes, dataformats="HW", labels=["cat", ""])
        writer.add_image_with_boxes("wrong number", flambeau.zeros(3, 20, 32), boxes, labels="cat")
        writer.add_image_with_boxes("twice", flambeau.zeros(3, 20, 32), boxes, rescale=2)
        writer.add_image_with_boxes("none", flambeau.zeros(3, 20, 32), flambeau.zeros(0, 4))
        with pytest.raises(ValueError, match=r"not \[4\]"):
            writer.add_image_with_boxes("b", flambeau.zeros(3, 20, 32), boxes[0])
    found = values(tmp_path)
    shown = {tag: png(decode(value[4][0])[4][0]) for tag, value in found.items()}
    assert found["a"][0] == [5]
    red = (shown["a"] == [255, 0, 0]).all(-1)
    assert red[3:10, 2].all()  # the left side
    assert red[9, 2:13].all()  # the bottom
    assert red[2:18, 29].all()  # the right side of the other
    assert not red[5:7, 5:10].any()  # inside
    assert not red[:, 15:18].any()  # between
    assert (shown["wrong number"] == shown["a"]).all()
    label = shown["labels"][:, 14:19]  # reaches beyond its narrow box
    assert label.any()
    assert shown["twice"].shape == (40, 64, 3)
    assert not shown["none"].any()


class Residual(flambeau.nn.Module):
    """A block, with a frozen parameter and a submodule that is called twice."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = flambeau.nn.Sequential(flambeau.nn.Linear(4, 4), flambeau.nn.Dropout(0.5))
        self.scale = flambeau.nn.Parameter(flambeau.ones(4), requires_grad=False)

    def forward(self, x: Any, times: Any) -> Any:
        return {"y": self.layers(self.layers(x)) * self.scale + x, "times": times + 1}


def graph_of(folder: Path) -> dict[str, tuple[str, list[str], Any]]:
    """The op, the inputs and the output's shape of each node of the graph in a folder's file."""
    (event,) = (each for each in events(folder) if 4 in each)
    graph = decode(event[4][0])
    assert decode(graph[4][0])[1] == [22]
    found = {}
    for node in map(decode, graph[1]):
        shape = None
        for attribute in map(decode, node.get(5, [])):
            assert attribute[1] == [b"_output_shapes"]
            (sizes,) = decode(decode(attribute[2][0])[1][0])[7]
            shape = [decode(each)[1][0] for each in decode(sizes).get(2, [])]
        found[node[1][0].decode()] = node[2][0].decode(), [each.decode() for each in node.get(3, [])], shape
    return found


def test_graphs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model = Residual()
    model.layers[0].eval()
    before = flambeau.get_rng_state()
    with SummaryWriter(tmp_path) as writer:
        writer.add_graph(model, (flambeau.ones(2, 4), flambeau.arange(3)), verbose=True)
    graph = graph_of(tmp_path)
    linear = "Residual/Sequential[layers]/Linear[0]"
    assert graph["input/0"] == ("IO Node", [], [2, 4])
    assert graph[f"{linear}/weight"] == ("Parameter", [], [4, 4])
    assert graph["Residual/scale"] == ("Parameter", [], [4])
    assert graph[f"{linear}/Addmm"] == ("Addmm", [f"{linear}/bias", "input/0", f"{linear}/T"], [2, 4])
    assert graph[f"{linear}/Addmm_1"][1] == [f"{linear}/bias", f"{linear}/Addmm", f"{linear}/T_1"]
    assert graph["Residual/Mul"] == ("Mul", [f"{linear}/Addmm_1", "Residual/scale"], None)
    assert graph["Residual/Add"] == ("Add", ["Residual/Mul", "input/0"], [2, 4])
    assert graph["output/0"] == ("IO Node", ["Residual/Add"], [2, 4])
    assert graph["output/1"] == ("IO Node", [], [3])  # whole numbers are not differentiated
    assert "Residual/Add = Add(Residual/Mul, input/0)" in capsys.readouterr().out
    assert [each.training for each in model.modules()] == [True, True, False, True]  # all as before
    assert not model.scale.requires_grad
    assert model.layers[0].weight.grad is None
    assert not model._forward_hooks
    assert flambeau.equal(flambeau.get_rng_state(), before)


def test_graphs_of_deep_and_of_failing_models(tmp_path: Path) -> None:
    deep = flambeau.nn.Sequential(*[flambeau.nn.Tanh() for _ in range(3000)])
    with SummaryWriter(tmp_path) as writer:
        with pytest.raises(ValueError, match="input_to_model"):
            writer.add_graph(deep)
        model = Residual()
        with pytest.raises(RuntimeError, match="shape"):
            writer.add_graph(model, (flambeau.rand(2, 3), flambeau.arange(3)))
        assert model.training
        assert not model.layers[0]._forward_hooks
        writer.add_graph(deep, flambeau.rand(1))
    graph = graph_of(tmp_path)
    assert len(graph) == 3002
    assert graph["Sequential/Tanh[2999]/Tanh"][1] == ["Sequential/Tanh[2998]/Tanh"]


def test_text_and_tensors(tmp_path: Path) -> None:
    with SummaryWriter(tmp_path) as writer:
        writer.add_text("note", "hello **ö**", 2)
        writer.add_tensor("matrix", flambeau.arange(4.0).view(2, 2), 1)
        writer.add_tensor("counts", flambeau.tensor([1, -2]), 1)
        with pytest.raises(ValueError, match="unsupported tensor dtype"):
            writer.add_tensor("complex", flambeau.ones(1, dtype=flambeau.complex64))
    found = values(tmp_path)
    note = found["note/text_summary"]
    assert plugin(note)[0] == "text"
    assert decode(note[8][0]) == {1: [7], 2: [b"\x12\x02\x08\x01"], 8: ["hello **ö**".encode()]}
    matrix, counts = decode(found["matrix"][8][0]), decode(found["counts"][8][0])
    assert matrix[2] == [b"\x12\x02\x08\x02" * 2]
    assert np.frombuffer(matrix[5][0], "<f4").tolist() == [0, 1, 2, 3]
    assert counts[10] == [b"\1" + varint(-2)]


def test_audio(tmp_path: Path) -> None:
    with SummaryWriter(tmp_path) as writer:
        writer.add_audio("sound", flambeau.tensor([[-1.0, 0.0, 0.5, 1.0]]), 1, sample_rate=8000)
        with pytest.warns(UserWarning, match="clipped"):
            writer.add_audio("loud", np.array([2.0, 0]), 1)
        with pytest.raises(AssertionError, match="1 dimensional"):
            writer.add_audio("wrong", np.ones((2, 2)))
    sound = decode(values(tmp_path)["sound"][6][0])
    assert (sound[1], sound[2], sound[3], sound[5]) == ([8000.0], [1], [4], [b"audio/wav"])
    with wave.open(io.BytesIO(sound[4][0])) as file:
        assert file.getframerate() == 8000
        assert np.frombuffer(file.readframes(4), "<i2").tolist() == [-32767, 0, 16383, 32767]


def test_precision_and_recall(tmp_path: Path) -> None:
    labels, predictions = [0, 1, 1, 0, 1], [0.1, 0.9, 0.4, 0.5, 0.8]
    with SummaryWriter(tmp_path) as writer:
        writer.add_pr_curve("curve", np.array(labels), np.array(predictions), 1, num_thresholds=10)
        writer.add_pr_curve_raw("raw", [5, 4], [3, 2], [0, 1], [0, 1], [0.6, 0.7], [1.0, 0.8], 1, num_thresholds=2)
    found = values(tmp_path)
    assert plugin(found["curve"]) == ("pr_curves", b"\x10\n")
    curve = np.frombuffer(decode(found["curve"][8][0])[5][0], "<f4").reshape(6, 10)
    for index in range(10):
        said = np.floor(np.array(predictions) * 9) >= index
        true = np.array(labels) == 1
        counts = [(said & true).sum(), (said & ~true).sum(), (~said & ~true).sum(), (~said & true).sum()]
        assert curve[:4, index].tolist() == counts
    assert curve[4, :5].tolist() == pytest.approx([0.6, 0.75, 0.75, 0.75, 2 / 3])
    assert curve[5, -3:].tolist() == pytest.approx([2 / 3, 1 / 3, 0])


def test_layouts_and_meshes(tmp_path: Path) -> None:
    with SummaryWriter(tmp_path) as writer:
        writer.add_custom_scalars({"A": {"x": ["Multiline", ["a", "b"]], "y": ["Margin", ["v", "l", "u"]]}})
        writer.add_mesh("mesh", flambeau.zeros(1, 4, 3), faces=flambeau.zeros(1, 2, 3), config_dict={"a": 1})
        with pytest.raises(AssertionError, match="margin"):
            writer.add_custom_scalars_marginchart(["a"])
    found = values(tmp_path)
    layout = decode(found["custom_scalars__config__"][8][0])[8][0]
    charts = [decode(each) for each in decode(decode(layout)[2][0])[2]]
    assert decode(charts[0][2][0])[1] == [b"a", b"b"]
    assert decode(decode(charts[1][3][0])[1][0]) == {1: [b"v"], 2: [b"l"], 3: [b"u"]}
    assert plugin(found["mesh_VERTEX"]) == ("mesh", b'\x12\4mesh\x18\1*\x08{"a": 1}2\3\1\4\x038\6')
    assert plugin(found["mesh_FACE"]) == ("mesh", b'\x12\4mesh\x18\2*\x08{"a": 1}2\3\1\2\x038\6')


def test_hyperparameters(tmp_path: Path) -> None:
    with SummaryWriter(tmp_path) as writer:
        writer.add_hparams(
            {"lr": 0.1, "name": "sgd", "flag": True}, {"accuracy": 0.9}, {"lr": [0.1, 0.2]}, "first", global_step=5
        )
        for wrong, error in (
            ((1, 2), TypeError),
            (({"a": [1]}, {}), ValueError),
            (({"a": 1}, {}, {"a": 3}), TypeError),
        ):
            with pytest.raises(error, match=r"dictionary|should be"):
                writer.add_hparams(*wrong)
    assert [each.name for each in tmp_path.iterdir() if each.is_dir()] == ["first"]
    found = values(tmp_path / "first")
    experiment = decode(decode(plugin(found["_hparams_/experiment"])[1])[2][0])
    infos = [decode(each) for each in experiment[4]]
    assert [(each[1][0], each[4][0]) for each in infos] == [(b"lr", 3), (b"name", 1), (b"flag", 3)]
    assert [decode(each) for each in decode(infos[0][5][0])[1]] == [{2: [0.1]}, {2: [0.2]}]
    start = decode(decode(plugin(found["_hparams_/session_start_info"])[1])[3][0])
    pairs = [decode(each) for each in start[1]]
    assert {each[1][0]: decode(each[2][0]) for each in pairs} == {
        b"lr": {2: [0.1]}, b"name": {3: [b"sgd"]}, b"flag": {2: [1.0]},
    }  # fmt: skip
    assert found["accuracy"][2] == [np.float32(0.9)]
    assert found["accuracy"][0] == [5]


def test_embeddings(tmp_path: Path) -> None:
    points = flambeau.arange(6.0).view(3, 2)
    with SummaryWriter(tmp_path) as writer:
        writer.add_embedding(points, [["a", 1], ["b", 2], ["c", 3]], flambeau.ones(3, 3, 4, 4), 2, "e", ["name", "n"])
        writer.add_embedding(points)
        with pytest.raises(AssertionError, match="labels"):
            writer.add_embedding(points, ["a"])
    folder = tmp_path / "00002" / "e"
    assert (folder / "metadata.tsv").read_text() == "name\tn\na\t1\nb\t2\nc\t3\n"
    assert (folder / "tensors.tsv").read_text() == "0.0\t1.0\n2.0\t3.0\n4.0\t5.0\n"
    assert png((folder / "sprite.png").read_bytes()).shape == (8, 8, 3)
    config = (tmp_path / "projector_config.pbtxt").read_text()
    assert config.count("embeddings {") == 2
    assert 'tensor_path: "00002/e/tensors.tsv"' in config
    assert "single_image_dim: 4" in config


def test_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    writer = SummaryWriter(comment="_mine", filename_suffix=".end")
    (folder,) = (tmp_path / "runs").iterdir()
    (path,) = folder.iterdir()
    assert folder.name.endswith("_mine")
    assert path.name.startswith("events.out.tfevents.")
    assert path.name.endswith(".end")
    assert len(records(path)) == 1  # there at once
    writer.add_scalar("a", 1)
    writer.flush()
    assert len(records(path)) == 2
    writer.close()
    writer.close()
    writer.add_scalar("b", 1)  # begins a new file
    writer.close()
    assert len(list(folder.iterdir())) == 2


def test_waiting_events_reach_the_disk(tmp_path: Path) -> None:
    writer = FileWriter(tmp_path, max_queue=3)
    for _ in range(4):
        writer.add_summary(b"")
    assert len(events(tmp_path)) == 5
    writer.close()


def test_purge_step(tmp_path: Path) -> None:
    SummaryWriter(tmp_path, purge_step=7).close()
    _, version, session = events(tmp_path)
    assert (version[2], version[3]) == ([7], [b"brain.Event:2"])
    assert (session[2], session[7]) == ([7], [b"\x08\x01"])


def test_refusals(tmp_path: Path) -> None:
    with SummaryWriter(tmp_path) as writer:
        for method, arguments in (("onnx_graph", 1), ("video", 2)):
            with pytest.raises(NotImplementedError, match=f"add_{method}"):
                getattr(writer, f"add_{method}")(*[None] * arguments)
        with pytest.raises(AssertionError, match="should contain one element"):
            writer.add_scalar("a", flambeau.ones(2))
        with pytest.raises(NotImplementedError, match="expected"):
            writer.add_scalar("a", None)
        with pytest.raises(NotImplementedError, match="torch tensor are expected"):
            writer.add_scalar("a", [1.0])
        with pytest.raises(ValueError, match="could not convert"):
            writer.add_scalar("a", "b")
        with pytest.raises(TypeError, match="tag"):
            writer.add_scalar(3, 1.0)  # type: ignore[arg-type]
        with pytest.raises(TypeError, match="text"):
            writer.add_text("a", 3)  # type: ignore[arg-type]
    assert len(events(tmp_path)) == 1
