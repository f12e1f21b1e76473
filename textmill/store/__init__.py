"""Immutable, checked versions of a model, and which of them is live."""
