"""What the docstrings of the API reference say: parameters, results, examples."""
