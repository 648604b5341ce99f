"""Benchmarks: one module a layer, the rows of the targets, and peers side by side."""
