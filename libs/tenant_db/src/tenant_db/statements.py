"""SQL kept in ``.sql`` files, loaded once by aiosql for asyncpg."""

from __future__ import annotations

from collections.abc import AsyncIterable
from pathlib import Path
from typing import Any

import aiosql


def load_statements(file: Path) -> Any:
    """The named statements of one ``.sql`` file, each a coroutine function of (connection, **parameters)."""
    return aiosql.from_path(file, "asyncpg", mandatory_parameters=False)


async def collect(rows: AsyncIterable[Any]) -> list[Any]:
    """The rows of a statement that selects many."""
    return [row async for row in rows]
