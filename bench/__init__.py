"""Measurements against other people's tools; `bin/bench NAME [--quick]` runs one."""
