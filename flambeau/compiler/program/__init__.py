"""Programs: the items of a recorded call (`items.py`), what reads and lowers them."""
