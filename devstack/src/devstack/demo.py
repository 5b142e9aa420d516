"""``make demo``: the main job told as a story on real parts, checking itself."""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import asyncpg
import grpc
from openbot.memory.v1 import authority_service_pb2, forget_pb2, memory_pb2, memory_service_pb2

from devstack.client import Session
from devstack.control_plane import ControlPlane
from devstack.paths import postgres_home
from devstack.postgres import EmbeddedPostgres
from devstack.sample_companies import ACME, GLOBEX
from devstack.screen import Screen
from devstack.stack import Stack, fresh_stack_directory

MEETING = "产品周会从周五改到周一上午十点。"
BULLETS = "I want reports as short bullet points, one line each."
RISKS = "汇报先讲风险，再讲进展。"
SENTENCES = (MEETING, BULLETS, RISKS)

Answer = memory_service_pb2.RecallResponse


def main() -> int:
    """Runs the story. Returns 1 if any check failed."""
    screen = Screen()
    screen.chapter("Starting every part on this machine")
    directory = fresh_stack_directory("demo")
    stack = Stack(directory, EmbeddedPostgres(postgres_home()), name="demo", step=screen.step)
    with stack:
        with ControlPlane(stack.address, stack.issuer) as control_plane:
            control_plane.state(ACME, GLOBEX)
        _tell(screen, stack)
    screen.chapter("What operators could read")
    _check_traces(screen, stack.logs)
    screen.line(f"logs and spans of this run: {stack.logs}")
    if screen.failures:
        screen.chapter(f"{screen.failures} checks failed")
        return 1
    screen.chapter("Everything held.")
    return 0


def _tell(screen: Screen, stack: Stack) -> None:
    def session(user: str = "lin", company: str = "acme", bot: str = "assistant") -> Session:
        return Session(
            stack.address, stack.issuer, user=user, company=company, bot=bot, sources=("weekly-sync",)
        )

    with session() as lin:
        screen.chapter("Lin asks to remember three things")
        meeting = lin.remember(MEETING, source="weekly-sync")
        bullets = lin.remember(BULLETS)
        risks = lin.remember(RISKS)
        for memory in (meeting, bullets, risks):
            _show(screen, memory)

        screen.chapter("Recalled by its words at once, indexed or not")
        _expect(screen, lin, "周会改到哪天了？", MEETING)

        screen.chapter("The outbox reaches Hindsight")
        for memory in (meeting, bullets, risks):
            began = time.monotonic()
            indexed = _until(lambda name=memory.name: _is_indexed(lin.get(name)), 60)  # type: ignore[misc]
            screen.check(f"{memory.name} indexed after {time.monotonic() - began:.1f} s", holds=indexed)

        screen.chapter("Recalled by meaning, across languages")
        _expect(screen, lin, "When does the product team get together now?", MEETING)
        _expect(screen, lin, "What format do I want for reports?", BULLETS)
        _expect(screen, lin, "Do I present risks or progress first?", RISKS)

        screen.chapter("Everybody else gets nothing")
        _expect_nothing(screen, session(user="omar"), "Omar, a colleague")
        _expect_nothing(screen, session(company="globex"), "Lin in another company")
        _expect_nothing(screen, session(bot="ticket-bot"), "a bot without general preferences or grants")
        _expect_nothing(screen, session(bot="unknown-bot"), "a bot that the company does not have")

        _take_back_and_give_back(screen, stack, lin)

        screen.chapter("Hindsight stops")
        if stack.hindsight is None:
            raise RuntimeError("the demo runs Hindsight itself")
        stack.hindsight.kill()
        answer = _expect(screen, lin, "周会改到哪天了？", MEETING)
        screen.check(
            f"answered by PostgreSQL and marked degraded: {answer.degraded_reason}",
            holds=answer.served_by == Answer.SERVED_BY_LEXICAL and bool(answer.degraded_reason),
        )

        screen.chapter("Lin asks to forget the meeting while Hindsight is down")
        forget = lin.forget(meeting.name)
        screen.check("use has stopped", holds=forget.HasField("stop_use_time"))
        _expect_without(screen, lin, "周会改到哪天了？", MEETING)
        screen.check("the text is erased", holds=lin.get(meeting.name).text == "")
        _until(lambda: any(each.cleared_count for each in lin.get_forget(forget.name).clearances), 10)
        screen.check("not called cleared yet", holds=not lin.get_forget(forget.name).HasField("clear_time"))
        _show_clearances(screen, lin.get_forget(forget.name))

        screen.chapter("Hindsight is back")
        with screen.step("Hindsight again"):
            stack.start_hindsight()
        cleared = _until(lambda: lin.get_forget(forget.name).state == forget_pb2.Forget.STATE_CLEARED, 90)
        screen.check("cleared, with evidence for every domain", holds=cleared)
        _show_clearances(screen, lin.get_forget(forget.name))
        _expect_without(screen, lin, "When does the product team get together now?", MEETING)
        recovered = _until(lambda: lin.recall("报告格式").served_by == Answer.SERVED_BY_INDEX, 30)
        screen.check("the index answers again by itself", holds=recovered)

    screen.chapter("The outbox")
    rows = asyncio.run(_outbox(stack.admin_dsn))
    screen.check(f"{len(rows)} rows are left and none holds a sentence", holds=not _held(json.dumps(rows)))


