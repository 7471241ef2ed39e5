"""Exports of traces: formats of other profilers' viewers.

tables ─> lanes of slices ─> chrome, jsonl
└> stacks ─> collapsed, speedscope, pprof, pstats, firefox
"""

from __future__ import annotations
