"""Images and signals padded, folded, resized and sampled."""
