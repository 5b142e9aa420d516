"""The spellings of names that a token may carry.

All are plain ASCII, so a name can be logged, compared and stored as it is: no NUL, no white space, no
bidirectional controls, no look-alike that Unicode normalisation would merge.
"""

import re
from typing import TypeGuard

_IDENTIFIER = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@-]{0,127}")
_TRUST_DOMAIN = r"[a-z0-9._-]{1,255}"
_PATH_SEGMENT = r"/(?!\.{1,2}(?:/|\Z))[A-Za-z0-9._-]+"
_SPIFFE_ID = re.compile(rf"spiffe://{_TRUST_DOMAIN}(?:{_PATH_SEGMENT})+")
_SPIFFE_ID_BYTES = 2048
_LABEL = r"[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?"
_SERVICE_ACCOUNT = re.compile(rf"system:serviceaccount:{_LABEL}:(?=.{{1,253}}\Z){_LABEL}(?:\.{_LABEL})*")


def is_identifier(value: object) -> TypeGuard[str]:
    """Whether ``value`` can name a user, company, bot or source: 1 to 128 characters."""
    return isinstance(value, str) and _IDENTIFIER.fullmatch(value) is not None


def is_spiffe_id(value: object) -> TypeGuard[str]:
    """Whether ``value`` names a workload, ``spiffe://trust-domain/path`` (SPIFFE-ID, section 2).

    No user info, port, query, fragment, percent-encoding, empty or dot segment and no trailing slash; at
    most 2048 bytes. A trust domain alone names no workload and is refused.
    """
    return (
        isinstance(value, str) and len(value) <= _SPIFFE_ID_BYTES and _SPIFFE_ID.fullmatch(value) is not None
    )


def is_service_account(value: object) -> TypeGuard[str]:
    """Whether ``value`` names a Kubernetes service account, ``system:serviceaccount:<namespace>:<name>``.

    The namespace is a label and the name a subdomain of RFC 1123, as Kubernetes has them.
    """
    return isinstance(value, str) and _SERVICE_ACCOUNT.fullmatch(value) is not None


def is_workload_id(value: object) -> TypeGuard[str]:
    """Whether ``value`` names a workload in either way."""
    return is_spiffe_id(value) or is_service_account(value)
