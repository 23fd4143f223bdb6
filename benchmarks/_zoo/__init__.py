"""Models of libraries, and the processes that run them under each framework."""
