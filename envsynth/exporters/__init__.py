"""Packs: admitted tasks written in a trainer's format. Exports are files; nothing here imports a trainer."""
