"""Real data sets that install through the user's own package tools."""
