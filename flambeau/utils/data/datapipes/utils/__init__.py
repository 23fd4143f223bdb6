"""What the steps share: files, columns, decoders."""
