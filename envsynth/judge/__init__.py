"""The judge of process and coherence: it may lower an outcome, and never rescues one."""

from envsynth.judge.agreement import Confusion, confusion
from envsynth.judge.calibration import Calibration, Labelled, Trials, calibrate
from envsynth.judge.case import Brief, Case, Rows, Turn, case_of, policies_of, world_case
from envsynth.judge.gate import gate_faults, mistaken_calls
from envsynth.judge.judge import Judge
from envsynth.judge.pairwise import LengthRule, Preference, compare, length_of, ranked
from envsynth.judge.planting import PLACES, Place, overrides, planted
from envsynth.judge.rubric import Rubric, RubricLine, instruction_hash, rubric_of, written_rubric
from envsynth.judge.scorepad import Mark, Pointer, Score, Scorepad, entered

__all__ = [
    "PLACES",
    "Brief",
    "Calibration",
    "Case",
    "Confusion",
    "Judge",
    "Labelled",
    "LengthRule",
    "Mark",
    "Place",
    "Pointer",
    "Preference",
    "Rows",
    "Rubric",
    "RubricLine",
    "Score",
    "Scorepad",
    "Trials",
    "Turn",
    "calibrate",
    "case_of",
    "compare",
    "confusion",
    "entered",
    "gate_faults",
    "instruction_hash",
    "length_of",
    "mistaken_calls",
    "overrides",
    "planted",
    "policies_of",
    "ranked",
    "rubric_of",
    "world_case",
    "written_rubric",
]
