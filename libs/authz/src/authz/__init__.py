"""Signed tokens to a principal, and the table of who may call what.

The library reads key files and does no other input or output, and it knows no transport.
"""

from authz.decision import DECISIONS, Rule, SessionNeed, decide
from authz.errors import (
    AuthenticationFailed,
    AuthenticationFailure,
    ConfigurationError,
    Denial,
    PermissionDenied,
)
from authz.issuers import IdentityConfig, Issuer, IssuerKind, parse_issuers
from authz.keys import JwksFile
from authz.principal import Entry, Principal, Service, ServiceRole
from authz.verifier import IdentityVerifier

__all__ = [
    "DECISIONS",
    "AuthenticationFailed",
    "AuthenticationFailure",
    "ConfigurationError",
    "Denial",
    "Entry",
    "IdentityConfig",
    "IdentityVerifier",
    "Issuer",
    "IssuerKind",
    "JwksFile",
    "PermissionDenied",
    "Principal",
    "Rule",
    "Service",
    "ServiceRole",
    "SessionNeed",
    "decide",
    "parse_issuers",
]
