"""Groundwork's other services, asked over gRPC."""
