"""``python -m memory_api``."""

from memory_api.main import main

raise SystemExit(main())
