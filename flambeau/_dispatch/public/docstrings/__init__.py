"""Docstrings of public functions, put together from what each says and what many share."""
