"""Products of matrices on the device, by cuBLAS and cuBLASLt."""
