"""``python -m hindsight_guard``: serves Hindsight behind the guard."""

from __future__ import annotations

import os
import sys

import uvicorn

from hindsight_guard.settings import check_hindsight_settings, listener, verifier_from_environment
from hindsight_guard.tokens import GuardMisconfigured


def main() -> int:
    """Runs until a signal. Returns 2 for wrong settings."""
    try:
        options = listener(os.environ)
        check_hindsight_settings(os.environ)
        verifier_from_environment()
    except GuardMisconfigured as error:
        print(f"hindsight_guard: {error}", file=sys.stderr)  # noqa: T201 - no log yet
        return 2
    # One process and no forwarded headers, whatever the environment says: a caller must not be able to
    # claim that it came by TLS.
    uvicorn.run(
        "hindsight_guard.server:app",
        log_level="warning",
        access_log=False,
        workers=1,
        proxy_headers=False,
        server_header=False,
        **options,
    )
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
