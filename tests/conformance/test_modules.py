"""A part of the databases of modules and optimizers in further states; all: `python -m tests.conformance.modules`."""

from __future__ import annotations

import pytest
from torch.testing._internal.common_modules import module_db

from tests.optim.both import NAMES

from .modules import MODULE_STATES, OPTIMIZER_STATES, examine_module, examine_optimizer

_EVERY = 10


@pytest.mark.parametrize("state", list(MODULE_STATES))
def test_modules(state: str) -> None:
    """Each state gets other modules, so that most of them are in some state."""
    first = list(MODULE_STATES).index(state) % _EVERY
    for info in module_db[first::_EVERY]:
        for found in examine_module(info, state, 1):
            assert found is None, f"{info.module_cls.__name__}: {found}"


@pytest.mark.parametrize("state", list(OPTIMIZER_STATES))
@pytest.mark.parametrize("name", NAMES)
def test_optimizers(name: str, state: str) -> None:
    found = next(examine_optimizer(name, state), None)
    assert found is None, found


def test_a_difference_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """A state in which a module gives something else is told."""
    info = next(each for each in module_db if each.module_cls.__name__ == "Linear")
    monkeypatch.setitem(MODULE_STATES, "fake", lambda pair: iter(["other"]))
    assert "other" in list(examine_module(info, "fake", 1))
