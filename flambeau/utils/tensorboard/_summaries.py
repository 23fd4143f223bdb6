"""The messages of event files: one function for each kind of summary, which gives its encoded value."""

from __future__ import annotations

import io
import json
import warnings
import wave
from typing import Any

import numpy as np

from flambeau import Tensor, complex64, float32

from . import _images
from ._protobuf import data, double, integer, integers, message, single

_DT_FLOAT, _DT_DOUBLE, _DT_STRING = 1, 2, 7
_TENSOR_FIELDS = {
    "float32": (_DT_FLOAT, 5), "float64": (_DT_DOUBLE, 6), "int32": (3, 7), "uint8": (4, 7), "int16": (5, 7),
    "int8": (6, 7), "int64": (9, 10), "bool": (10, 11),
}  # fmt: skip
"""The number of each element type, and of the field that holds its values."""
_MOST_THRESHOLDS = 127


def as_array(value: Any) -> Any:
    """Anything with numbers as an array: a tensor, an array, a number, a list."""
    if isinstance(value, Tensor):
        tensor: Any = value.detach().cpu()
        try:
            return tensor.numpy()
        except TypeError:  # a type that NumPy does not have
            return tensor.to(complex64 if tensor.is_complex() else float32).numpy()
    if isinstance(value, (np.ndarray, np.generic, int, float, complex, list, tuple)):
        return np.asarray(value)
    raise NotImplementedError(f"Got {type(value)}, but numpy array or torch tensor are expected.")


def as_number(value: Any) -> float:
    """The one number in a scalar."""
    if isinstance(value, str):
        raise ValueError(f"could not convert string to float: {value[:100]!r}")
    if isinstance(value, (list, tuple)):
        raise NotImplementedError(f"Got {type(value)}, but one number, a numpy array or torch tensor are expected.")
    array = as_array(value)
    if array.size != 1:
        raise AssertionError(
            "Tensor should contain one element (0 dimensions). "
            f"Was given size: {array.size} and {array.ndim} dimensions."
        )
    return float(array.reshape(()))


def _value(tag: str, *fields: bytes, plugin: str | None = None, content: bytes = b"") -> bytes:
    """A summary's value: its tag, what it shows, and the plugin that shows it."""
    if not isinstance(tag, str):
        raise TypeError(f"a tag must be a string, not {type(tag).__name__}")
    metadata = b"" if plugin is None else message(9, message(1, data(1, plugin), data(2, content)))
    return message(1, data(1, tag), *fields, metadata)


def _shape(shape: tuple[int, ...]) -> bytes:
    return message(2, *(message(2, integer(1, size)) for size in shape))


def scalar(tag: str, value: Any, *, new_style: bool = False, double_precision: bool = False) -> bytes:
    """A summary of one number."""
    number = as_number(value)
    if not new_style:
        return _value(tag, single(2, number))
    kind = (integer(1, _DT_DOUBLE), double(6, number)) if double_precision else (
        integer(1, _DT_FLOAT), single(5, number))  # fmt: skip
    return _value(tag, message(8, *kind), plugin="scalars")


def tensor_proto(tag: str, value: Any) -> bytes:
    """A tensor as it is."""
    array = as_array(value)
    if array.dtype.name not in _TENSOR_FIELDS:
        raise ValueError(f"{tag} has an unsupported tensor dtype: {array.dtype.name}")
    kind, number = _TENSOR_FIELDS[array.dtype.name]
    flat = array.reshape(-1)
    values = data(number, flat.tobytes()) if array.dtype.kind == "f" else integers(number, flat.tolist())
    return _value(tag, message(8, integer(1, kind), _shape(array.shape), values), plugin="tensor")


def text(tag: str, content: str) -> bytes:
    """A summary of a text in Markdown."""
    if not isinstance(content, str):
        raise TypeError(f"a text must be a string, not {type(content).__name__}")
    proto = message(8, integer(1, _DT_STRING), _shape((1,)), data(8, content))
    return _value(f"{tag}/text_summary", proto, plugin="text")


def image(tag: str, value: Any, dataformats: str) -> bytes:
    """An image, or several as one."""
    return _picture(tag, _images.to_bytes(_images.to_rows(as_array(value), dataformats)))


def image_with_boxes(tag: str, value: Any, boxes: Any, rescale: float, dataformats: str, labels: Any) -> bytes:
    """An image with red boxes; labels that are not as many as boxes are left out."""
    rows = _images.to_bytes(_images.to_rows(as_array(value), dataformats))
    corners = as_array(boxes)
    if corners.ndim != 2 or corners.shape[1] != 4:
        raise ValueError(
            f"boxes are rows of left, top, right and bottom: their shape is [n, 4], not {list(corners.shape)}"
        )
    if labels is not None and len(labels) != len(corners):
        labels = None
    return _picture(tag, _images.draw_boxes(rows, corners, labels, rescale))


