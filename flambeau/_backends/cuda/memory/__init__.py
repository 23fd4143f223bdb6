"""The memory of a GPU: where it comes from, who has it, how much of it was ever in use.

`pool.py` hands out blocks (`block.py`) of larger segments that it keeps, as PyTorch's allocator does;
`statistics.py` counts; `host.py` has page-locked memory of the host, from and to which a GPU copies by itself.
"""
