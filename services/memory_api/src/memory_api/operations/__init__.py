"""One module an RPC: what it means, without transport. Never imports grpc or generated protobuf."""
