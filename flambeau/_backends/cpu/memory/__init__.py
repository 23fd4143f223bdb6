"""The caching allocator, and the workspaces of kernels."""
