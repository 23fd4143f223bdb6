"""Run one program under whatever `torch` its environment has, and print what it computed as one line of JSON.

    python child.py PROGRAM TIMES [CASE...]

A program is a file with a function `main()`, or a dictionary `CASES` of functions, that return numbers: tensors,
arrays, numbers, strings, and lists or dictionaries of these. A case that raises is an error of that case alone. Of
several TIMES the first is reported as `seconds`, the quickest of the others as `again`.
"""

from __future__ import annotations

import contextlib
import json
import logging
import math
import os
import runpy
import sys
import time
import traceback
import warnings
from collections.abc import Callable
from typing import Any

MARK = "compatibility: "
"""What the line with the results begins with; libraries print too."""
_MOST = 64
"""How many elements of a tensor are compared one by one; of a longer one as many, evenly spaced, and its sum."""


def plain(value: Any) -> Any:
    """The value in JSON's terms. Tensors become lists."""
    if isinstance(value, dict):
        return {str(key): plain(each) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(each) for each in value]
    if isinstance(value, (bool, str, type(None), int)):
        return value
    if hasattr(value, "detach"):
        value = value.detach()
        if value.is_complex():
            return [plain(value.real), plain(value.imag)]
        if value.is_floating_point():
            value = value.double()
        value = value.reshape(-1)
        elements = value.tolist()
    elif hasattr(value, "tolist"):
        elements = value.reshape(-1).tolist()
    else:
        return float(value) if math.isfinite(value) else str(float(value))
    if len(elements) > _MOST:
        step = -(-len(elements) // _MOST)
        elements = [*elements[::step], math.fsum(elements) / len(elements), len(elements)]
    return [each if not isinstance(each, float) or math.isfinite(each) else str(each) for each in elements]


def _run(function: Callable[[], Any]) -> dict[str, Any]:
    import numpy as np
    import torch

    torch.manual_seed(0)
    np.random.seed(0)  # noqa: NPY002  programs and libraries draw from it
    start = time.perf_counter()
    try:
        found = function()
        seconds = time.perf_counter() - start
        return {"seconds": seconds, "numbers": plain(found)}
    except (Exception, SystemExit) as error:
        place = traceback.extract_tb(error.__traceback__)[-1]
        text = " ".join(str(error).split())
        lines = "".join(traceback.format_exception(error)) if os.environ.get("COMPATIBILITY_TRACE") else ""
        return {
            "seconds": time.perf_counter() - start,
            "error": f"{type(error).__name__}: {text[:400]}",
            "place": f"{'/'.join(place.filename.split('/')[-3:])}:{place.lineno}",
            "trace": lines,
        }


def _run_times(function: Callable[[], Any], times: int) -> dict[str, Any]:
    first = _run(function)
    further = [_run(function)["seconds"] for _ in range(times - 1) if "error" not in first]
    return first | ({"again": min(further)} if further else {})


def main(path: str, times: int, only: list[str]) -> None:
    """Run the program's cases, or those whose names are given."""
    warnings.simplefilter("ignore")
    logging.disable(logging.WARNING)
    start = time.perf_counter()
    results: dict[str, Any] = {}
    with contextlib.redirect_stdout(sys.stderr):
        import torch

        torch.set_num_threads(2)
        torch_seconds = time.perf_counter() - start
        try:
            program = runpy.run_path(path, run_name="program")
        except Exception as error:
            cases: dict[str, Callable[[], Any]] = {}
            loading: dict[str, Any] = _run(lambda error=error: _again(error))
        else:
            cases = program.get("CASES") or {"main": program["main"]}
            loading = {}
        import_seconds = time.perf_counter() - start
        for name, function in cases.items():
            if not only or name in only:
                results[name] = _run_times(function, times)
    report = {
        "torch": str(torch.__version__),
        "torch_seconds": torch_seconds,
        "import_seconds": import_seconds,
        "loading": loading,
        "cases": results,
    }
    sys.stdout.write("\n" + MARK + json.dumps(report) + "\n")
    sys.stdout.flush()
    os._exit(0)  # libraries leave threads behind


def _again(error: Exception) -> None:
    raise error


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), sys.argv[3:])
