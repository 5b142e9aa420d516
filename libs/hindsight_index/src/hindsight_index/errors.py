"""What can go wrong with the index. No text of a request or a response is ever in them (I13)."""

from __future__ import annotations


class HindsightError(Exception):
    """Base of everything this package raises for the index."""

    text = "the index failed"

    def __init__(self) -> None:
        super().__init__(self.text)


class HindsightUnavailable(HindsightError):
    """No connection, no answer in time, or a server error. ``retry_after`` is the wait that the index
    asked for, in seconds, if it named one."""

    text = "the index does not answer"

    def __init__(self, retry_after: float | None = None) -> None:
        super().__init__()
        self.retry_after = retry_after


class HindsightRefused(HindsightError):
    """The guard did not accept the token, or not for this bank and operation (401, 403)."""

    text = "the index refused the token"


class BankMissing(HindsightError):
    """The index has no such bank."""

    text = "the index has no such bank"


class HindsightProtocolError(HindsightError):
    """An answer that 1.1.0 does not give: another status, no JSON, or another shape."""

    text = "the index gave an answer that makes no sense"


class NothingToIndex(HindsightError):
    """The text holds only what Hindsight would drop. Trying again changes nothing."""

    text = "nothing in the text can be indexed"
