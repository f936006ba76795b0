"""What the validators of world tasks share. No plug-in itself."""
