"""ListMemories as an operation: pages that together are the whole list, each memory once."""

from dataclasses import replace
from itertools import chain
from uuid import UUID

import pytest
from memory_api.errors import PageTokenInvalid

from tests.integration.office import Office

pytestmark = pytest.mark.postgres


async def fill(office: Office, count: int) -> None:
    """Memories of which several were recorded in the same microsecond."""
    await office.remember("the first")
    await office.as_admin(
        """
        with made as (
          insert into openbot.memories (company_id, user_id, scope_id, text, recorded_at)
          select company_id, user_id, scope_id, 'cup ' || number,
            timestamptz '2026-01-01' + number / 5 * interval '1 s'
          from openbot.scopes, generate_series(2, $2) as number where company_id = $1
          returning memory_id, company_id, user_id
        )
        insert into openbot.index_entries (memory_id, company_id, user_id) select * from made
        """,
        office.company,
        count,
    )


async def whole_list(office: Office, size: int) -> list[list[UUID]]:
    pages, token = [], ""
    while True:
        page = await office.page(size=size, token=token)
        pages.append([memory.memory_id for memory in page.memories])
        if page.next_page_token is None:
            return pages
        token = page.next_page_token


async def test_pages_of_any_size_hold_every_memory_once_newest_first(office: Office) -> None:
    await fill(office, 23)
    expected = [
        row["memory_id"]
        for row in await office.as_admin(
            "select memory_id from openbot.memories where company_id = $1"
            " order by recorded_at desc, memory_id desc",
            office.company,
        )
    ]
    for size in (1, 4, 22, 23, 24, 200):
        pages = await whole_list(office, size)
        assert list(chain.from_iterable(pages)) == expected, size
        assert {len(page) for page in pages[:-1]} <= {size}
        assert pages[-1], "the last page is never empty"


async def test_a_page_is_fifty_by_default_and_two_hundred_at_most(office: Office) -> None:
    await fill(office, 230)
    assert [len(page) for page in await whole_list(office, 0)] == [50, 50, 50, 50, 30]
    assert [len(page) for page in await whole_list(office, 5000)] == [200, 30]


async def test_remembering_and_forgetting_between_pages_disturbs_nothing_else(office: Office) -> None:
    made = [(await office.remember(f"cup {number}")).memory_id for number in range(6)]
    first = await office.page(size=3)
    assert [memory.memory_id for memory in first.memories] == made[:2:-1]
    await office.remember("a seventh")
    await office.forget(made[3])  # where the next page starts
    await office.forget(made[1])
    rest = await office.page(size=3, token=first.next_page_token or "")
    assert [memory.memory_id for memory in rest.memories] == [made[2], made[0]]


async def test_a_list_shows_what_this_session_may_use_and_nothing_else(office: Office) -> None:
    await office.remember("general")
    await office.remember("weekly", source="weekly")
    await office.remember("of Omar", asker=office.omar)

    async def texts(**other: object) -> set[str | None]:
        asker = replace(office.lin, **other)  # type: ignore[arg-type]
        return {memory.text for memory in (await office.page(asker=asker)).memories}

    assert await texts() == {"general", "weekly"}
    assert await texts(sources=frozenset()) == {"general"}
    assert await texts(bot="narrow") == set()
    assert await texts(user="omar") == {"of Omar"}
    assert await texts(company="elsewhere") == set()


async def test_a_token_of_another_persons_list_is_refused(office: Office) -> None:
    await fill(office, 3)
    token = (await office.page(size=1)).next_page_token or ""
    assert (await office.page(token=token)).memories
    for other in (office.omar, replace(office.lin, company="elsewhere")):
        with pytest.raises(PageTokenInvalid):
            await office.page(token=token, asker=other)


async def test_no_token_but_the_one_given_is_accepted(office: Office) -> None:
    await fill(office, 3)
    token = (await office.page(size=1)).next_page_token or ""
    alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_+/="
    others = {token[:at] + letter + token[at + 1 :] for at in range(len(token)) for letter in alphabet}
    others |= {
        token[:-1],
        token + "=",
        token + "A",
        token + token,
        f" {token}",
        f"{token}\n",
        "x",
        "é",
        "====",
        "A" * 512,
    }
    for other in others - {token}:
        with pytest.raises(PageTokenInvalid):
            await office.page(token=other)
