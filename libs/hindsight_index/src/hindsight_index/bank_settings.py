"""How every bank is set, and why. Seen on a real 1.1.0 and shown by the contract tests."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping

BANK_SETTINGS: Mapping[str, str | bool] = {
    # The confirmed words are stored as they are; any other mode lets a model rewrite them (I2).
    "retain_extraction_mode": "chunks",
    # Graph hits are fused above semantic ones: Chinese questions lost every answer with it on.
    "enable_graph_retrieval": False,
    # Observations need a model and are harvested on our decision only (I15).
    "enable_observations": False,
    "enable_auto_consolidation": False,
    # Validity is PostgreSQL's to decide; parsing dates out of questions only costs time.
    "enable_temporal_retrieval": False,
}

#: Changes whenever the settings do, so that banks are set again.
BANK_SETTINGS_VERSION = hashlib.sha256(json.dumps(BANK_SETTINGS, sort_keys=True).encode()).hexdigest()[:12]
