"""Doors into the server: predict, the other public routes, admin."""
