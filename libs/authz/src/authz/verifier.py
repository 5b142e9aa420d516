"""Two signed tokens in, one principal out."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from authz.errors import AuthenticationFailed, AuthenticationFailure, ConfigurationError
from authz.identifiers import is_spiffe_id
from authz.issuers import IdentityConfig, Issuer, IssuerKind
from authz.keys import JwksFile
from authz.principal import Principal, Service
from authz.session import session_from
from authz.signed_token import Acceptance, TokenExpired, TokenInvalid, TrustedIssuer, verified_claims

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

    Construction reads every issuer's keys and raises ``ConfigurationError`` for a missing audience or a key
    file without usable keys, so a process that cannot recognise anybody never starts. ``leeway`` is the
    tolerance between clocks, at most five minutes; ``clock`` returns an aware instant.
    """

    def __init__(
        self,
        config: IdentityConfig,
        audience: str,
        leeway: timedelta = timedelta(seconds=30),
        clock: Callable[[], datetime] = _utc_now,
    ) -> None:
        if not audience or audience != audience.strip():
            raise ConfigurationError("audience", "must be named, without spaces around it")
        if not timedelta(0) <= leeway <= _MOST_LEEWAY:
            raise ConfigurationError("leeway", "must be between zero and five minutes")
        self._audience = audience
        self._leeway = leeway
        self._clock = clock
        self._services = config.services
        self._trusted = {kind: _trusted(config, kind) for kind in IssuerKind}

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
        if session.actor != service.spiffe_id:
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
        """The workload behind a JWT-SVID, for calls without a session; ``AuthenticationFailed`` otherwise.

        ``SERVICE_UNKNOWN`` means a good token of a workload without a role here, or of one its issuer is
        not configured to speak for.
        """
        issuer, claims = self._claims(IssuerKind.SERVICE, service_token)
        subject = claims.get("sub")
        if not is_spiffe_id(subject):
            raise AuthenticationFailed(AuthenticationFailure.SERVICE_TOKEN_INVALID)
        role = self._services.get(subject)
        if role is None or (issuer.subjects and subject not in issuer.subjects):
            raise AuthenticationFailed(AuthenticationFailure.SERVICE_UNKNOWN)
        return Service(spiffe_id=subject, role=role)

    def _claims(self, kind: IssuerKind, token: str | None) -> tuple[Issuer, dict[str, object]]:
        failures = _FAILURES[kind]
        if token is None or token == "":
            raise AuthenticationFailed(failures.missing)
        acceptance = Acceptance(audience=self._audience, now=self._clock(), leeway=self._leeway)
        try:
            return verified_claims(token, self._trusted[kind], acceptance)
        except TokenExpired:
            raise AuthenticationFailed(failures.expired) from None
        except TokenInvalid:
            raise AuthenticationFailed(failures.invalid) from None


def _trusted(config: IdentityConfig, kind: IssuerKind) -> Mapping[str, TrustedIssuer]:
    trusted: dict[str, TrustedIssuer] = {}
    for position, issuer in enumerate(config.issuers):
        if issuer.kind is not kind:
            continue
        try:
            keys = JwksFile(issuer.jwks_file, issuer.algorithms)
        except ConfigurationError as error:
            raise ConfigurationError(f"issuers[{position}].{error.key}", error.problem) from None
        trusted[issuer.issuer] = TrustedIssuer(issuer, keys)
    return trusted
