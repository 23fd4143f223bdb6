"""From code to what runs: compiler, cache of machine code, threads, memory of large arrays."""
