"""The order of checks: what differs most often from call to call comes first, so that a call of another program leaves
soon.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

_VARIABLE = re.compile(r"\bp(\d+)\b")


def arguments_first(lines: Sequence[str], start: int, variables: int) -> tuple[list[str], Callable[[int], int]]:
    """Checks with those from `start` on, which are about arguments, before the others; where each line has gone.

    The order stays where an argument is compared with one of the first `variables` variables, which other lines make.
    """
    arguments = lines[start:]
    if min(map(int, {*_VARIABLE.findall("\n".join(arguments))}), default=variables + 1) <= variables:
        return list(lines), lambda position: position

    def moved(position: int) -> int:
        return position - start if position >= start else position + len(arguments)

    return [*arguments, *lines[:start]], moved
