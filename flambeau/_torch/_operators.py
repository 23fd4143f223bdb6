"""`torch._ops`: the classes of operators. It has another name here, since the engine has a folder of that name."""

from __future__ import annotations

from flambeau import ops
from flambeau._dispatch.public.overloads import OpOverload, OpOverloadPacket
from flambeau._torch._higher_order_ops._operator import HigherOrderOperator

__all__ = ["HigherOrderOperator", "OpOverload", "OpOverloadPacket", "ops"]
