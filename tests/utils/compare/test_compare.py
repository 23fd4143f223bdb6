"""Traces: what they hold, their files, and what is found by comparing them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import flambeau
from flambeau._cli.main import main
from flambeau.utils import compare
from flambeau.utils.compare._alignment import aligned
from flambeau.utils.compare._digest import digest, relative_difference, summary

from ...support.oracle import pytorch
from .planted import train

PLANTED = str(Path(__file__).with_name("planted.py"))


def test_a_digest_changes_with_every_element_and_with_their_order() -> None:
    generator = np.random.default_rng(0)
    for shape in ((), (1,), (3,), (7, 5), (4096,), (3, 8192), (20001,)):
        array = generator.standard_normal(shape).astype(np.float32)
        before = digest(array)
        assert digest(array.copy()) == before
        for _ in range(20):
            changed = array.copy().reshape(-1)
            place = int(generator.integers(changed.size))
            changed[place] = np.nextafter(changed[place], np.float32(9))
            assert digest(changed.reshape(shape)) != before
        if array.size > 1:
            swapped = array.copy().reshape(-1)
            swapped[[0, -1]] = swapped[[-1, 0]]
            assert digest(swapped.reshape(shape)) != before


def test_a_digest_does_not_depend_on_gaps_in_memory() -> None:
    array = np.arange(60.0).reshape(6, 10)
    assert digest(array[:, ::2]) == digest(array[:, ::2].copy())
    assert digest(array.T) == digest(array.copy().T)


@pytest.mark.parametrize("size", [1e-6, 1e-3, 0.3])
def test_a_relative_difference_is_estimated_from_summaries(size: float) -> None:
    generator = np.random.default_rng(1)
    x = generator.standard_normal((300, 70))
    y = x + size * generator.standard_normal(x.shape)
    assert size / 3 < relative_difference(summary(x), summary(y)) < 3 * size
    assert relative_difference(summary(x), summary(x.copy())) == 0


def test_sequences_are_aligned_by_the_fewest_changes() -> None:
    assert aligned("abcabba", "cbabac") in ([(2, 0), (3, 2), (4, 3), (6, 4)], [(1, 1), (3, 2), (4, 3), (6, 4)],
                                            [(2, 0), (4, 1), (5, 3), (6, 4)], [(2, 0), (4, 1), (6, 2)])  # fmt: skip
    for one, other in (("abcd", "abd"), ("", "ab"), ("axbxc", "abc"), ("same", "same")):
        assert "".join(one[i] for i, _ in aligned(one, other)) == min(one, other, key=len)


def test_a_recorded_run_has_the_bits_of_a_plain_one() -> None:
    def run() -> list[np.ndarray]:
        flambeau.manual_seed(0)
        net = flambeau.nn.Sequential(flambeau.nn.Linear(4, 9), flambeau.nn.GELU(), flambeau.nn.Linear(9, 2))
        optimizer = flambeau.optim.Adam(net.parameters())
        for _ in range(3):
            optimizer.zero_grad()
            net(flambeau.randn(5, 4)).square().mean().backward()
            optimizer.step()
        return [each.detach().numpy().copy() for each in net.parameters()]

    plain = run()
    with compare.record() as trace:
        recorded = run()
    assert all(np.array_equal(one, other) for one, other in zip(plain, recorded, strict=True))
    assert {entry.step for entry in trace.entries} == {0, 1, 2, 3}  # the last are the copies of the parameters
    backward = [entry for entry in trace.entries if entry.name == "gelu_backward"]
    assert [entry.module for entry in backward] == ["Sequential.1"] * 3
    assert all("net(flambeau.randn(5, 4))" in entry.line for entry in backward)


def test_a_trace_survives_its_file(tmp_path: Path) -> None:
    with compare.record("a run") as trace:
        train(flambeau, steps=1)
    trace.save(tmp_path / "a.trace")
    loaded = compare.Trace.load(tmp_path / "a.trace")
    assert loaded.entries == trace.entries
    assert loaded.digests == trace.digests
    assert (loaded.title, loaded.about) == (trace.title, trace.about)
    assert not compare.traces(trace, tmp_path / "a.trace")
    (tmp_path / "b.trace").write_bytes(b"something else")
    with pytest.raises(ValueError, match="is not a trace"):
        compare.Trace.load(tmp_path / "b.trace")


def test_only_so_many_steps_are_recorded() -> None:
    with compare.record(steps=2) as trace:
        train(flambeau, steps=3)
    assert {entry.step for entry in trace.entries} == {0, 1}


def test_memory_that_nobody_wrote_is_no_difference() -> None:
    def run() -> None:
        flambeau.empty(1000).fill_(2).sum()

    assert not compare.functions(run, run)


def test_a_cast_to_half_precision_and_back_is_beyond_rounding() -> None:
    flambeau.manual_seed(1)
    x = flambeau.randn(50, 50)

    def other() -> flambeau.Tensor:
        return (x.bfloat16().float() @ x).sum()

    found = compare.functions(lambda: (x @ x).sum(), other)
    assert found.entry is not None
    assert found.entry.name == "to_copy"


def test_other_data_is_told_from_another_program() -> None:
    x = flambeau.ones(3, 4)
    y = flambeau.ones(3, 4)
    y[2, 1] = 5
    found = compare.functions(lambda: x.exp().sum(), lambda: y.exp().sum())
    assert found.first is not None
    assert found.first.kind == "data"


def test_a_loss_of_precision_shows_against_float64() -> None:
    x = flambeau.full((64,), 1e4)

    def variance() -> flambeau.Tensor:
        shifted = x + flambeau.arange(64) / 64
        return shifted.square().mean() - shifted.mean().square()

    found = compare.against_float64(variance)
    assert found.entry is not None
    assert found.entry.name == "sub"
    assert found.entry.line.endswith("return shifted.square().mean() - shifted.mean().square()")
    assert not compare.against_float64(lambda: flambeau.randn(30, 30).softmax(1).sum())


def test_the_command_finds_what_two_scripts_do_differently(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = Path(PLANTED).read_text(encoding="utf-8")
    other = tmp_path / "other.py"
    other.write_text(source.replace('1e-6 if bug == "epsilon" else 1e-5', "1e-6"), encoding="utf-8")
    page, program = tmp_path / "page.html", tmp_path / "small.py"
    given = [PLANTED, str(other), "--steps", "1", "--page", str(page), "--program", str(program)]
    assert main(["compare", *given]) == 1
    said = capsys.readouterr().out
    assert "the first difference: layer_norm in Net.blocks.0.norm of step 0" in said
    assert "q, k, v = self.qkv(self.norm(x)).chunk(3, -1)" in said
    text = page.read_text(encoding="utf-8")
    assert "layer_norm" in text
    assert "__DATA__" not in text
    ran = subprocess.run([sys.executable, str(program)], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert ran.stdout.count("tensor(") >= 2


def test_the_command_records_and_compares_traces(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    one, other = str(tmp_path / "one.trace"), str(tmp_path / "other.trace")
    assert main(["compare", PLANTED, "--record", one, "--steps", "1"]) == 0
    assert main(["compare", PLANTED, "--record", other, "--steps", "1", "--arguments", "mask"]) == 0
    assert main(["compare", one, other]) == 1
    assert "the first difference: triu in Net.blocks.0" in capsys.readouterr().out
    assert main(["compare", one, one]) == 0
    assert main(["compare", one]) == 2
    assert main(["compare", str(tmp_path / "nothing.py"), one]) == 2


def test_compiled_and_plain_runs_of_a_script_agree(tmp_path: Path) -> None:
    script = tmp_path / "compiled.py"
    script.write_text(
        "import torch\n"
        "torch.manual_seed(0)\n"
        "net = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.GELU(), torch.nn.Linear(8, 1))\n"
        "optimizer = torch.optim.SGD(net.parameters(), lr=0.1)\n"
        "fast = torch.compile(net)\n"
        "for step in range(4):\n"
        "    optimizer.zero_grad()\n"
        "    fast(torch.randn(3, 4)).square().mean().backward()\n"
        "    optimizer.step()\n",
        encoding="utf-8",
    )
    found = compare.scripts(str(script), mode="compiled")
    assert not found
    assert len(found.one) == len(found.other) == 4 * 4 * 2  # gradients and parameters of four steps


@pytest.mark.skipif(pytorch is None, reason="PyTorch is not installed")
def test_the_same_script_under_pytorch_agrees_but_for_rounding() -> None:
    found = compare.scripts(PLANTED, mode="pytorch", steps=1)
    assert not found, str(found)
    assert "results in common" in str(found)
