"""Trace summaries: metrics that a TraceSummarySpec defines."""

from __future__ import annotations
