"""Signed tokens to a principal, and the table of who may call what.

The library loads keys and does no other input or output, and it knows no transport.
"""

from authz.decision import DECISIONS, Rule, SessionNeed, decide, decide_company, needs_session
from authz.errors import (
    AuthenticationFailed,
    AuthenticationFailure,
    ConfigurationError,
    Denial,
    PermissionDenied,
)
from authz.issuers import IdentityConfig, Issuer, IssuerKind, TokenFormat, Workload, parse_issuers
from authz.jwks_file import JwksFile
from authz.jwks_url import JwksLocation, JwksUrl
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
    "JwksLocation",
    "JwksUrl",
    "PermissionDenied",
    "Principal",
    "Rule",
    "Service",
    "ServiceRole",
    "SessionNeed",
    "TokenFormat",
    "Workload",
    "decide",
    "decide_company",
    "needs_session",
    "parse_issuers",
]
