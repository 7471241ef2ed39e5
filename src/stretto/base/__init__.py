"""The lowest layer: errors, ids, clocks, the task runner, sockets, shared memory, and regular
expressions.
"""
