"""What every RPC passes before its servicer. The list in ``main.py`` is written once, in order."""
