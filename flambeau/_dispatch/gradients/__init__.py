"""How a call is recorded, and what its node does in a backward pass."""
