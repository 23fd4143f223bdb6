"""What kernels share: dtypes they know, timed choices, lists of calls, the report of `flambeau info`."""
