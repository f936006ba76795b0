"""Validators, imported as `envsynth.validators`; one file or folder each."""
