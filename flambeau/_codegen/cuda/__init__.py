"""CUDA C from the programs of elementwise bodies: text, which needs neither a GPU nor a compiler to be written."""
