"""PerfettoSQL on DuckDB.

    text ─> tokens ─> macros ─> statements ─> rewriter ─> DuckDB
                                  │
                                  └ functions, modules, span joins

`session.py` runs statements; `rewriter.py` translates SQLite's dialect; `runtime.py` has the macros
that give DuckDB the values of SQLite's operators; `library/` has the modules.
"""

from __future__ import annotations
