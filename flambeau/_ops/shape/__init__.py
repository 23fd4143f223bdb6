"""Other shapes and places for the same elements."""