def _take_back_and_give_back(screen: Screen, stack: Stack, lin: Session) -> None:
    screen.chapter("The control plane takes back Lin's grant on the meeting's source")
    grant = authority_service_pb2.SourceUserGrant(source_id="weekly-sync", user_id="lin")
    with ControlPlane(stack.address, stack.issuer) as control_plane:
        control_plane.change("acme", removals=authority_service_pb2.FactKeys(source_user_grants=[grant]))
        _expect_without(screen, lin, "周会改到哪天了？", MEETING)
        control_plane.change("acme", upserts=authority_service_pb2.Facts(source_user_grants=[grant]))
    screen.line("and gives it back")
    _expect(screen, lin, "周会改到哪天了？", MEETING)


def _expect(screen: Screen, session: Session, query: str, text: str) -> Answer:
    answer = session.recall(query)
    screen.line(f"“{query}”")
    for item in answer.items[:1]:
        screen.line(f"→ {item.memory.text}")
    screen.check(
        "the first answer is the right one", holds=[i.memory.text for i in answer.items[:1]] == [text]
    )
    return answer


def _expect_without(screen: Screen, session: Session, query: str, text: str) -> None:
    texts = [item.memory.text for item in session.recall(query).items]
    screen.check(f"“{query}” no longer finds it", holds=text not in texts)


def _expect_nothing(screen: Screen, other: Session, who: str) -> None:
    with other:
        try:
            answers = [other.recall(query) for query in ("周会", "reports", "When is the weekly meeting?")]
        except grpc.RpcError as error:
            screen.check(f"{who}: {error.code()}", holds=False)
            return
    screen.check(f"{who}: an empty answer", holds=not any(answer.items for answer in answers))


def _show(screen: Screen, memory: memory_pb2.Memory) -> None:
    state = memory_pb2.IndexStatus.State.Name(memory.index_status.state)
    screen.line(f"{memory.name}  {memory.text}  [{memory.scope.WhichOneof('kind')}, {state}]")


def _show_clearances(screen: Screen, forget: forget_pb2.Forget) -> None:
    for each in forget.clearances:
        domain = forget_pb2.Clearance.Domain.Name(each.domain)
        screen.line(f"{domain}: {each.cleared_count} of {forget.memory_count} {each.pending_reason}")


def _is_indexed(memory: memory_pb2.Memory) -> bool:
    return memory.index_status.state == memory_pb2.IndexStatus.STATE_INDEXED


def _until(holds: Callable[[], bool], seconds: float) -> bool:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if holds():
            return True
        time.sleep(0.2)
    return False


async def _outbox(dsn: str) -> Sequence[dict[str, str]]:
    connection = await asyncpg.connect(dsn)
    try:
        rows = await connection.fetch("select * from openbot.outbox")
        return [{key: str(value) for key, value in row.items()} for row in rows]
    finally:
        await connection.close()


def _check_traces(screen: Screen, logs: Path) -> None:
    files = sorted(path for path in logs.iterdir() if path.is_file())
    screen.check(f"{len(files)} files of logs and spans were written", holds=len(files) >= 6)
    for path in files:
        held = _held(path.read_text(encoding="utf-8", errors="replace"))
        screen.check(f"{path.name}: {path.stat().st_size} bytes, no sentence of the story", holds=not held)


def _held(text: str) -> bool:
    forms = [form for each in SENTENCES for form in (each, json.dumps(each)[1:-1])]
    return any(form in text for form in forms)


if __name__ == "__main__":
    sys.exit(main())
