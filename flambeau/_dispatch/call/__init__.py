"""The writer of calls: the short way from a function to its kernel and back, as source. See `text.py`."""
