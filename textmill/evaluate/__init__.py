"""Measuring models: metrics with intervals, paired comparison, predictions, reports."""
