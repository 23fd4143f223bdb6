"""Every wrong call under both libraries: `python -m tests.wrong_calls`."""

from __future__ import annotations

import sys

from .suite import main

sys.exit(main())
