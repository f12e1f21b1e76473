"""Backbone, heads, classifier, the files of a model, and Predictors on torch."""
