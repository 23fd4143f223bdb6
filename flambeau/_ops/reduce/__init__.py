"""Many elements into fewer, and along a dimension: sums, scans, order, softmax."""
