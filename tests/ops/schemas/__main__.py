"""`python -m tests.ops.schemas`: which of the recorded calls of PyTorch's operators give PyTorch's results.

`--record` finds calls anew, one for each schema for which there is one; `--extend` takes over those of `written.txt`
and finds some for schemas that have none; `--update` writes `gaps.json` again.
"""

from __future__ import annotations

import argparse
import fnmatch
import sys
from collections import Counter

from .calls import name_in, recorded
from .gaps import problems, write
from .survey import survey


def main() -> int:
    """Survey all calls, or those that a pattern names."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--record", action="store_true", help="find a call for every schema, and write them down")
    parser.add_argument("--extend", action="store_true", help="find a call for the schemas that have none")
    parser.add_argument("--update", action="store_true", help="write the list of gaps again")
    parser.add_argument("--only", default="*", help="a pattern of names, as in 'aten::*_backward*'")
    arguments = parser.parse_args()
    if arguments.record or arguments.extend:
        from .recording import extended, record, watched

        record(*((watched(), {}) if arguments.record else extended()))
        return 0
    outcomes = list(survey(each for each in recorded() if fnmatch.fnmatch(name_in(each), arguments.only)))
    for each in outcomes:
        if each.kind != "same":
            print(f"{each.kind}\t{each.operator}\t{each.reason}")
    print(dict(Counter(each.kind for each in outcomes)))
    if arguments.update:
        write(outcomes)
        return 0
    found = problems(outcomes)
    print("\n".join(found))
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main())
