"""Collectives between GPUs by NCCL: `library.py` calls it, `engine.py` is what process groups see."""
