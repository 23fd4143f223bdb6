"""What each process computes of an op on distributed tensors: rules by the families of ops."""
