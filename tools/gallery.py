"""Run the programs in `examples/` and write their page: `make gallery`, or `python -m tools.gallery [NAME ...]`.

Each program runs whole, in a process of its own, and draws a picture. Pictures and run times are in
`docs/_static/gallery`, and `docs/gallery.md` shows them. Programs that are not named keep what an earlier run found.
`--page` writes only the page.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parent.parent
SHOWN = ROOT / "docs" / "_static" / "gallery"
TIMES = SHOWN / "times.json"
PAGE = ROOT / "docs" / "gallery.md"
INTRODUCTION = """\
# Gallery

Complete programs to copy, in the folder `examples/` of the repository. Each is one file that prints its progress, says
at its top how to run it, and draws its picture where `--out picture.png` says. `make gallery` runs all of them.

Run times are seconds of one whole run, imports and compilation of kernels included. Machine and date:"""


@dataclass
class Program:
    """A program of the gallery."""

    path: str
    title: str
    about: str
    processes: int = 0
    """How many `flambeau launch` starts; 0 runs the file itself."""

    @property
    def name(self) -> str:
        """A name for its page and picture."""
        return self.path.removesuffix(".py").replace("/", "_")

    @property
    def command(self) -> str:
        """What a user types."""
        if self.processes:
            return f"flambeau launch --nproc-per-node={self.processes} examples/{self.path}"
        return f"python examples/{self.path}"


PROGRAMS = (
    Program("char_gpt.py", "GPT on characters", "A small GPT learns to write, character by character."),
    Program("vae.py", "Variational autoencoder", "An autoencoder with a random code draws new digits."),
    Program("gan.py", "Generative adversarial network", "One network draws digits, another judges them; both learn."),
    Program("diffusion.py", "Diffusion", "A network learns to remove noise, and draws digits by removing it."),
    Program("digits/train.py", "Convolutional network", "The first program to read: data, training, test, curves."),
    Program("resnet_fine_tuning.py", "ResNet fine-tuning", "A second task: the new last layer first, then all layers."),
    Program("lstm_tagger.py", "LSTM tagger", "Parts of speech, by an LSTM that reads in both directions."),
    Program("ppo.py", "Reinforcement learning", "Proximal policy optimisation learns to balance a pole."),
    Program("graph_network.py", "Graph network", "Communities in a graph, from eight known members."),
    Program("neural_ode.py", "Neural ODE", "The law of a motion, learnt from its path."),
    Program("gaussian_process.py", "Gaussian process", "Regression with uncertainty, by Cholesky factors."),
    Program("style_transfer.py", "Style transfer", "L-BFGS changes pixels until an image has another's texture."),
    Program("quantized_inference.py", "Quantized inference", "Weights of 8 bits in place of 32."),
    Program("data_parallel.py", "Data parallel training", "Two processes, each with its own part of the data.", 2),
    Program("fully_sharded.py", "FSDP", "Two processes, each with half of the model, and a checkpoint.", 2),
    Program("digits/hogwild.py", "Hogwild", "Four processes change one network in shared memory, without locks."),
    Program("onnx_export.py", "ONNX export", "A network as an ONNX file, run by onnxruntime."),
    Program("profile_training.py", "Profiling", "Where the time of a training step goes."),
)


def run(program: Program) -> float:
    """Run a program and let it draw its picture; the seconds that it took."""
    picture = SHOWN / f"{program.name}.png"
    command = [sys.executable, "-m", "flambeau", "launch", f"--nproc-per-node={program.processes}"]
    if not program.processes:
        command = [sys.executable]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "MPLBACKEND": "agg", "TERM": "dumb"}
    picture.unlink(missing_ok=True)
    begin = time.perf_counter()
    subprocess.run([*command, ROOT / "examples" / program.path, f"--out={picture}"], env=environment, check=True)
    seconds = time.perf_counter() - begin
    if not picture.is_file():
        raise FileNotFoundError(f"{program.path} drew no picture: {picture}")
    return seconds


def page(times: dict[str, dict[str, object]]) -> str:
    """The gallery's page: a card for each program, with its picture and its run time."""
    dates = sorted(str(each["date"]) for each in times.values())
    machines = sorted({str(each["machine"]) for each in times.values()})
    lines = [
        INTRODUCTION,
        f"{', '.join(machines)}; " + (dates[0] if dates[0] == dates[-1] else f"{dates[0]} to {dates[-1]}") + ".",
        "",
        "<!-- Written by tools/gallery.py; do not edit. -->",
        "",
        "::::{grid} 1 2 3 3",
        ":gutter: 3",
        "",
    ]
    for program in PROGRAMS:
        lines += [
            f":::{{grid-item-card}} {program.title}",
            f":link: gallery/{program.name}",
            ":link-type: doc",
            f":img-top: _static/gallery/{program.name}.png",
            f":img-alt: The picture that {program.path} draws",
            f"{program.about}\n\n`examples/{program.path}` · {times[program.name]['seconds']} s",
            ":::",
            "",
        ]
    lines += ["::::", "", "```{toctree}", ":hidden:", ""]
    lines += [f"gallery/{program.name}" for program in PROGRAMS]
    return "\n".join([*lines, "```", ""])


def program_page(program: Program, seconds: object) -> str:
    """The page of one program: how to run it, its picture, its code."""
    return "\n".join(
        [
            f"# {program.title}",
            "",
            program.about,
            "",
            f"    $ {program.command} --out picture.png     # {seconds} s",
            "",
            f"![The picture that the program draws](../_static/gallery/{program.name}.png)",
            "",
            f"```{{literalinclude}} ../../examples/{program.path}",
            ":language: python",
            "```",
            "",
        ]
    )


def read_times() -> dict[str, dict[str, object]]:
    """The run times of the last runs, with date and machine."""
    found: dict[str, dict[str, object]] = json.loads(TIMES.read_text(encoding="utf-8")) if TIMES.is_file() else {}
    return found


def main() -> None:
    """Run what is asked for, then write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help="programs to run, as vae or digits_train; all without a name")
    parser.add_argument("--page", action="store_true", help="run nothing, write the page from the last times")
    parser.add_argument("--machine", default=f"{os.cpu_count()} cores", help="what the page says about the machine")
    arguments = parser.parse_args()
    SHOWN.mkdir(parents=True, exist_ok=True)
    unknown = set(arguments.names) - {program.name for program in PROGRAMS}
    if unknown:
        parser.error(f"no program {sorted(unknown)}; there are {', '.join(program.name for program in PROGRAMS)}")
    times = read_times()
    for program in PROGRAMS if not arguments.page else ():
        if arguments.names and program.name not in arguments.names:
            continue
        print(f"== {program.command}", flush=True)
        seconds = run(program)
        date = datetime.date.today().isoformat()
        times[program.name] = {"seconds": round(seconds, 1), "date": date, "machine": arguments.machine}
        TIMES.write_text(json.dumps(times, indent=1, sort_keys=True) + "\n", encoding="utf-8")
    PAGE.write_text(page(times), encoding="utf-8")


if __name__ == "__main__":
    main()
