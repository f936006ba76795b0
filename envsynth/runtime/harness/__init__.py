"""Runs a project's tests inside its own interpreter and reports each of them over a channel outside the tree.

Standard library and pytest only, Python 3.7 syntax: this package is mounted into sandboxes and started there as
`python -s -B harness/main.py`, never imported by envsynth itself.
"""
