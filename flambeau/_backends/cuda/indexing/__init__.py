"""Elements read, written and joined at positions on the device."""
