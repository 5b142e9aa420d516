"""The gRPC service over the authoritative records."""
