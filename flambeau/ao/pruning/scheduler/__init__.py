"""How many weights are zero, step by step."""
