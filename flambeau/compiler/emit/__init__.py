"""Emission: checks and program of a recorded call as one Python function, with its backward part."""
