"""`python -m flambeau` is the same as `flambeau`."""

from __future__ import annotations

import sys

from flambeau._cli.main import main

if __name__ == "__main__":
    sys.exit(main())
