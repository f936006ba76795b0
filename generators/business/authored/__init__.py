"""Worlds and tasks that an author model writes."""
