"""`DeviceArray`, the counterpart of `numpy.ndarray` on a device: views, NumPy's protocols, subscripts."""
