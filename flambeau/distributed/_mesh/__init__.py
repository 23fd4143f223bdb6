"""Collectives between processes over sockets: every process is connected with every other one.

`links.py` speaks the protocol, `driver.py` moves bytes and resumes what waits for them, `algorithms.py` has the
collectives, `engine.py` is what process groups see.
"""
