"""``python -m sync_daemon``."""

from sync_daemon.main import main

raise SystemExit(main())
