"""A wire of ours between a service and PostgreSQL that can be absent, freeze, or break."""

import asyncio
import threading
from collections.abc import Awaitable
from types import TracebackType
from typing import Self
from urllib.parse import urlsplit, urlunsplit

from devstack.ports import free_port


class Wire:
    """Carries bytes to the server of ``dsn`` while it is plugged in. Use as a context manager."""

    def __init__(self, dsn: str) -> None:
        self._parts = urlsplit(dsn)
        self._port = free_port()
        user = self._parts.netloc.rpartition("@")[0]
        self.dsn = urlunsplit(self._parts._replace(netloc=f"{user}@127.0.0.1:{self._port}"))
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._server: asyncio.Server | None = None
        self._flowing = asyncio.Event()
        self._carrying: set[asyncio.Task[None]] = set()

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._do(self._unplug())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)
        self._loop.close()

    def plug_in(self) -> None:
        """From now on connections are accepted and bytes flow."""
        self._do(self._plug_in())

    def freeze(self) -> None:
        """Connections stay and nothing passes through them, as when a machine hangs."""
        self._loop.call_soon_threadsafe(self._flowing.clear)

    def cut(self) -> None:
        """Every connection breaks; new ones are accepted."""
        self._do(self._cut())

    def _do(self, work: Awaitable[None]) -> None:
        async def run() -> None:
            await work

        asyncio.run_coroutine_threadsafe(run(), self._loop).result(10)

    async def _plug_in(self) -> None:
        self._flowing.set()
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", self._port)

    async def _unplug(self) -> None:
        if self._server is not None:
            self._server.close()
        await self._cut()

    async def _cut(self) -> None:
        tasks = list(self._carrying)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there, back = await asyncio.open_connection(self._parts.hostname, self._parts.port)
        for source, sink in ((reader, back), (there, writer)):
            task = asyncio.create_task(self._carry(source, sink, (writer, back)))
            self._carrying.add(task)
            task.add_done_callback(self._carrying.discard)

    async def _carry(
        self,
        source: asyncio.StreamReader,
        sink: asyncio.StreamWriter,
        both: tuple[asyncio.StreamWriter, asyncio.StreamWriter],
    ) -> None:
        try:
            while some := await source.read(65536):
                await self._flowing.wait()
                sink.write(some)
                await sink.drain()
        except OSError:
            pass
        finally:
            for writer in both:
                writer.transport.abort()
