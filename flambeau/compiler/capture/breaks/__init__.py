"""Graph breaks: a function that cannot be compiled whole is split into parts, each compiled by itself."""
