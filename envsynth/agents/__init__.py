"""Policies that play episodes: the panel's references, chance, and language models that call tools."""

from envsynth.agents.base import Agent, Limits, Played, Told
from envsynth.agents.blind import BlindAgent
from envsynth.agents.fixed import SkilledAgent, TrajectoryAgent
from envsynth.agents.model import ModelAgent

__all__ = ["Agent", "BlindAgent", "Limits", "ModelAgent", "Played", "SkilledAgent", "Told", "TrajectoryAgent"]
