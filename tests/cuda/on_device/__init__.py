"""Tests of a CUDA device: they run where there is a GPU; `../test_simulated.py` runs them on the simulated device."""
