"""FIDL: the interface definition language of Fuchsia, for Python programs on Linux.

Nothing in here knows of tracing: it is hooked in from outside (`stretto.flows`).
"""
