"""``make bench``: what recall through the service costs beside asking Hindsight directly.

Baseline: the same questions sent by the same process straight to the same Hindsight, one bank, same
``max_tokens``. Everything else is printed as a ratio to its median.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import statistics
import sys
import time
from collections.abc import Awaitable, Callable
from uuid import uuid4

import asyncpg
import grpc
from devstack.control_plane import Company, ControlPlane
from devstack.issuer import BOT_RUNTIME, MEMORY_API_SIGNER
from devstack.paths import postgres_home
from devstack.postgres import EmbeddedPostgres
from devstack.stack import Stack, fresh_stack_directory
from hindsight_index import BankTokenSigner, HindsightIndex
from openbot.memory.v1 import memory_service_pb2, memory_service_pb2_grpc

_TOPICS = ("the budget", "周会", "the release", "报告格式", "travel", "客户来访", "hiring", "代码评审")


def main() -> int:
    """Prints one JSON object."""
    parser = argparse.ArgumentParser(prog="bench", description=__doc__)
    parser.add_argument("--memories", type=int, default=200, help="memories of the one person")
    parser.add_argument("--questions", type=int, default=60, help="questions asked of each path")
    arguments = parser.parse_args()
    stack = Stack(fresh_stack_directory("bench"), EmbeddedPostgres(postgres_home()), name="bench")
    with stack:
        result = asyncio.run(_measure(stack, arguments.memories, arguments.questions))
    json.dump(result, sys.stdout, indent=2, ensure_ascii=False)
    sys.stdout.write("\n")
    return 0


async def _measure(stack: Stack, memories: int, questions: int) -> dict[str, object]:
    with ControlPlane(stack.address, stack.issuer) as control_plane:
        control_plane.state(Company("acme", ("lin",), {"assistant": True}))
    session = stack.issuer.session_token(user="lin", company="acme", bot="assistant", actor=BOT_RUNTIME)
    metadata = (
        ("authorization", f"Bearer {stack.issuer.service_token(BOT_RUNTIME)}"),
        ("openbot-session", session),
    )
    asked = [f"What about {_TOPICS[number % len(_TOPICS)]}, case {number}?" for number in range(questions)]
    async with grpc.aio.insecure_channel(stack.address) as channel:
        stub = memory_service_pb2_grpc.MemoryServiceStub(channel)

        async def remember(number: int) -> None:
            text = f"Note {number} on {_TOPICS[number % len(_TOPICS)]}: option {number * 7 % 13} was chosen."
            request = memory_service_pb2.RememberRequest(text=text, request_id=str(uuid4()))
            await stub.Remember(request, metadata=metadata)

        async def recall(query: str) -> None:
            await stub.Recall(memory_service_pb2.RecallRequest(query=query), metadata=metadata)

        began = time.perf_counter()
        for number in range(memories):
            await remember(number)
        remember_s = (time.perf_counter() - began) / memories
        bank, drain_s = await _indexed(stack.admin_dsn)
        key = stack.issuer.bank_key_file(MEMORY_API_SIGNER).read_bytes()
        async with HindsightIndex(stack.index_url, BankTokenSigner(key, issuer=MEMORY_API_SIGNER)) as index:

            async def direct(query: str) -> None:
                await index.recall(bank, query, max_tokens=4096, timeout_s=30)

            baseline = await _median(direct, asked)
            served = await _median(recall, asked)
        if stack.hindsight is None:
            raise RuntimeError("the bench runs Hindsight itself")
        stack.hindsight.kill()
        degraded = await _median(recall, asked)
    return {
        "baseline": "one Hindsight recall, asked directly, median",
        "memories": memories,
        "questions": questions,
        "recall_with_index": round(served / baseline, 2),
        "recall_without_index": round(degraded / baseline, 2),
        "remember": round(remember_s / baseline, 2),
        "indexing_one_memory_after_the_last_remember": round(drain_s / memories / baseline, 2),
    }


async def _indexed(dsn: str) -> tuple[str, float]:
    began = time.perf_counter()
    connection = await asyncpg.connect(dsn)
    try:
        while await connection.fetchval("select count(*) from openbot.outbox"):  # noqa: ASYNC110 - another process ends it
            await asyncio.sleep(0.1)
        return str(
            await connection.fetchval("select bank_id from openbot.scopes")
        ), time.perf_counter() - began
    finally:
        await connection.close()


async def _median(ask: Callable[[str], Awaitable[None]], questions: list[str]) -> float:
    times = []
    for question in questions:
        began = time.perf_counter()
        await ask(question)
        times.append(time.perf_counter() - began)
    return statistics.median(times)


if __name__ == "__main__":
    sys.exit(main())
