"""Writers of event files."""

from __future__ import annotations

import itertools
import os
import socket
import time
from pathlib import Path
from typing import Any, NoReturn

from ..._core.process.locks import new_reentrant_lock
from . import _images, _summaries
from ._embedding import write_embedding
from ._graph import module_graph
from ._protobuf import data, double, integer, message
from ._records import write_record

_VERSION = "brain.Event:2"
_SESSION_START = 1
_numbers = itertools.count()


class FileWriter:
    """One event file, made at once; it gets its content after `max_queue` events or `flush_secs` seconds.

    Args:
        log_dir: the folder.
        max_queue (int): how many events wait before they are written. Default: `10`.
        flush_secs (float): after how many seconds waiting events are written. Default: `120`.
        filename_suffix (str): the end of the file's name. Default: `""`.

    Example:
        >>> import os, tempfile
        >>> folder = tempfile.mkdtemp()
        >>> writer = torch.utils.tensorboard.FileWriter(folder)
        >>> writer.close()
        >>> len(os.listdir(folder))
        1
    """

    def __init__(self, log_dir: Any, max_queue: int = 10, flush_secs: float = 120, filename_suffix: str = "") -> None:
        self._folder = Path(log_dir)
        self._most_waiting = max_queue
        self._longest_wait = flush_secs
        self._suffix = filename_suffix
        self._lock = new_reentrant_lock()
        self._file: Any = None
        self._waiting = 0
        self._flushed = 0.0
        self.reopen()

    def get_logdir(self) -> str:
        """The folder of the file."""
        return str(self._folder)

    def reopen(self) -> None:
        """Begin a new file after `close`."""
        with self._lock:
            if self._file is not None:
                return
            self._folder.mkdir(parents=True, exist_ok=True)
            now = time.time()
            name = f"events.out.tfevents.{int(now):010d}.{socket.gethostname()}.{os.getpid()}.{next(_numbers)}"
            self._file = (self._folder / (name + self._suffix)).open("wb")
            self._flushed = time.monotonic()
            writer = message(10, data(1, "flambeau.utils.tensorboard"))
            self._write(double(1, now), data(3, _VERSION), writer)
            self.flush()

    def add_summary(self, summary: bytes, global_step: Any = None, walltime: float | None = None) -> None:
        """Append an encoded summary."""
        self._event(message(5, summary), global_step, walltime)

    def _event(self, content: bytes, step: Any = None, walltime: float | None = None) -> None:
        when = double(1, time.time() if walltime is None else walltime)
        with self._lock:
            self.reopen()
            self._write(when, b"" if step is None else integer(2, int(step)), content)

    def _write(self, *fields: bytes) -> None:
        write_record(self._file, b"".join(fields))
        self._waiting += 1
        if self._waiting > self._most_waiting or time.monotonic() - self._flushed > self._longest_wait:
            self.flush()

    def flush(self) -> None:
        """Put everything on the disk."""
        with self._lock:
            if self._file is not None:
                self._file.flush()
            self._waiting = 0
            self._flushed = time.monotonic()

    def close(self) -> None:
        """Finish the file; a later event begins another one."""
        with self._lock:
            if self._file is not None:
                self._file.close()
                self._file = None


