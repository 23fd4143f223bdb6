"""From stretches of a program to tapes: calls on fixed memory that are made without Python between them.

`builder.py` writes the calls of ops to a sheet (`schedule.py`, `stand_in.py`, `rules.py`), `memory.py` gives their
intermediate results places in one piece of memory, `segment.py` makes a tape of them and sees that it does what the ops
do.
"""
