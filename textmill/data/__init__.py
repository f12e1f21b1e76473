"""Labelled text from files to examples: read, clean, audit, split, the teacher, and data sets to get."""
