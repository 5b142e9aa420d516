"""Two signed tokens in, one principal out."""

import asyncio
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Self

from authz.errors import AuthenticationFailed, AuthenticationFailure, ConfigurationError
from authz.issuers import IdentityConfig, Issuer, IssuerKind
from authz.jwks_file import JwksFile
from authz.jwks_url import JwksLocation, JwksUrl
from authz.key_set import KeySource
from authz.principal import Principal, Service
from authz.session import session_from
from authz.signed_token import Acceptance, TokenExpired, TokenInvalid, TrustedIssuer, verified_claims
from authz.verified_tokens import VerifiedTokens

_MOST_LEEWAY = timedelta(minutes=5)


@dataclass(frozen=True, slots=True)
class _Failures:
    """What the three ways to fail are called for one kind of token."""

    missing: AuthenticationFailure
    invalid: AuthenticationFailure
    expired: AuthenticationFailure


_FAILURES = {
    IssuerKind.SERVICE: _Failures(
        missing=AuthenticationFailure.SERVICE_TOKEN_MISSING,
        invalid=AuthenticationFailure.SERVICE_TOKEN_INVALID,
        expired=AuthenticationFailure.SERVICE_TOKEN_EXPIRED,
    ),
    IssuerKind.SESSION: _Failures(
        missing=AuthenticationFailure.SESSION_TOKEN_MISSING,
        invalid=AuthenticationFailure.SESSION_TOKEN_INVALID,
        expired=AuthenticationFailure.SESSION_TOKEN_EXPIRED,
    ),
}


def _utc_now() -> datetime:
    return datetime.now(UTC)


class IdentityVerifier:
    """Recognises callers by the tokens of configured issuers.

    Construction reads key files; entering fetches keys from URLs, which goes on until it is left. Both raise
    ``ConfigurationError`` for a missing audience or a source without usable keys, so a process that cannot
    recognise anybody never starts. ``leeway`` is the tolerance between clocks, at most five minutes;
    ``clock`` returns an aware instant; ``remembered`` is how many verified tokens of each kind are kept.
    """

    def __init__(
        self,
        config: IdentityConfig,
        audience: str,
        leeway: timedelta = timedelta(seconds=30),
        clock: Callable[[], datetime] = _utc_now,
        remembered: int = 4096,
    ) -> None:
        if not audience or audience != audience.strip():
            raise ConfigurationError("audience", "must be named, without spaces around it")
        if not timedelta(0) <= leeway <= _MOST_LEEWAY:
            raise ConfigurationError("leeway", "must be between zero and five minutes")
        self._audience = audience
        self._leeway = leeway
        self._clock = clock
        self._services = config.services
        sources = [_source(position, issuer) for position, issuer in enumerate(config.issuers)]
        self._urls = {position: each for position, each in enumerate(sources) if isinstance(each, JwksUrl)}
        self._trusted = {
            kind: {
                issuer.issuer: TrustedIssuer(issuer, source)
                for issuer, source in zip(config.issuers, sources, strict=True)
                if issuer.kind is kind
            }
            for kind in IssuerKind
        }
        # One for each kind: a token of one kind is never a hit for the other.
        self._verified = {kind: VerifiedTokens(remembered) for kind in IssuerKind}

    async def __aenter__(self) -> Self:
        try:
            for position, source in self._urls.items():
                with _placed(position):
                    await source.start()
        except BaseException:
            await self._close()
            raise
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._close()

    async def _close(self) -> None:
        for source in self._urls.values():
            await source.aclose()

    async def refreshed(self) -> bool:
        """Whether verifying once more may help a token that was refused: its key was not known, and keys
        have been fetched anew because of that. Bounded, however often it is asked."""
        return any(await asyncio.gather(*(source.refreshed() for source in self._urls.values())))

    def verify(self, service_token: str | None, session_token: str | None) -> Principal:
        """The principal behind both tokens; ``AuthenticationFailed`` otherwise, whatever the input.

        Tokens are bare compact JWTs, without ``Bearer``. A session counts only in the hands of the workload
        its ``act.sub`` names (RFC 8693), so a stolen session token is useless to another one.
        """
        service = self.verify_service(service_token)
        _, claims = self._claims(IssuerKind.SESSION, session_token)
        try:
            session = session_from(claims)
        except TokenInvalid:
            raise AuthenticationFailed(AuthenticationFailure.SESSION_TOKEN_INVALID) from None
        if session.actor != service.workload_id:
            raise AuthenticationFailed(AuthenticationFailure.SESSION_NOT_FOR_THIS_SERVICE)
        return Principal(
            service=service,
            company=session.company,
            user=session.user,
            bot=session.bot,
            entry=session.entry,
            present=session.present,
            sources=session.sources,
            company_admin=session.company_admin,
        )

    def verify_service(self, service_token: str | None) -> Service:
        """The workload behind a service token, for calls without a session.

        ``AuthenticationFailed`` with ``SERVICE_UNKNOWN`` means a good token of a workload without a role
        here, or of one that its issuer is not configured to speak for.
        """
        issuer, claims = self._claims(IssuerKind.SERVICE, service_token)
        subject = claims.get("sub")
        if not issuer.token_format.names(subject):
            raise AuthenticationFailed(AuthenticationFailure.SERVICE_TOKEN_INVALID)
        workload = self._services.get(subject)
        if workload is None or (issuer.subjects and subject not in issuer.subjects):
            raise AuthenticationFailed(AuthenticationFailure.SERVICE_UNKNOWN)
        return Service(workload_id=subject, role=workload.role, companies=workload.companies)

    def _claims(self, kind: IssuerKind, token: str | None) -> tuple[Issuer, Mapping[str, object]]:
        failures = _FAILURES[kind]
        if token is None or token == "":
            raise AuthenticationFailed(failures.missing)
        acceptance = Acceptance(audience=self._audience, now=self._clock(), leeway=self._leeway)
        try:
            return verified_claims(token, self._trusted[kind], acceptance, self._verified[kind])
        except TokenExpired:
            raise AuthenticationFailed(failures.expired) from None
        except TokenInvalid:
            raise AuthenticationFailed(failures.invalid) from None


def _source(position: int, issuer: Issuer) -> KeySource:
    if isinstance(issuer.jwks, JwksLocation):
        return JwksUrl(issuer.jwks, issuer.algorithms)
    with _placed(position):
        return JwksFile(issuer.jwks, issuer.algorithms)


@contextmanager
def _placed(position: int) -> Iterator[None]:
    """Says which issuer it is that cannot be configured so."""
    try:
        yield
    except ConfigurationError as error:
        raise ConfigurationError(f"issuers[{position}].{error.key}", error.problem) from None
