"""Generators, imported as `envsynth.generators`; one folder each."""
