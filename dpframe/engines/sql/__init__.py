"""Databases that count for themselves: questions in SQL, where the bits are defined, and exact
integers back."""

from __future__ import annotations

from dpframe.engines.sql.engine import SqlEngine

__all__ = ["SqlEngine"]
