"""``make dev``: the whole system stays up, with calls to paste into another terminal."""

from __future__ import annotations

import select
import shlex
import signal
import sys
from datetime import timedelta
from uuid import uuid4

from devstack.control_plane import ControlPlane
from devstack.issuer import BOT_RUNTIME, CHANNEL_GATEWAY
from devstack.paths import CHECKOUT, VENV_BIN, postgres_home, state_directory
from devstack.ports import accepts_connections
from devstack.postgres import EmbeddedPostgres
from devstack.sample_companies import ACME, GLOBEX
from devstack.screen import Screen
from devstack.stack import Stack

_PORT = 50051
_TOKEN_LIFETIME = timedelta(hours=1)


def main() -> int:
    """Runs until Ctrl-C or SIGTERM. Data stay for the next time."""
    screen = Screen()
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    screen.chapter("Starting every part on this machine")
    stack = Stack(
        state_directory() / "dev",
        EmbeddedPostgres(postgres_home()),
        name="openbot",
        keep=True,
        port=None if accepts_connections(_PORT) else _PORT,
        step=screen.step,
    )
    try:
        with stack:
            with ControlPlane(stack.address, stack.issuer) as control_plane:
                control_plane.state(ACME, GLOBEX)
            while True:
                _print_calls(screen, stack)
                ended = _wait_for_enter(stack)
                if ended:
                    screen.chapter(f"{' and '.join(ended)} ended. Logs: {stack.logs}")
                    return 1
    except KeyboardInterrupt:
        screen.chapter("Stopped; memories stay for the next time.")
    return 0


def _print_calls(screen: Screen, stack: Stack) -> None:
    def call(title: str, rpc: str, body: str, company: str = "acme", actor: str = BOT_RUNTIME) -> None:
        session = stack.issuer.session_token(
            user="lin",
            company=company,
            bot="assistant",
            actor=actor,
            sources=("weekly-sync",),
            lifetime=_TOKEN_LIFETIME,
        )
        buf = VENV_BIN.relative_to(CHECKOUT) / "buf"
        command = [
            *(str(buf), "curl", "--protocol", "grpc", "--http2-prior-knowledge"),
            *("-H", f"authorization: Bearer {stack.issuer.service_token(actor, lifetime=_TOKEN_LIFETIME)}"),
            *("-H", f"openbot-session: {session}"),
            *("-d", body, f"http://{stack.address}/openbot.memory.v1.MemoryService/{rpc}"),
        ]
        screen.chapter(f"# {title}")
        screen.plain(shlex.join(command))

    request_id = uuid4()
    call(
        "Lin asks the assistant to remember something",
        "Remember",
        f'{{"text": "产品周会从周五改到周一上午十点。", "request_id": "{request_id}"}}',
    )
    call("Lin asks the assistant in English", "Recall", '{"query": "When does the product team meet?"}')
    call("Lin of another company: an empty answer", "Recall", '{"query": "周会"}', company="globex")
    call("Lin looks through her memories in the web app", "ListMemories", "{}", actor=CHANNEL_GATEWAY)
    screen.chapter(f"Tokens are good for one hour. Logs and spans: {stack.logs}")
    screen.plain("Enter prints fresh tokens, Ctrl-C stops everything.")


def _wait_for_enter(stack: Stack) -> list[str]:
    """Returns at a key press, or with the names of the processes that ended by themselves."""
    keys = [sys.stdin]
    while not (ended := stack.ended()):
        ready, _, _ = select.select(keys, [], [], 1)
        if ready and sys.stdin.readline():
            return []
        if ready:
            keys = []  # closed: readable for ever, and nobody is there to press a key
    return ended


if __name__ == "__main__":
    sys.exit(main())
