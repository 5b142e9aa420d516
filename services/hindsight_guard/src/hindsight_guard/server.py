"""``hindsight_guard.server:app``: Hindsight's ASGI application behind the door.

Serve it with ``python -m hindsight_guard``, which also checks the listener. Under another server the
door itself still refuses plain HTTP that does not arrive on a loopback address.
"""

from __future__ import annotations

import os

from hindsight_guard.asgi import Door
from hindsight_guard.logs import withhold_words
from hindsight_guard.settings import check_hindsight_settings, verifier_from_environment

withhold_words()
check_hindsight_settings(os.environ)
_verifier = verifier_from_environment()

# After the checks: importing it builds the whole of Hindsight.
from hindsight_api.server import app as _hindsight  # noqa: E402

# Again, for that import lets a `.env` file found on the way up override the environment.
check_hindsight_settings(os.environ)

app = Door(_hindsight, _verifier)
