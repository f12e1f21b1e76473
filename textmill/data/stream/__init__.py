"""Data larger than memory: rows as they are read, in an order that can be gone on with."""
