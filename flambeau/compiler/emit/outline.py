"""Programs that are written but for their items, which are still to be planned."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..._core.tensor import Tensor
from ..passes import improved
from ..passes.casts import casts_in, kept_cast
from ..program.items import Item, Read, Value
from ..program.reads import first, generators_before, go_back, states_of
from .backward import Region
from .results import Answered
from .source import Source
from .stages import stages_of


@dataclass
class Outline:
    """A program as text describes it. Of the recorded call it holds nothing but what items hold."""

    source: Source
    items: list[Item]
    wanted: list[Value]
    """What is to be there after the items."""
    behind: list[str]
    """Lines that come after them."""
    regions: list[Region] = field(default_factory=list)
    """The backward part, if there is one."""
    weights: dict[int, Tensor] = field(default_factory=dict)
    """The parameters whose casts may be kept from call to call, by the numbers of their values."""
    answered: Answered | None = None
    """What the call returns and changes."""

    def fill(self) -> None:
        """Improve the items, plan them, and write them."""
        source = self.source
        for region in self.regions:
            region.plan()
            source.device_segments += region.device_segments
            source.behind += region.stages
        self.items = self._without_kept_casts(improved(first(self.items), self.wanted, source.is_for_all_sizes))
        if drawn_from := generators_before(self.items):
            source.constants.update(states_of=states_of, go_back=go_back)
            source.lines.append(f"drawn = states_of({', '.join(map(source.constant, drawn_from))})")
            source.leave = f"go_back(drawn); {source.leave}"
        source.items(self.items, self.wanted)
        source.lines += self.behind

    def _without_kept_casts(self, items: list[Item]) -> list[Item]:
        """Write the casts of weights that are kept from call to call; the other items."""
        casts = casts_in(items, self.wanted, self.weights)
        for position, tensor in casts.items():
            call: Any = items[position]
            kept = self.source.constant(kept_cast(call, tensor))
            place = self.source.tensors[id(tensor)]
            self.source.lines.append(f"v{call.results.number} = {kept}({place})  # {call.name}, kept")
        return [each for position, each in enumerate(items) if position not in casts]

    def function(self) -> Callable[..., Any]:
        """The function that checks a call and runs the recorded program."""
        self.fill()
        made: Callable[..., Any] = self.source.function("call", "args, kwargs")
        describe(made, self.source, self.items)
        return made


def describe(program: Callable[..., Any], source: Source, items: Sequence[Item]) -> None:
    """Let a program know where it looks at elements, and what it consists of."""
    vars(program).update(
        places=places_in(items),
        checks=source.lines[: source.checks],
        missed=source.missed,
        stages=[*stages_of(source.parts), *source.behind],
    )


def places_in(items: Sequence[Item]) -> set[str]:
    """Where elements are looked at."""
    return {each.place for each in items if isinstance(each, Read)}
