"""The HTTP API of submissions and benchmarks; put together in :mod:`evalsite.api`."""
