"""languages/python."""
