"""Measurements of `bench/data.py`: files to read, and what is run in a process of its own."""
