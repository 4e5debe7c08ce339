"""A line to a server that can be cut at a given moment: what a network does, on purpose."""

from __future__ import annotations

import socket
import threading
import time
from contextlib import suppress

COMMIT = b"COMMIT\0"


class Link:
    """Forwards connections to a port of this machine. ``cut`` says what becomes of the next COMMIT:

    - "before": it is lost on the way there;
    - "after": it arrives, and the answer is lost;
    - "late": the client hears of nothing more, and the server gets it a second later.
    """

    def __init__(self, port: int) -> None:
        self.target, self.cut = port, ""
        self._mute: set[socket.socket] = set()  # clients who hear of nothing more
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.port = self._listening.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        self._listening.close()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listening.accept()
                server = socket.create_connection(("127.0.0.1", self.target))
                threading.Thread(target=self._there, args=(client, server), daemon=True).start()
                threading.Thread(target=self._back, args=(client, server), daemon=True).start()

    def _there(self, client: socket.socket, server: socket.socket) -> None:
        with suppress(OSError):
            while data := client.recv(65536):
                if self.cut and COMMIT in data:
                    return self._lose(client, server, data)
                server.sendall(data)
        _end(client, server)

    def _lose(self, client: socket.socket, server: socket.socket, data: bytes) -> None:
        how, self.cut = self.cut, ""
        self._mute.add(client)
        if how == "late":
            # The line back is dead for good, and the server must not notice before it has its COMMIT.
            client.shutdown(socket.SHUT_RDWR)
            time.sleep(1)
        if how != "before":
            server.sendall(data)
            time.sleep(0.3)
        _end(client, server)

    def _back(self, client: socket.socket, server: socket.socket) -> None:
        with suppress(OSError):
            while data := server.recv(65536):
                if client not in self._mute:
                    client.sendall(data)
            client.shutdown(socket.SHUT_RDWR)


def _end(*ends: socket.socket) -> None:
    for one in ends:
        with suppress(OSError):
            one.shutdown(socket.SHUT_RDWR)
        one.close()
