"""Waiting for what happens in another process."""

import time
from collections.abc import Callable


def until(holds: Callable[[], bool], seconds: float = 40) -> bool:
    """Whether ``holds()`` becomes true within ``seconds``. A bound against hanging, not a speed limit."""
    deadline = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.1)
    return True
