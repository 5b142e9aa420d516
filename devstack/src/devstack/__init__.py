"""The embedded parts on which demo, tests and benchmarks run; never part of an image."""