class SummaryWriter:
    """Writes what TensorBoard shows. It needs neither TensorBoard nor protobuf.

    Args:
        log_dir: the folder, by default one below `runs` that is named after the time and the machine.
        comment: ends the name of the default folder.
        purge_step: tells TensorBoard to forget events from this step on, after a crash and a restart.
        max_queue, flush_secs: how many events, and for how long, may wait before they are put on the disk.
        filename_suffix: ends the name of the file.

    Example:
        >>> import tempfile
        >>> with torch.utils.tensorboard.SummaryWriter(tempfile.mkdtemp()) as writer:
        ...     for step in range(3):
        ...         writer.add_scalar("loss", 1 / (step + 1), step)
    """

    def __init__(
        self,
        log_dir: Any = None,
        comment: str = "",
        purge_step: int | None = None,
        max_queue: int = 10,
        flush_secs: float = 120,
        filename_suffix: str = "",
    ) -> None:
        if not log_dir:
            log_dir = Path("runs") / (time.strftime("%b%d_%H-%M-%S_") + socket.gethostname() + comment)
        self.log_dir = str(log_dir)
        self.purge_step = purge_step
        self.max_queue = max_queue
        self.flush_secs = flush_secs
        self.filename_suffix = filename_suffix
        self.file_writer: FileWriter | None = self._new_file(self.log_dir)
        self.all_writers: dict[str, FileWriter] = {self.log_dir: self.file_writer}
        if purge_step is not None:
            self.file_writer._event(data(3, _VERSION), purge_step)
            self.file_writer._event(message(7, integer(1, _SESSION_START)), purge_step)

    def _new_file(self, folder: str) -> FileWriter:
        return FileWriter(folder, self.max_queue, self.flush_secs, self.filename_suffix)

    def _get_file_writer(self) -> FileWriter:
        if self.file_writer is None:
            self.file_writer = self._new_file(self.log_dir)
            self.all_writers = {self.log_dir: self.file_writer}
        return self.file_writer

    def get_logdir(self) -> str:
        """The folder of the event files."""
        return self.log_dir

    def _add(self, summary: bytes, global_step: Any, walltime: float | None) -> None:
        self._get_file_writer().add_summary(summary, global_step, walltime)

    def add_scalar(
        self,
        tag: str,
        scalar_value: Any,
        global_step: Any = None,
        walltime: float | None = None,
        new_style: bool = False,
        double_precision: bool = False,
    ) -> None:
        """A number, such as the loss of a step."""
        summary = _summaries.scalar(tag, scalar_value, new_style=new_style, double_precision=double_precision)
        self._add(summary, global_step, walltime)

    def add_scalars(
        self, main_tag: str, tag_scalar_dict: dict[str, Any], global_step: Any = None, walltime: float | None = None
    ) -> None:
        """Several numbers in one chart; each gets a file in a folder of its own."""
        base = self._get_file_writer().get_logdir()
        for tag, value in tag_scalar_dict.items():
            folder = f"{base}/{main_tag.replace('/', '_')}_{tag}"
            if folder not in self.all_writers:
                self.all_writers[folder] = self._new_file(folder)
            self.all_writers[folder].add_summary(_summaries.scalar(main_tag, value), global_step, walltime)

    def add_tensor(self, tag: str, tensor: Any, global_step: Any = None, walltime: float | None = None) -> None:
        """All elements of a tensor."""
        self._add(_summaries.tensor_proto(tag, tensor), global_step, walltime)

    def add_histogram(
        self,
        tag: str,
        values: Any,
        global_step: Any = None,
        bins: Any = "tensorflow",
        walltime: float | None = None,
        max_bins: int | None = None,
    ) -> None:
        """The distribution of values; `bins` as for `numpy.histogram`, or 'tensorflow'."""
        self._add(_summaries.histogram(tag, values, bins, max_bins), global_step, walltime)

    def add_histogram_raw(
        self,
        tag: str,
        min: float,
        max: float,
        num: int,
        sum: float,
        sum_squares: float,
        bucket_limits: Any,
        bucket_counts: Any,
        global_step: Any = None,
        walltime: float | None = None,
    ) -> None:
        """A histogram that is known already."""
        summary = _summaries.histogram_raw(tag, min, max, num, sum, sum_squares, bucket_limits, bucket_counts)
        self._add(summary, global_step, walltime)

    def add_image(
        self,
        tag: str,
        img_tensor: Any,
        global_step: Any = None,
        walltime: float | None = None,
        dataformats: str = "CHW",
    ) -> None:
        """An image: uint8, or numbers from 0 to 1; `dataformats` names its dimensions."""
        self._add(_summaries.image(tag, img_tensor, dataformats), global_step, walltime)

    def add_images(
        self,
        tag: str,
        img_tensor: Any,
        global_step: Any = None,
        walltime: float | None = None,
        dataformats: str = "NCHW",
    ) -> None:
        """A batch of images as a grid, eight in a row."""
        self._add(_summaries.image(tag, img_tensor, dataformats), global_step, walltime)

    def add_figure(
        self, tag: str, figure: Any, global_step: Any = None, close: bool = True, walltime: float | None = None
    ) -> None:
        """A figure of Matplotlib, or a list of them."""
        several = isinstance(figure, list)
        figures = figure if several else [figure]
        drawn = [_images.draw_figure(each) for each in figures]
        if close:
            from matplotlib import pyplot

            for each in figures:
                pyplot.close(each)
        if several:
            import numpy as np

            self.add_images(tag, np.stack(drawn), global_step, walltime, dataformats="NHWC")
        else:
            self.add_image(tag, drawn[0], global_step, walltime, dataformats="HWC")

    def add_audio(
        self,
        tag: str,
        snd_tensor: Any,
        global_step: Any = None,
        sample_rate: int = 44100,
        walltime: float | None = None,
    ) -> None:
        """Sound in one channel: numbers from -1 to 1."""
        self._add(_summaries.audio(tag, snd_tensor, sample_rate), global_step, walltime)

    def add_text(self, tag: str, text_string: str, global_step: Any = None, walltime: float | None = None) -> None:
        """Log a text in Markdown."""
        self._add(_summaries.text(tag, text_string), global_step, walltime)

    def add_pr_curve(
        self,
        tag: str,
        labels: Any,
        predictions: Any,
        global_step: Any = None,
        num_thresholds: int = 127,
        weights: Any = None,
        walltime: float | None = None,
    ) -> None:
        """Precision and recall of predictions from 0 to 1 for labels of 0 and 1."""
        self._add(_summaries.pr_curve(tag, labels, predictions, num_thresholds, weights), global_step, walltime)

    def add_pr_curve_raw(
        self,
        tag: str,
        true_positive_counts: Any,
        false_positive_counts: Any,
        true_negative_counts: Any,
        false_negative_counts: Any,
        precision: Any,
        recall: Any,
        global_step: Any = None,
        num_thresholds: int = 127,
        weights: Any = None,
        walltime: float | None = None,
    ) -> None:
        """A curve of precision and recall that is known already."""
        counts = true_positive_counts, false_positive_counts, true_negative_counts, false_negative_counts
        summary = _summaries.pr_curve_raw(tag, (*counts, precision, recall), num_thresholds)
        self._add(summary, global_step, walltime)

    def add_mesh(
        self,
        tag: str,
        vertices: Any,
        colors: Any = None,
        faces: Any = None,
        config_dict: dict[str, Any] | None = None,
        global_step: Any = None,
        walltime: float | None = None,
    ) -> None:
        """Points in space, with colours and triangles if there are any."""
        self._add(_summaries.mesh(tag, vertices, colors, faces, config_dict), global_step, walltime)

    def add_custom_scalars(self, layout: dict[str, dict[str, list[Any]]]) -> None:
        """Which scalars share a chart: {category: {chart: ["Multiline" or "Margin", tags]}}."""
        self._add(_summaries.custom_scalars(layout), None, None)

    def add_custom_scalars_multilinechart(
        self, tags: list[str], category: str = "default", title: str = "untitled"
    ) -> None:
        """One chart of several scalars."""
        self.add_custom_scalars({category: {title: ["Multiline", tags]}})

    def add_custom_scalars_marginchart(
        self, tags: list[str], category: str = "default", title: str = "untitled"
    ) -> None:
        """One chart of a scalar with its lower and upper bound."""
        self.add_custom_scalars({category: {title: ["Margin", tags]}})

    def add_embedding(
        self,
        mat: Any,
        metadata: Any = None,
        label_img: Any = None,
        global_step: int | None = None,
        tag: str = "default",
        metadata_header: Any = None,
    ) -> None:
        """Points of many dimensions for the projector, with labels and images."""
        folder = Path(self._get_file_writer().get_logdir())
        write_embedding(folder, tag, global_step or 0, mat, metadata, metadata_header, label_img)

    def add_hparams(
        self,
        hparam_dict: dict[str, Any],
        metric_dict: dict[str, Any],
        hparam_domain_discrete: dict[str, list[Any]] | None = None,
        run_name: str | None = None,
        global_step: int | None = None,
    ) -> None:
        """Hyperparameters and the metrics that they led to, as a run of its own."""
        summaries = _summaries.hyperparameters(hparam_dict, metric_dict, hparam_domain_discrete)
        folder = Path(self._get_file_writer().get_logdir()) / (run_name or str(time.time()))
        with SummaryWriter(folder) as run:
            for summary in summaries:
                run._add(summary, global_step, None)
            for name, value in metric_dict.items():
                run.add_scalar(name, value, global_step)

    def add_graph(
        self, model: Any, input_to_model: Any = None, verbose: bool = False, use_strict_trace: bool = True
    ) -> None:
        """The graph of a model that is called once, in evaluation mode, on a tensor or a tuple of arguments.

        It shows the differentiable ops, each in the box of the module that called it. `verbose` prints it, too.
        """
        if input_to_model is None:
            raise ValueError("add_graph needs input_to_model, a tensor or a tuple of arguments to call the model with")
        graph, lines = module_graph(model, input_to_model)
        if verbose:
            print(*lines, sep="\n")  # noqa: T201
        self._get_file_writer()._event(data(4, graph))

    def add_onnx_graph(self, prototxt: Any) -> NoReturn:
        """The graph of an ONNX file: not possible here."""
        raise NotImplementedError("add_onnx_graph needs the onnx package: open the file with a viewer for ONNX instead")

    def add_video(
        self, tag: str, vid_tensor: Any, global_step: Any = None, fps: int = 4, walltime: float | None = None
    ) -> NoReturn:
        """A video: not possible here."""
        raise NotImplementedError("add_video needs a video encoder: write some of the frames with add_images instead")

    def add_image_with_boxes(
        self,
        tag: str,
        img_tensor: Any,
        box_tensor: Any,
        global_step: Any = None,
        walltime: float | None = None,
        rescale: float = 1,
        dataformats: str = "CHW",
        labels: Any = None,
    ) -> None:
        """An image with boxes, each given by its left, top, right and bottom. It is drawn with Pillow."""
        labels = [labels] if isinstance(labels, str) else labels
        summary = _summaries.image_with_boxes(tag, img_tensor, box_tensor, rescale, dataformats, labels)
        self._add(summary, global_step, walltime)

    def flush(self) -> None:
        """Put everything on the disk."""
        for each in self.all_writers.values():
            each.flush()

    def close(self) -> None:
        """Finish the files; a later call of another method begins new ones."""
        for each in self.all_writers.values():
            each.close()
        self.file_writer = None
        self.all_writers = {}

    def __enter__(self) -> SummaryWriter:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()