def _picture(tag: str, rows: Any) -> bytes:
    height, width, channels = rows.shape
    content = data(4, _images.encode_png(rows))
    return _value(tag, message(4, integer(1, height), integer(2, width), integer(3, channels), content))


def audio(tag: str, value: Any, sample_rate: int) -> bytes:
    """Sound in one channel, as numbers from -1 to 1."""
    samples = as_array(value).squeeze()
    if samples.ndim != 1:
        raise AssertionError(f"input tensor should be 1 dimensional: its shape is {list(samples.shape)}")
    if abs(samples).max(initial=0) > 1:
        warnings.warn(
            "the amplitude of the audio is out of range: it is clipped to -1 and 1", UserWarning, stacklevel=3
        )
    encoded = (np.clip(samples, -1, 1) * 32767).astype("<i2")
    file = io.BytesIO()
    with wave.open(file, "wb") as sound:
        sound.setnchannels(1)
        sound.setsampwidth(2)
        sound.setframerate(sample_rate)
        sound.writeframes(encoded.tobytes())
    fields = single(1, sample_rate), integer(2, 1), integer(3, len(encoded)), data(4, file.getvalue())
    return _value(tag, message(6, *fields, data(5, "audio/wav")))


# ----- histograms -----------------------------------------------------------------------------------------------------


def _tensorflow_bins() -> Any:
    """Bins that grow by a tenth from 1e-12 on, to both sides of zero."""
    edges, edge = [], 1e-12
    while edge < 1e20:
        edges.append(edge)
        edge *= 1.1
    positive = np.array(edges)
    return np.concatenate([-positive[::-1], [0.0], positive])


def histogram(tag: str, values: Any, bins: Any, max_bins: int | None) -> bytes:
    """How often values fall into bins; the empty bins at the ends are left out."""
    flat = as_array(values).reshape(-1).astype(np.float64)
    if flat.size == 0:
        raise ValueError("The input has no element.")
    counts, edges = np.histogram(flat, bins=_tensorflow_bins() if bins == "tensorflow" else bins)
    if max_bins is not None and len(counts) > max_bins:
        step = len(counts) // max_bins
        starts = np.arange(0, len(counts), step)
        counts, edges = np.add.reduceat(counts, starts), np.append(edges[starts], edges[-1])
    filled = np.flatnonzero(counts)
    first, last = (filled[0], filled[-1] + 1) if filled.size else (0, len(counts))
    return histogram_raw(
        tag, flat.min(), flat.max(), len(flat), flat.sum(), flat @ flat, edges[first : last + 1],
        [0, *counts[first:last]],
    )  # fmt: skip


def histogram_raw(
    tag: str, low: float, high: float, num: float, total: float, sum_squares: float, limits: Any, counts: Any
) -> bytes:
    """A histogram that is known already: the upper end of each bin, and the number of values in it."""
    limits, counts = (np.asarray(as_array(list(each)), "<f8").reshape(-1) for each in (limits, counts))
    if len(limits) != len(counts):
        raise ValueError(f"len(bucket_limits) != len(bucket_counts): {len(limits)} and {len(counts)}")
    facts = [double(field, float(each)) for field, each in enumerate((low, high, num, total, sum_squares), 1)]
    return _value(tag, message(5, *facts, data(6, limits.tobytes()), data(7, counts.tobytes())))


# ----- precision and recall -------------------------------------------------------------------------------------------


def pr_curve(tag: str, labels: Any, predictions: Any, num_thresholds: int, weights: Any) -> bytes:
    """Precision and recall of predictions from 0 to 1 at evenly spaced thresholds."""
    num_thresholds = min(num_thresholds, _MOST_THRESHOLDS)
    truth, scores = (as_array(each).reshape(-1).astype(np.float64) for each in (labels, predictions))
    weight = np.broadcast_to(1.0 if weights is None else as_array(weights).reshape(-1).astype(np.float64), truth.shape)
    bucket = np.floor(scores * (num_thresholds - 1)).astype(np.int64)

    def counts_from_above(each: Any) -> Any:
        return np.bincount(bucket, each * weight, num_thresholds)[:num_thresholds][::-1].cumsum()[::-1]

    true_positive, false_positive = counts_from_above(truth), counts_from_above(1 - truth)
    true_negative, false_negative = false_positive[0] - false_positive, true_positive[0] - true_positive
    smallest = 1e-7
    precision = true_positive / np.maximum(smallest, true_positive + false_positive)
    recall = true_positive / np.maximum(smallest, true_positive + false_negative)
    table = true_positive, false_positive, true_negative, false_negative, precision, recall
    return pr_curve_raw(tag, table, num_thresholds)


