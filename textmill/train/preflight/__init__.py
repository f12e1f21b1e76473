"""A model looked over before its first step: seconds instead of a lost training."""
