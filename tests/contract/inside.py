"""What Hindsight says of itself, and the guard of each hook, asked inside Hindsight's own environment."""

import json
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TypedDict

from devstack.hindsight import HindsightServer
from devstack.process import base_environment


class HookAnswer(TypedDict):
    """What one hook answered, asked about ``asked`` with the token of this name."""

    hook: str
    asked: str | None
    token: str
    answer: object


class NovelRouteAnswer(TypedDict):
    """What a route that Hindsight does not have yet answered, asked ``behind`` the door or at the ``door``:
    status and body."""

    route: str
    asked: str
    answer: tuple[int, str]


class Inside(TypedDict):
    """What inside_probe.py prints."""

    #: Path → methods, of the application itself, with MCP.
    routes: dict[str, list[str]]
    #: The same as OpenAPI has it.
    documented: dict[str, list[str]]
    #: Hindsight's settings when nothing is set.
    defaults: dict[str, str]
    hooks: list[HookAnswer]
    novel_routes: list[NovelRouteAnswer]


def ask_inside(
    server: HindsightServer,
    bank: str,
    tokens: Mapping[str, str | None],
    strongest: Sequence[str],
    cwd: Path,
) -> Inside:
    """One process for everything, for it takes seconds to import Hindsight. ``strongest`` are tokens that
    are tried on routes of a newer version."""
    done = subprocess.run(
        [server.venv / "bin" / "python", Path(__file__).with_name("inside_probe.py")],
        env=base_environment() | server.environment() | {"HINDSIGHT_API_MCP_ENABLED": "true"},
        cwd=cwd,
        input=json.dumps({"bank": bank, "tokens": tokens, "strongest": strongest}),
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    )
    line = next(line for line in done.stdout.splitlines() if line.startswith("INSIDE "))
    found: Inside = json.loads(line.removeprefix("INSIDE "))
    return found
