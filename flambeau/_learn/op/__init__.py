"""A lesson; see `flambeau/_learn/__init__.py`."""
