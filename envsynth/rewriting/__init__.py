"""An instruction in other words, as vague as is wanted, with every fact that its checks need."""

from envsynth.rewriting.facts import LEAVES_OUT, Fact, Original, facts_said
from envsynth.rewriting.levels import LEVELS
from envsynth.rewriting.literals import literals, says, states
from envsynth.rewriting.rewriter import Rewritten, rewrite, rewriting_version

__all__ = [
    "LEAVES_OUT",
    "LEVELS",
    "Fact",
    "Original",
    "Rewritten",
    "facts_said",
    "literals",
    "rewrite",
    "rewriting_version",
    "says",
    "states",
]
