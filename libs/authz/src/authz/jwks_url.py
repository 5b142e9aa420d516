"""The public keys of one issuer, fetched from a URL (RFC 7517) and fetched again, within bounds.

The keys are fetched every few minutes. A ``kid`` that is not among them asks for a fetch before that, for a
key may be younger than the last fetch; however many tokens ask, there is one fetch at a time and a least
pause between two, after failures too. A failed fetch changes nothing, until the last good one is so long ago
that nobody knows any more which keys are still trusted: then there are none.
"""

import asyncio
import contextlib
import logging
import ssl
import time
from collections.abc import Callable
from dataclasses import dataclass
from ipaddress import ip_address
from pathlib import Path
from types import MappingProxyType
from urllib.parse import urlsplit

import httpx
import jwt

from authz.errors import ConfigurationError
from authz.key_set import MAX_DOCUMENT_BYTES, KeySetRefused, key_set

_log = logging.getLogger(__name__)

_FETCH_S = 5.0
# Whoever waits holds a place that others need; strangers with made-up tokens must not hold all of them.
_MOST_WAITING = 8


@dataclass(frozen=True, slots=True)
class JwksLocation:
    """Where a key set is published.

    ``url`` is HTTPS, or plain HTTP on a loopback address. ``ca_file`` holds PEM authorities in place of the
    system's; ``token_file`` a bearer token, read for every fetch, as a Kubernetes API server asks for.
    """

    url: str
    ca_file: Path | None = None
    token_file: Path | None = None


def is_safe_url(url: str) -> bool:
    """Whether keys from ``url`` can be believed: HTTPS, or plain HTTP that stays on this machine."""
    try:
        parts = urlsplit(url)
        if parts.scheme == "https":
            return bool(parts.hostname) and parts.username is None
        return parts.scheme == "http" and ip_address(parts.hostname or "").is_loopback
    except ValueError:
        return False


class JwksUrl:
    """The keys of one issuer by ``kid``. Nothing is known before ``start``.

    Seconds: ``refresh_s`` between two fetches; ``least_pause_s`` at least between the beginnings of a fetch
    and of one that a missing ``kid`` asks for; ``keep_s`` from the last good fetch until all keys are
    dropped. ``clock`` is monotonic.
    """

    def __init__(
        self,
        location: JwksLocation,
        algorithms: tuple[str, ...],
        *,
        refresh_s: float = 300,
        least_pause_s: float = 10,
        keep_s: float = 3600,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._location = location
        self._algorithms = algorithms
        self._refresh_s = refresh_s
        self._least_pause_s = least_pause_s
        self._keep_s = keep_s
        self._clock = clock
        self._keys: MappingProxyType[str, jwt.PyJWK] = MappingProxyType({})
        self._fetched_at = self._begun_at = float("-inf")
        self._missed = False
        self._waiting = 0
        self._fetching: asyncio.Task[bool] | None = None
        self._refreshing: asyncio.Task[None] | None = None
        self._client: httpx.AsyncClient | None = None

    async def start(self) -> None:
        """Fetches the keys and goes on doing so until ``aclose``.

        Raises ``ConfigurationError`` if there is no usable key: a process must not begin without.
        """
        try:
            tls = ssl.create_default_context(cafile=self._location.ca_file)
        except (OSError, ssl.SSLError):
            raise ConfigurationError("jwks_ca_file", "holds no PEM certificate") from None
        # No redirects: they would lead to hosts that nobody configured.
        self._client = httpx.AsyncClient(verify=tls, timeout=_FETCH_S, trust_env=False)
        try:
            self._adopt(await self._fetch())
        except KeySetRefused as refusal:
            await self.aclose()
            raise ConfigurationError("jwks_url", str(refusal)) from None
        if not self._keys:
            await self.aclose()
            raise ConfigurationError("jwks_url", "holds no key")
        self._refreshing = asyncio.create_task(self._refresh())

    async def aclose(self) -> None:
        """Ends everything that ``start`` began."""
        for task in (self._refreshing, self._fetching):
            if task is not None:
                task.cancel()
                with contextlib.suppress(asyncio.CancelledError):
                    await task
        if self._client is not None:
            await self._client.aclose()

    def key(self, kid: str) -> jwt.PyJWK | None:
        """The key with this ``kid`` as of the last good fetch, or ``None``; never raises."""
        if self._keys and self._clock() - self._fetched_at > self._keep_s:
            _log.warning("JWKS URL was silent for too long, every token of its issuer is refused")
            self._keys = MappingProxyType({})
        found = self._keys.get(kid)
        self._missed |= found is None
        return found

    async def refreshed(self) -> bool:
        """Fetches early if a ``kid`` was missed; True if that brought keys, so that another look may help.

        False at once if the last fetch is too fresh, or if enough callers wait for this one.
        """
        if not self._missed or self._waiting >= _MOST_WAITING:
            return False
        if self._fetching is None:
            if self._clock() - self._begun_at < self._least_pause_s:
                return False
            self._fetching = asyncio.create_task(self._try())
            self._fetching.add_done_callback(self._done)
        self._waiting += 1
        try:
            return await asyncio.shield(self._fetching)
        finally:
            self._waiting -= 1

    def _done(self, _: asyncio.Task[bool]) -> None:
        self._fetching = None

    async def _refresh(self) -> None:
        while True:
            await asyncio.sleep(self._refresh_s)
            await self._try()

    async def _try(self) -> bool:
        self._missed = False
        try:
            self._adopt(await self._fetch())
        except KeySetRefused as refusal:
            _log.warning("JWKS URL refused, the keys fetched before stay in use: %s", refusal)
            return False
        return True

    def _adopt(self, keys: dict[str, jwt.PyJWK]) -> None:
        # Keys that did not change stay the same objects, so that what was verified with them stays verified.
        self._keys = MappingProxyType(
            {kid: self._keys[kid] if _same(self._keys.get(kid), key) else key for kid, key in keys.items()}
        )
        self._fetched_at = self._clock()
        if not keys:
            _log.warning("JWKS URL holds no key, every token of its issuer is refused")

    async def _fetch(self) -> dict[str, jwt.PyJWK]:
        self._begun_at = self._clock()
        try:
            async with asyncio.timeout(_FETCH_S):
                return key_set(await self._document(), self._algorithms, leave_out_unfit=True)
        except (httpx.HTTPError, httpx.InvalidURL, OSError, TimeoutError, UnicodeError):
            raise KeySetRefused("cannot be fetched") from None

    async def _document(self) -> bytes:
        if self._client is None:
            raise KeySetRefused("was not started")
        # Not compressed, so that what is counted is what arrives.
        headers = {"accept": "application/jwk-set+json, application/json", "accept-encoding": "identity"}
        if self._location.token_file is not None:
            token = self._location.token_file.read_text(encoding="ascii").strip()
            headers["authorization"] = f"Bearer {token}"
        document = b""
        async with self._client.stream("GET", self._location.url, headers=headers) as response:
            if response.status_code != httpx.codes.OK:
                raise KeySetRefused("does not answer with a key set")
            async for part in response.aiter_raw():
                document += part
                if len(document) > MAX_DOCUMENT_BYTES:
                    break
        return document


def _same(old: jwt.PyJWK | None, new: jwt.PyJWK) -> bool:
    return old is not None and old.algorithm_name == new.algorithm_name and bool(old.key == new.key)
