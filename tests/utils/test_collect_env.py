"""The report about the machine: what other programs say, beside PyTorch's."""

from __future__ import annotations

import importlib
import sys
from typing import Any

from flambeau.utils import collect_env
from tests.support.differential import differential


def answers(command: Any) -> tuple[int, str, str]:
    """Plays a machine on which some programs answer."""
    texts = {
        "gcc --version": "gcc (Debian) 12.2.0\nfurther",
        "clang --version": "Debian clang version 16.0\nfurther",
        "cmake --version": "cmake version 3.29",
        "lsb_release -a": "Distributor ID:\tDebian\nDescription:\tDebian 12\n",
        "nvidia-smi": "| Driver Version: 550.1 CUDA |",
    }
    return (0, texts[command], "") if isinstance(command, str) and command in texts else (1, "", "no")


@differential
def test_what_programs_say(torch: Any) -> Any:
    module = importlib.import_module(f"{torch.__name__}.utils.collect_env")
    return (
        module.get_gcc_version(answers),
        module.get_clang_version(answers),
        module.get_lsb_version(answers),
        module.get_running_cuda_version(answers),
        module.run_and_read_all(answers, "cmake --version"),
        module.run_and_read_all(answers, "nothing"),
        module.run_and_return_first_line(answers, "gcc --version"),
        module.run_and_parse_first_match(answers, "nvidia-smi", r"Driver Version: (.*?) "),
        module.get_platform(),
        module.run([sys.executable, "-c", "print(3)"])[:2],
    )


def test_the_report() -> None:
    report = collect_env.get_env_info()
    assert report.python_version == sys.version.replace("\n", " ")
    assert f"cuda module loading: {collect_env.get_cuda_module_loading_config()}" in collect_env.pretty_str(report)
    assert collect_env.run(["no-such-program-anywhere"])[0] == 127
