"""Changes of tensors that exist: in-place forms, `out=`, and what versions and history make of them."""
