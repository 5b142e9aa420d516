"""Everything this library raises on purpose.

An error says why in one closed, machine-readable reason and one fixed sentence. Neither the sentence nor
the arguments ever hold a part of a token, a claim or a key (I5, I13).
"""

from enum import StrEnum


class AuthenticationFailure(StrEnum):
    """Why nobody could be recognised; the transport answers ``UNAUTHENTICATED``."""

    SERVICE_TOKEN_MISSING = "SERVICE_TOKEN_MISSING"  # noqa: S105  (a reason, not a secret)
    SERVICE_TOKEN_INVALID = "SERVICE_TOKEN_INVALID"  # noqa: S105
    SERVICE_TOKEN_EXPIRED = "SERVICE_TOKEN_EXPIRED"  # noqa: S105
    SERVICE_UNKNOWN = "SERVICE_UNKNOWN"
    SESSION_TOKEN_MISSING = "SESSION_TOKEN_MISSING"  # noqa: S105
    SESSION_TOKEN_INVALID = "SESSION_TOKEN_INVALID"  # noqa: S105
    SESSION_TOKEN_EXPIRED = "SESSION_TOKEN_EXPIRED"  # noqa: S105
    SESSION_NOT_FOR_THIS_SERVICE = "SESSION_NOT_FOR_THIS_SERVICE"


class Denial(StrEnum):
    """Why a recognised caller may not make this call; the transport answers ``PERMISSION_DENIED``."""

    METHOD_UNKNOWN = "METHOD_UNKNOWN"
    ROLE_NOT_ALLOWED = "ROLE_NOT_ALLOWED"
    SESSION_REQUIRED = "SESSION_REQUIRED"
    ENTRY_NOT_ALLOWED = "ENTRY_NOT_ALLOWED"
    PRESENCE_REQUIRED = "PRESENCE_REQUIRED"
    COMPANY_ADMIN_SEES_NO_MEMORY = "COMPANY_ADMIN_SEES_NO_MEMORY"
    COMPANY_NOT_YOURS = "COMPANY_NOT_YOURS"


_FAILURE_SENTENCES = {
    AuthenticationFailure.SERVICE_TOKEN_MISSING: "The call carries no service token.",
    AuthenticationFailure.SERVICE_TOKEN_INVALID: "The service token is not valid here.",
    AuthenticationFailure.SERVICE_TOKEN_EXPIRED: "The service token has expired.",
    AuthenticationFailure.SERVICE_UNKNOWN: "The calling service is not configured here.",
    AuthenticationFailure.SESSION_TOKEN_MISSING: "The call carries no session token.",
    AuthenticationFailure.SESSION_TOKEN_INVALID: "The session token is not valid here.",
    AuthenticationFailure.SESSION_TOKEN_EXPIRED: "The session token has expired.",
    AuthenticationFailure.SESSION_NOT_FOR_THIS_SERVICE: "The session was issued to another service.",
}

_DENIAL_SENTENCES = {
    Denial.METHOD_UNKNOWN: "No rule allows this method.",
    Denial.ROLE_NOT_ALLOWED: "The calling service's role may not call this method.",
    Denial.SESSION_REQUIRED: "This method needs a session.",
    Denial.ENTRY_NOT_ALLOWED: "This method is not open to a session of this entry.",
    Denial.PRESENCE_REQUIRED: "This method needs a person to be present.",
    Denial.COMPANY_ADMIN_SEES_NO_MEMORY: "An administrator's session may not reach anyone's memory.",
    Denial.COMPANY_NOT_YOURS: "The calling control plane may not write this company.",
}


class AuthenticationFailed(Exception):
    """The tokens prove nothing. ``reason`` is all that may be told, logged or counted."""

    def __init__(self, reason: AuthenticationFailure) -> None:
        super().__init__(_FAILURE_SENTENCES[reason])
        self.reason = reason


class PermissionDenied(Exception):
    """The caller is known and may not do this. ``reason`` may be told, logged and counted."""

    def __init__(self, reason: Denial) -> None:
        super().__init__(_DENIAL_SENTENCES[reason])
        self.reason = reason


class ConfigurationError(Exception):
    """The process must not start like this.

    ``key`` is the place in the configuration, such as ``issuers[0].algorithms``; ``problem`` is a fixed
    sentence. Configured values are not repeated.
    """

    def __init__(self, key: str, problem: str) -> None:
        super().__init__(f"{key}: {problem}")
        self.key = key
        self.problem = problem
