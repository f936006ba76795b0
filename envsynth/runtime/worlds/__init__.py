"""Worlds: episodes in a SQLite database whose tools are SQL."""
