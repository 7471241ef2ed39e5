"""Samples of the Python stacks of running processes, read from outside.

The process is neither stopped nor changed: its memory is read while it runs.

    process.py          finds the interpreter in a process
    elf.py              the addresses of symbols in ELF files
    layout.py           the offsets of members in each CPython version
    objects.py          reads strings and code objects of the process
    stacks.py           reads all stacks once
    thread_names.py     reads the names of threads in Python
    interned_stacks.py  names of the sampled functions, files and stacks
    samples.py          samples of one process, as packets of a trace
    profile.py          samples a process and its children over time
    command_line.py     the command line of a process
"""
