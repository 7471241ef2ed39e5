"""Errors and results."""

from __future__ import annotations
