"""Tests of the measuring, not of the figures."""
