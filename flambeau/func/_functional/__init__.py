"""Functions without changes in place: the level of `functionalize`."""
