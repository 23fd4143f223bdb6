"""The driver, graphs, streams of compiled work, the disk cache and errors found by kernels."""
