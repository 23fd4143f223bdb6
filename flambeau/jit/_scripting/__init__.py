"""From Python to TorchScript: the source of a module's methods, written in the language of archives.

Nothing is inferred: PyTorch's reader finds the types itself, from the annotations that TorchScript asks for. What is
known before a run (attributes that are no tensors, lists of modules, which function a name means) is worked out here.
"""
