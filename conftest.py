"""Loaded before everything that imports gRPC."""

import os

# Tests start processes while channels are open; gRPC's fork handlers can wait for themselves then.
os.environ.setdefault("GRPC_ENABLE_FORK_SUPPORT", "false")
