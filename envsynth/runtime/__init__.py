"""What plays and grades episodes. Standard library only (gymnasium in `gym` alone); copied whole into every pack."""
