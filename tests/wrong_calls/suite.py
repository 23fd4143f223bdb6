"""Runs the wrong calls of a part of the API, or of the whole of it, and reports what differs."""

from __future__ import annotations

import argparse
import fnmatch
import json
import sys
import zlib
from pathlib import Path

import torch as pytorch

import flambeau
from flambeau._dispatch.public.registry import load_all

from . import compare
from .run import Outcome, outcomes
from .valid import Group, groups


def chosen(only: str, every: int) -> list[Group]:
    """The groups whose names match `only`, every so many of them."""
    return [
        group
        for group in groups()
        if fnmatch.fnmatch(group.name, only) and zlib.crc32(group.name.encode()) % every == 0
    ]


def collected(library: str, only: str, every_group: int, every_call: int) -> dict[str, Outcome]:
    """The outcomes under one library."""
    pytorch.set_num_threads(1)
    if library == "flambeau":
        load_all()
    module = pytorch if library == "pytorch" else flambeau
    return dict(outcomes(chosen(only, every_group), module, every_call))


def _page(found: dict[str, list[str]], calls: int, wrong: int) -> str:
    lines = [
        f"{calls:,} calls, of which PyTorch refuses {wrong:,}:",
        "",
        "| difference | meaning | calls |",
        "|---|---|---|",
    ]
    lines += [f"| {kind} | {reason} | {len(found.get(kind, ())):,} |" for kind, reason in compare.REASONS.items()]
    return "\n".join(lines)


def main() -> int:
    """Run, compare with the list of known differences; 1 if there is something new, or an entry is out of date."""
    parser = argparse.ArgumentParser(prog="python -m tests.wrong_calls")
    parser.add_argument("--only", default="*", help="a pattern of the names of functions")
    parser.add_argument("--every", type=int, default=5, help="run every so many calls only")
    parser.add_argument("--collect", choices=("pytorch", "flambeau"), help="write the outcomes of one library, as JSON")
    parser.add_argument("--groups", type=int, default=16, help="take every so many functions only")
    parser.add_argument("--expected", type=Path, help="where PyTorch's outcomes are kept between runs")
    parser.add_argument("--update", action="store_true", help="write the list of known differences")
    options = parser.parse_args()
    part = options.only, options.groups, options.every
    if options.collect:
        json.dump(collected(options.collect, *part), sys.stdout)
        return 0
    if options.expected and options.expected.exists():
        expected = json.loads(options.expected.read_text())
    else:
        expected = collected("pytorch", *part)
        if options.expected:
            options.expected.write_text(json.dumps(expected))
    actual = collected("flambeau", *part)
    found = compare.differences(expected, actual)
    wrong = sum(expected.get(key, ["ok"]) != ["ok"] for key in actual)
    print(_page(found, len(actual), wrong))
    if options.update:
        compare.write_known(found)
        return 0
    return report(found, expected, actual)


def report(found: dict[str, list[str]], expected: dict[str, Outcome], actual: dict[str, Outcome]) -> int:
    """Print what is new and what is listed without need."""
    listed = compare.known()
    new = [
        f"{kind}: {key}: {expected[key]} in PyTorch, {actual[key]} in Flambeau"
        for kind, keys in found.items()
        for key in keys
        if not compare.is_known(listed, kind, key)
    ]
    old = compare.stale(listed, expected, actual)
    print("\n".join([*(f"new: {each}" for each in new), *(f"no longer: {each}" for each in old)]))
    return 1 if new or old else 0
