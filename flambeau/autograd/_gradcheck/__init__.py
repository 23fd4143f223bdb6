"""What `gradcheck` and `gradgradcheck` are made of."""
