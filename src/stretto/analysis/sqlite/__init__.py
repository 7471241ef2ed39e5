"""PerfettoSQL on Python's sqlite3: the dialect is the trace processor's own, and needs no package.

text ─> macros, table functions ─> SQLite; a table is copied when a statement names it
"""

from __future__ import annotations
