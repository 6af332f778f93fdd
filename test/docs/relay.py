# SPDX-License-Identifier: Apache-2.0
"""What `kubectl port-forward` gives on a cluster with kubelets: Berth at localhost:8888 and :8889."""

import contextlib
import socket
import threading


def copy(source, target):
    with contextlib.suppress(OSError):
        while data := source.recv(1 << 16):
            target.sendall(data)
    with contextlib.suppress(OSError):
        target.shutdown(socket.SHUT_WR)


class Relay:
    def __init__(self, target):
        host, _, port = target.rpartition(":")
        self.target, self.listeners = (host, int(port)), []

    def __enter__(self):
        for port in (8888, 8889):
            self.listeners.append(socket.create_server(("127.0.0.1", port)))
            threading.Thread(target=self.accept, args=(self.listeners[-1],), daemon=True).start()
        return self

    def __exit__(self, *_):
        for listener in self.listeners:
            with contextlib.suppress(OSError):
                listener.shutdown(socket.SHUT_RDWR)  # wakes accept
            listener.close()
        self.listeners = []

    @contextlib.contextmanager
    def away(self):
        """Somebody else has the ports meanwhile."""
        self.__exit__()
        try:
            yield
        finally:
            self.__enter__()

    def accept(self, listener):
        while True:
            try:
                client, _ = listener.accept()
                server = socket.create_connection(self.target)
            except OSError:
                return
            for source, target in ((client, server), (server, client)):
                threading.Thread(target=copy, args=(source, target), daemon=True).start()
