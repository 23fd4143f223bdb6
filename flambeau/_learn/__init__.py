"""The lessons of `flambeau learn`: "How a framework works".

A lesson is a folder: `page.md` explains, `exercise.py.txt` is what a learner fills in, `solution.py.txt` is one good
answer, and `check.py` tries an answer inside the engine and says in a sentence what is wrong with it. Exercises
and solutions are texts, because to import one is to register it.
"""
