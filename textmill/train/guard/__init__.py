"""Notices a training that has fallen into the constant answer, and says why."""
