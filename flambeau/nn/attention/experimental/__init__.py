"""What PyTorch tries out about attention: the package is there, and has nothing public."""
