"""GetAuthority: how far a company's facts have come."""

from __future__ import annotations

from memory_api.authority import Feed
from memory_api.store.authority import AuthorityStore


async def get_authority(store: AuthorityStore, company: str) -> Feed:
    """The feed of the company; revision 0 if nothing was ever applied."""
    return await store.feed(company)
