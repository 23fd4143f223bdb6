"""What `benchmarks/compile.py` measures."""
