"""The guard and the order inside other people's training code."""
