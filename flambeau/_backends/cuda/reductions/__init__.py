"""Reductions, softmax, normalisations, running sums and losses on the device."""
