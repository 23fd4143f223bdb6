"""The conformance suite: `python -m tests.conformance`. See `--help`."""

from __future__ import annotations

from .suite import main

if __name__ == "__main__":
    raise SystemExit(main())
