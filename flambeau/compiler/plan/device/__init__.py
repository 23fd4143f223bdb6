"""What of a program a device does by itself: device segments of calls, and which kernels do them.

The passes for all devices (`../passes`) have run before. `device segments.py` finds the device segments; `changes.py`,
`class_loss.py` and `fuse.py`, with `steps.py`, have one kernel for several calls, and `uses.py` says who uses what. The
backend of the device runs what is left of them (`_backends/cuda/runtime/segments.py`).
"""
