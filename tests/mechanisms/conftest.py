"""Entropy that repeats itself, for every test of the samplers."""

from __future__ import annotations

import hashlib

import pytest

from dpframe.mechanisms import _sampling as sampling


class Replay:
    """Stands in for `random_bytes`: scripted bytes first, then a fixed pseudorandom stream."""

    def __init__(self, script: bytes = b"", key: bytes = b"dpframe") -> None:
        self.script, self.key, self.calls, self.drawn = script, key, 0, 0

    def __call__(self, n: int) -> bytes:
        self.drawn += n
        head, self.script = self.script[:n], self.script[n:]
        self.calls += 1
        rest = n - len(head)
        return head + hashlib.shake_256(self.key + self.calls.to_bytes(8, "little")).digest(rest)


@pytest.fixture
def stream():
    """`Replay` itself, for tests that replace `random_bytes` on their own."""
    return Replay


@pytest.fixture
def replay(monkeypatch):
    """A function that makes the entropy repeatable from here on."""

    def start(script=b"", key=b"dpframe"):
        source = Replay(script, key)
        monkeypatch.setattr(sampling, "random_bytes", source)
        return source

    return start
