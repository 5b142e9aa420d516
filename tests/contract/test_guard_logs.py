"""What Hindsight's process writes when its work fails: never the words it failed on (I13)."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from uuid import uuid4

import asyncpg
import pytest
from devstack.stack import Stack
from hindsight_index import HindsightIndex, HindsightProtocolError, HindsightRefused, HindsightUnavailable

pytestmark = pytest.mark.hindsight

Written = Callable[[], str]


@pytest.fixture
def written(stack: Stack) -> Written:
    """What Hindsight has written to stdout and stderr since the test began."""
    file: Path = stack.logs / "hindsight.log"
    start = len(file.read_text(errors="replace"))
    return lambda: file.read_text(errors="replace")[start:]


@asynccontextmanager
async def failing(rows: asyncpg.Connection, table: str, bank: str) -> AsyncIterator[None]:
    """Every insert of the bank's rows into ``table`` fails, with the whole row in the database's answer."""
    name = f"fails_{uuid4().hex}"
    await rows.execute(
        f"""
        CREATE FUNCTION {name}() RETURNS trigger LANGUAGE plpgsql AS
        $$ BEGIN RAISE EXCEPTION 'cannot store %', NEW::text USING DETAIL = NEW::text; END $$;
        CREATE TRIGGER {name} BEFORE INSERT ON {table} FOR EACH ROW WHEN (NEW.bank_id = '{bank}')
        EXECUTE FUNCTION {name}();
        """
    )
    try:
        yield
    finally:
        await rows.execute(f"DROP TRIGGER {name} ON {table}; DROP FUNCTION {name}()")


@pytest.mark.parametrize("table", ["documents", "chunks", "memory_units", "memory_links"])
async def test_a_retain_that_the_database_refuses_leaves_no_word_in_the_log(
    index: HindsightIndex, index_rows: asyncpg.Connection, bank: str, written: Written, table: str
) -> None:
    canary = f"canary{uuid4().hex}"
    await index.ensure_bank(bank)
    await index.retain(bank, "c", "Ada's locker is blue, says the porter.")
    async with failing(index_rows, table, bank):
        with pytest.raises((HindsightUnavailable, HindsightProtocolError)):
            await index.retain(bank, "d", f"Ada's locker is {canary}, says the porter.")
    log = written()
    assert canary not in log
    assert "porter" not in log
    assert "ERROR" in log


async def test_a_retain_into_an_unknown_bank_leaves_no_word_in_the_log(
    index: HindsightIndex, bank: str, written: Written
) -> None:
    canary = f"canary{uuid4().hex}"
    with pytest.raises(HindsightRefused):
        await index.retain(bank, "d", f"Ada's locker is {canary}.")
    assert canary not in written()


@pytest.mark.parametrize("question", ["{canary} \x00", "{canary} \U0001f600" * 40], ids=["nul", "long"])
async def test_an_odd_question_leaves_no_word_in_the_log(
    index: HindsightIndex, recall_index: HindsightIndex, bank: str, written: Written, question: str
) -> None:
    canary = f"canary{uuid4().hex}"
    await index.ensure_bank(bank)
    await index.retain(bank, "d", "Ada drinks green tea.")
    hits: Awaitable[object] = recall_index.recall(
        bank, question.format(canary=canary), max_tokens=4096, timeout_s=20
    )
    await hits
    assert canary not in written()
