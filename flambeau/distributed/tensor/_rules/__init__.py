"""What each process computes of an op on spread tensors: rules by the families of ops."""
