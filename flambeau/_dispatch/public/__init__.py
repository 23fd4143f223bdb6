"""The public face of the ops: names, signatures, overloads, errors, and who may override them."""
