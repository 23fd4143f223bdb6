"""The operators, one file for each family.

A family is imported when one of its functions or methods is first used: `catalogue.py`, which `tools/stubs.py`
generates, says which family has which name. `registry.load_all()` imports them all.
"""
