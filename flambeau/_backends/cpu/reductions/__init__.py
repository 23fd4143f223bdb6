"""Reductions, softmax, normalisations, running sums and losses."""
