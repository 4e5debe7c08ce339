"""Randomness that is the same in each run, for tests and for the pages of the documentation."""

from __future__ import annotations

import hashlib
import threading


class Repeatable:
    """Bytes that look random and follow from a name, made when they are asked for."""

    def __init__(self, name: str):
        self.name, self.place, self.rest = name, 0, b""
        self.lock = threading.Lock()

    def __call__(self, n: int) -> bytes:
        with self.lock:
            while len(self.rest) < n:
                block = f"{self.name}|{self.place}".encode()
                self.rest += hashlib.shake_256(block).digest(2**16)
                self.place += 1
            taken, self.rest = self.rest[:n], self.rest[n:]
            return taken
