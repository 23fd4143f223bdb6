"""Elements read, written and joined at positions."""