def pr_curve_raw(tag: str, table: Any, num_thresholds: int) -> bytes:
    """A curve that is known already: counts of true and false positives and negatives, precision, recall."""
    values = np.stack([as_array(each).reshape(-1) for each in table]).astype("<f4")
    proto = message(8, integer(1, _DT_FLOAT), _shape(values.shape), data(5, values.tobytes()))
    return _value(tag, proto, plugin="pr_curves", content=integer(2, min(num_thresholds, _MOST_THRESHOLDS)))


# ----- meshes, layouts ------------------------------------------------------------------------------------------------


def mesh(tag: str, vertices: Any, colors: Any, faces: Any, config: dict[str, Any] | None) -> bytes:
    """A cloud of points, or a surface."""
    parts = [(kind, name, as_array(each)) for kind, name, each in (
        (1, "VERTEX", vertices), (2, "FACE", faces), (3, "COLOR", colors)) if each is not None]  # fmt: skip
    components = sum(1 << kind for kind, _, _ in parts)
    described = json.dumps({} if config is None else config, sort_keys=True)
    encoded = b""
    for kind, name, array in parts:
        content = data(2, tag) + integer(3, kind) + data(5, described) + integers(6, array.shape)
        values = array.reshape(-1).astype("<f4").tobytes()
        proto = message(8, integer(1, _DT_FLOAT), _shape(array.shape), data(5, values))
        encoded += _value(f"{tag}_{name}", proto, plugin="mesh", content=content + integer(7, components))
    return encoded


def custom_scalars(layout: dict[str, dict[str, list[Any]]]) -> bytes:
    """Which charts TensorBoard shows together: {category: {chart: ["Multiline" or "Margin", tags]}}."""
    categories = []
    for category, charts in layout.items():
        encoded = []
        for title, (kind, tags) in charts.items():
            if kind == "Margin":
                if len(tags) != 3:
                    raise AssertionError(
                        f"a margin chart has a value, a lower and an upper bound, not {len(tags)} tags"
                    )
                chart = message(3, message(1, *(data(number, each) for number, each in enumerate(tags, 1))))
            else:
                chart = message(2, *(data(1, each) for each in tags))
            encoded.append(message(2, data(1, title), chart))
        categories.append(message(2, data(1, category), *encoded))
    proto = message(8, integer(1, _DT_STRING), _shape(()), data(8, b"".join(categories)))
    return _value("custom_scalars__config__", proto, plugin="custom_scalars")


# ----- hyperparameters ------------------------------------------------------------------------------------------------


def _hyperparameter(name: str, value: Any) -> tuple[int, bytes]:
    """The kind of a hyperparameter, and its value as a message."""
    if isinstance(value, str):
        return 1, data(3, value)
    if isinstance(value, (bool, int, float, np.number)):
        return 3, double(2, float(value))
    if isinstance(value, Tensor):
        return 3, double(2, as_number(value))
    raise ValueError(f"value should be one of int, float, str, bool, or torch.Tensor: {name!r} is a {type(value)}")


def hyperparameters(values: Any, metrics: Any, domains: Any) -> list[bytes]:
    """What the table of hyperparameters needs: the experiment, the start of a session with its values, the end."""
    if not isinstance(values, dict) or not isinstance(metrics, dict):
        raise TypeError("hparam_dict and metric_dict should be dictionary.")
    if domains is not None and not isinstance(domains, dict):
        raise TypeError("hparam_domain_discrete should be a dictionary.")
    infos, start = [], []
    for name, value in values.items():
        if value is None:
            continue
        kind, encoded = _hyperparameter(name, value)
        start.append(message(1, data(1, name), message(2, encoded)))
        domain = b""
        if domains and name in domains:
            allowed = domains[name]
            if not isinstance(allowed, list) or not all(isinstance(each, type(value)) for each in allowed):
                raise TypeError(
                    f"parameter: hparam_domain_discrete[{name}] should be a list of same type as hparam_dict[{name}]."
                )
            domain = message(5, *(message(1, _hyperparameter(name, each)[1]) for each in allowed))
        infos.append(message(4, data(1, name), integer(4, kind), domain))
    infos += [message(5, message(1, data(2, name))) for name in metrics]
    parts = {"experiment": message(2, *infos), "session_start_info": message(3, *start),
             "session_end_info": message(4, integer(1, 1))}  # fmt: skip
    return [_value(f"_hparams_/{name}", plugin="hparams", content=content) for name, content in parts.items()]
