"""What is tried with programs that are not Python's: an editor's language server, a browser, PyPI's renderer.

`make docs` installs them and runs these tests; elsewhere each is skipped with the reason.
"""
