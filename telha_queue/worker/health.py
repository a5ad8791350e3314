"""What a worker says of itself over HTTP: for orchestrators, for Prometheus, for `telha top`. Reads only.

    GET /healthz   200 while the worker can go on, 503 when only a restart helps
    GET /readyz    200 while it takes jobs, 503 when it stops or the store fails
    GET /metrics   Prometheus text, with the extra `metrics`
    GET /status    JSON: lanes, kinds, jobs at work

On a loopback address or a unix socket; whoever reaches it can read kinds and ids of jobs, and no payload.
"""

from __future__ import annotations

import ipaddress
import json
import os
import socket
import socketserver
import threading
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

from telha_queue.errors import ConfigError
from telha_queue.worker.extras import MissingExtra

if TYPE_CHECKING:
    from telha_queue.worker.runtime import Worker

_TIMEOUT_SECS = 5


class Health:
    """A server in a thread. `address` is "unix:PATH" or "HOST:PORT" of loopback; port 0 takes a free one."""

    def __init__(self, worker: Worker, address: str) -> None:
        self._server = _UnixServer(address[5:], worker) if address.startswith("unix:") else _tcp(address, worker)
        self._thread = threading.Thread(
            target=self._server.serve_forever, args=(0.2,), name="telha-health", daemon=True
        )

    @property
    def address(self) -> str:
        """Where it listens."""
        at: Any = self._server.server_address
        return f"unix:{at}" if isinstance(at, str) else f"{at[0]}:{at[1]}"

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        if self._thread.is_alive():
            self._server.shutdown()
        self._server.server_close()


class _Handler(BaseHTTPRequestHandler):
    timeout = _TIMEOUT_SECS
    server: _TcpServer | _UnixServer

    def do_GET(self) -> None:
        worker = self.server.worker
        if self.path == "/healthz":
            self._say(200 if worker.is_healthy else 503, "text/plain", b"ok\n" if worker.is_healthy else b"broken\n")
        elif self.path == "/readyz":
            self._say(200 if worker.is_ready else 503, "text/plain", b"ready\n" if worker.is_ready else b"not ready\n")
        elif self.path == "/metrics":
            self._metrics(worker)
        elif self.path == "/status":
            self._say(200, "application/json", json.dumps(worker.status()).encode())
        else:
            self._say(404, "text/plain", b"not found\n")

    def _metrics(self, worker: Worker) -> None:
        from telha_queue.worker.metrics import exposition

        try:
            self._say(200, "text/plain; version=0.0.4; charset=utf-8", exposition(worker))
        except MissingExtra as missing:
            self._say(501, "text/plain", f"{missing}\n".encode())

    def _say(self, code: int, kind: str, body: bytes) -> None:
        self.send_response(code)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Cache-Control", "no-store")
        self.end_headers()
        self.wfile.write(body)

    def address_string(self) -> str:
        return "local"

    def log_message(self, format: str, *args: object) -> None:
        pass  # probes come every few seconds


class _TcpServer(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, address: tuple[str, int], worker: Worker) -> None:
        self.worker = worker
        super().__init__(address, _Handler)


class _UnixServer(socketserver.ThreadingMixIn, socketserver.UnixStreamServer):
    daemon_threads = True

    def __init__(self, path: str, worker: Worker) -> None:
        self.worker = worker
        self._path = path
        if _is_dead_socket(path):
            os.unlink(path)
        try:
            super().__init__(path, _Handler)
            os.chmod(path, 0o600)  # for its owner only
        except OSError as error:
            raise ConfigError(f"no worker can be asked at unix:{path}: {error}") from None

    def server_close(self) -> None:
        super().server_close()
        with suppress(FileNotFoundError):
            os.unlink(self._path)


def _tcp(address: str, worker: Worker) -> _TcpServer:
    host, _, port = address.rpartition(":")
    try:
        is_local = host == "localhost" or ipaddress.ip_address(host.strip("[]")).is_loopback
        number = int(port)
    except ValueError:
        raise ConfigError(f"an address is HOST:PORT or unix:PATH, not {address!r}") from None
    if not is_local:
        raise ConfigError(f"{host} is not a loopback address: anybody could read there what is at work")
    try:
        return _TcpServer((host.strip("[]"), number), worker)
    except (OSError, OverflowError) as error:
        raise ConfigError(f"no worker can be asked at {address}: {error}") from None


def _is_dead_socket(path: str) -> bool:
    """A socket that a killed worker has left."""
    if not os.path.exists(path):
        return False
    with socket.socket(socket.AF_UNIX) as probe:
        try:
            probe.connect(path)
        except ConnectionRefusedError:
            return True
        except OSError:
            return False
    return False
