"""Samples of the Python stacks of running processes, read from outside.

The process is neither stopped nor changed: its memory is read while it runs.

    process.py     finds the interpreter in a process
    elf.py         where an ELF file has a symbol
    layout.py      where a CPython version has what
    objects.py     reads strings and code objects of the process
    stacks.py      all stacks, once
    recorder.py    samples over time, as packets of a trace
"""
