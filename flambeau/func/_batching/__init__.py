"""How ops run on many examples at once: batched tensors, the interpreter of one `vmap`, and a rule for each op."""
