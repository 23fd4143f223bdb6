"""Flambeau in the browser: a suite that runs under Pyodide, in node and in Chromium. `make browser` runs it."""
