"""The calls of `typical.py`, by subject: each file enters its own into `CASES`."""
