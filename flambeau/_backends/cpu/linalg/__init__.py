"""Products of matrices, decompositions and Fourier transforms."""
