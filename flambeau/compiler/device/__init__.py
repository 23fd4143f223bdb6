"""What of a program a device does by itself: stretches of calls, and how these are made fewer and shorter.

`stretches.py` finds them; `copies.py`, `in_place.py` and `class_loss.py` are passes over their calls, and `uses.py`
says who uses what. The backend of the device runs what is left of them (`_backends/cuda/stretches.py`).
"""
