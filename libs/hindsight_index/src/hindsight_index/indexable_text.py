"""What Hindsight 1.1.0 keeps of a text, so that reading back can be compared word by word."""

from __future__ import annotations

import re

# Hindsight drops control characters and whatever looks like its own attachment placeholders.
_DROPPED = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]|⟦hs-att:[^⟧]*⟧")


def indexable(text: str) -> str:
    """The part of ``text`` that is stored as it is; nearly always all of it. May be empty."""
    while (kept := _DROPPED.sub("", text)) != text:
        text = kept
    return text
