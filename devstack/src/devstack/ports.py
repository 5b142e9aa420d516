"""Free ports on the loopback interface."""

import contextlib
import socket
import threading

LOOPBACK = "127.0.0.1"

_handed_out: set[int] = set()
_lock = threading.Lock()


def free_ports(count: int) -> list[int]:
    """Return different loopback ports that nothing listens on, none of them returned before."""
    ports: list[int] = []
    with _lock, contextlib.ExitStack() as held:
        while len(ports) < count:
            probe = held.enter_context(socket.socket(socket.AF_INET, socket.SOCK_STREAM))
            probe.bind((LOOPBACK, 0))
            port: int = probe.getsockname()[1]
            if port not in _handed_out:
                _handed_out.add(port)
                ports.append(port)
    return ports


def free_port() -> int:
    """Return one port, as `free_ports` does."""
    return free_ports(1)[0]


def accepts_connections(port: int) -> bool:
    """Tell whether something accepts TCP connections on this loopback port now."""
    with contextlib.suppress(OSError), socket.create_connection((LOOPBACK, port), timeout=1):
        return True
    return False
