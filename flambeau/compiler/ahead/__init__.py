"""Programs compiled ahead of time: files of programs and of machine code."""
