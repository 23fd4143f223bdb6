"""From segments of a program to schedules: calls on fixed memory that are made without Python between them.

`builder.py` writes the calls of ops to a schedule (`schedule.py`, `stand_in.py`, `rules.py`), `fuse.py` joins
elementwise ones, `memory.py` gives intermediate results places in one piece of memory, `segment.py` puts it all
together. In its first run a schedule is compared with the ops (`first_run.py`). `device/` does the same for a GPU.
"""
