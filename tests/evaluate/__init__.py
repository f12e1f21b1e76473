"""Tests of textmill.evaluate."""
