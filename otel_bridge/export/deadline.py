"""A deadline for a whole HTTP exchange.

The timeout of `requests` is one for each read: a backend that sends a byte now and then holds an exchange up for ever.
Neither `requests` nor urllib3 has a timeout for all of it, so the connections say which socket they use, and a timer
shuts that down. It ends whatever waits for the socket: TLS handshake, request, headers or body.
"""

from __future__ import annotations

import contextlib
import socket
import threading
from typing import Any

from requests.adapters import HTTPAdapter
from urllib3 import HTTPConnectionPool, PoolManager


class Deadline:
    """Gives each exchange, a `with` block of one thread, `timeout_s` seconds.

    `was_cut` says that the exchange, or the last one, lasted longer; what was read of its answer may be a part of it.
    Looking for the host and connecting have timeouts of their own, and are not cut. Nothing is where no thread can be
    started, as some versions of Python have it while they exit: then each read has its timeout, and no more.
    """

    def __init__(self, timeout_s: float) -> None:
        self.was_cut = False
        self._is_over = False
        self._timeout_s = min(timeout_s, threading.TIMEOUT_MAX)
        self._timer: threading.Timer | None = None
        self._socket: socket.socket | None = None
        self._lock = threading.Lock()

    def __enter__(self) -> None:
        self.was_cut = self._is_over = False
        self._timer = threading.Timer(self._timeout_s, self._end)
        self._timer.daemon = True
        try:
            self._timer.start()
        except RuntimeError:
            self._timer = None

    def __exit__(self, *_: object) -> None:
        with self._lock:
            if self._timer is not None:
                self._timer.cancel()
            self._timer = None
            self._let_go()

    def watch(self, used: socket.socket) -> None:
        """The exchange goes over the socket `used` from now on."""
        with self._lock:
            self._let_go()
            if self._timer is None:
                return
            # A second descriptor: the first one gets a new owner when TLS begins, and when the server will hang up.
            self._socket = socket.fromfd(used.fileno(), used.family, used.type)
            if self._is_over:
                self._cut()

    def _end(self) -> None:
        with self._lock:
            if threading.current_thread() is self._timer:  # else its exchange ended at this moment
                self._is_over = True
                self._cut()

    def _cut(self) -> None:
        if self._socket is not None:
            self.was_cut = True
            with contextlib.suppress(OSError):  # the other side was first
                self._socket.shutdown(socket.SHUT_RDWR)

    def _let_go(self) -> None:
        if self._socket is not None:
            self._socket.close()
            self._socket = None


class WatchedAdapter(HTTPAdapter):
    """An adapter whose connections, also those through proxies, say to a deadline which sockets they use."""

    def __init__(self, deadline: Deadline) -> None:
        self._deadline = deadline
        super().__init__()

    def init_poolmanager(self, *args: Any, **kwargs: Any) -> None:
        super().init_poolmanager(*args, **kwargs)
        self._watch(self.poolmanager)

    def proxy_manager_for(self, proxy: str, **kwargs: Any) -> Any:
        is_new = proxy not in self.proxy_manager
        manager = super().proxy_manager_for(proxy, **kwargs)
        if is_new:
            self._watch(manager)
        return manager

    def _watch(self, manager: PoolManager) -> None:
        pools = manager.pool_classes_by_scheme
        manager.pool_classes_by_scheme = {scheme: _watched(pool, self._deadline) for scheme, pool in pools.items()}


def _watched(pool: type[HTTPConnectionPool], deadline: Deadline) -> type[HTTPConnectionPool]:
    """`pool` with connections that call `deadline.watch` when they connect, and when they are used again."""
    connection: Any = pool.ConnectionCls

    class Connection(connection):  # type: ignore[misc]
        def _new_conn(self) -> socket.socket:
            made: socket.socket = super()._new_conn()
            deadline.watch(made)
            return made

        def request(self, *args: Any, **kwargs: Any) -> None:
            if self.sock is not None:
                deadline.watch(self.sock)
            super().request(*args, **kwargs)

    return type(f"Watched{pool.__name__}", (pool,), {"ConnectionCls": Connection})
