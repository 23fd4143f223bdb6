"""Elements chosen by position or by condition."""
