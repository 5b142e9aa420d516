"""The index as our services see it: ids, scores and proofs; never a word that it says."""

from hindsight_index.bank_settings import BANK_SETTINGS, BANK_SETTINGS_VERSION
from hindsight_index.bank_tokens import MAX_LIFETIME, BankTokenSigner
from hindsight_index.client import Document, HindsightIndex, Hit, IndexOperation
from hindsight_index.errors import (
    BankMissing,
    HindsightError,
    HindsightProtocolError,
    HindsightRefused,
    HindsightUnavailable,
    NothingToIndex,
)
from hindsight_index.indexable_text import indexable

__all__ = [
    "BANK_SETTINGS",
    "BANK_SETTINGS_VERSION",
    "MAX_LIFETIME",
    "BankMissing",
    "BankTokenSigner",
    "Document",
    "HindsightError",
    "HindsightIndex",
    "HindsightProtocolError",
    "HindsightRefused",
    "HindsightUnavailable",
    "Hit",
    "IndexOperation",
    "NothingToIndex",
    "indexable",
]
