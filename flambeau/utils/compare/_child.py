"""The process in which a script is recorded: `python -m flambeau.utils.compare._child OPTIONS`, options as JSON."""

from __future__ import annotations

import contextlib
import json
import os
import runpy
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ._evidence import EvidenceOfRun
from ._float64 import Float64Recorder
from ._recorder import Recorder


def main(options: dict[str, Any]) -> None:
    """Run the script, and write its trace and what else was asked for into the folder."""
    folder = Path(options["folder"])
    sys.argv = [options["script"], *options["arguments"]]
    sys.path[0] = os.path.dirname(options["script"])
    with _recording(options, folder), contextlib.suppress(_Ended):
        _run(options["script"])


class _Ended(Exception):
    """The script has called `sys.exit`, and all was well."""


def _run(script: str) -> None:
    try:
        runpy.run_path(script, run_name="__main__")
    except SystemExit as error:
        if error.code not in (None, 0):
            raise
        raise _Ended from None


@contextlib.contextmanager
def _recording(options: dict[str, Any], folder: Path) -> Iterator[None]:
    mode, title, steps = options["mode"], options["title"], options["steps"]
    if mode == "pytorch":
        from ._pytorch import TorchRecorder

        foreign = TorchRecorder(title, steps)
        with foreign:
            yield
        foreign.trace.save(folder / "trace")
        return
    import flambeau

    from ..._torch._stand_in import stand_in_for_torch
    from ._draws import DrawsOfTheHost

    stand_in_for_torch()
    if mode == "cuda":
        flambeau.set_default_device("cuda")
    elif mode == "eager":
        flambeau.compiler.set_stance("force_eager")
    evidence = None if options["evidence"] is None else EvidenceOfRun(*options["evidence"])
    if mode == "float64":
        recorder: Recorder = Float64Recorder(title, steps=steps)
    else:
        recorder = Recorder(title, steps=steps, marks_only=options["marks_only"], evidence=evidence)
    with DrawsOfTheHost() if mode == "cuda" else contextlib.nullcontext(), recorder:
        yield
    recorder.finish().save(folder / "trace")
    if evidence is not None:
        evidence.save(folder / "evidence")
    if isinstance(recorder, Float64Recorder):
        recorder.reference.save(folder / "reference")


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
