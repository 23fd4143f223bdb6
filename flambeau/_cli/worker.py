"""What a process of `flambeau launch` runs: the program, with Flambeau in PyTorch's place."""

from __future__ import annotations

import sys

from ..distributed._launch.worker import follow_the_launcher
from .main import main

if __name__ == "__main__":
    follow_the_launcher()
    sys.exit(main(["run", *sys.argv[1:]]))
