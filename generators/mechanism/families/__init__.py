"""One file a family; each exports one class."""
