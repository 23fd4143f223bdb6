"""The parts of `benchmarks/train_steps.py`: networks, the steps that are measured, and measuring in fresh processes."""
