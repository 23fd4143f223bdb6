"""Products of matrices, said by letters: "mk,kn->mn". A letter that is cut in the result is cut in the operands that
have it; if it is summed over, the products are still to be added up.
"""

from __future__ import annotations

from ..placement_types import Placement, Shard
from .choice import REPLICATE, SUM, Call, Case, Cases, cases

_LETTERS = {"mm": "mk,kn->mn", "bmm": "bmk,bkn->bmn", "mv": "mk,k->m", "dot": "k,k->", "wide_product": "mk,kn->mn"}


def by_letters(equation: str) -> Cases:
    """The cases of a product."""
    left, result = equation.split("->")
    operands = left.split(",")

    def listed(call: Call, number: int) -> list[Case]:
        found = []
        for letter in dict.fromkeys(left.replace(",", "")):
            inputs: tuple[Placement, ...] = tuple(
                [Shard(each.index(letter)) if letter in each else REPLICATE for each in operands]
            )
            found.append(Case(inputs, Shard(result.index(letter)) if letter in result else SUM))
        for position in range(len(operands)):  # a product is linear in each of its operands
            inputs = tuple([SUM if other == position else REPLICATE for other in range(len(operands))])
            found.append(Case(inputs, SUM))
        return found

    return listed


for _name, _equation in _LETTERS.items():
    cases(_name)(by_letters(_equation))


def _with_addend(equation: str) -> Cases:
    """The cases of a product to which a tensor of the result's shape is added; that may be broadcast."""
    product = by_letters(equation)
    result = equation.split("->")[1]

    def listed(call: Call, number: int) -> list[Case]:
        own = call.shapes[0]
        found = []
        for case in product(call, number):
            if not isinstance(case.output, Shard):
                continue
            at = case.output.dim - (len(result) - len(own))
            cut = at >= 0 and own[at] != 1
            found.append(Case((Shard(at) if cut else REPLICATE, *case.inputs), case.output))
        return found

    return listed


cases("addmm")(_with_addend("mk,kn->mn"))
cases("baddbmm")(_with_addend("bmk,bkn->bmn"))
cases("addmv")(_with_addend("mk,k->m"))
