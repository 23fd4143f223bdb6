"""What a debugger is told of: lines, by a function of the thread or, from Python 3.12 on, by the interpreter."""

from __future__ import annotations

import sys
from typing import Any

import pytest

import flambeau
from flambeau._core.node import OpNode
from flambeau._core.process.debugger import is_debugged
from flambeau._dispatch.gradients.derivative_code import first_apply


def test_a_trace_function_is_a_debugger() -> None:
    before = sys.gettrace()
    sys.settrace(None)
    try:
        assert not is_debugged()
        sys.settrace(lambda *given: None)
        assert is_debugged()
    finally:
        sys.settrace(before)


@pytest.mark.skipif(sys.version_info < (3, 12), reason="what Python 3.12 is the first to have")
def test_backward_walks_through_the_loops_where_the_interpreter_tells_a_debugger(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monitoring: Any = sys.monitoring  # type: ignore[attr-defined,unused-ignore]
    seen: list[bool] = []
    plain = OpNode.apply

    def apply(self: Any, *given: Any) -> Any:
        seen.append(True)
        return plain(self, *given)

    monkeypatch.setattr(OpNode, "apply", apply)
    node_type = type(flambeau.ones(2, requires_grad=True).erfinv().grad_fn)
    monkeypatch.setattr(node_type, "apply", first_apply)
    monitoring.use_tool_id(monitoring.DEBUGGER_ID, "a debugger")
    try:
        assert is_debugged()
        flambeau.ones(2, requires_grad=True).erfinv().sum().backward()
    finally:
        monitoring.free_tool_id(monitoring.DEBUGGER_ID)
    assert seen
    assert not is_debugged()
