"""Starting the processes of a program, watching them, and starting them again: `flambeau launch`.

`options.py` reads the command line, `workers.py` has the processes of this machine, `agent.py` arranges with the other
machines which ranks they are and when all start again, `worker.py` is what a process runs first.
"""
