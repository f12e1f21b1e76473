"""The other side of each serving benchmark, as a process of its own."""
