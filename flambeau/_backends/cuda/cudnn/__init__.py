"""cuDNN: its graphs by its front end, and its own interface by ctypes."""
