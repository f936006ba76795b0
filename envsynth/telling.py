"""What a build tells while it runs, and when it has heard the same trouble often enough to stop."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from envsynth.errors import EnvsynthError
from envsynth.models import Event, EventKind, Outcome

__all__ = ["SAME_ERRORS", "Progress", "Teller"]

Progress = Callable[[Event], None]

SAME_ERRORS = 5
"""So many equal infrastructure errors in a row stop a build: the cause is one, and more tries will not help."""
_DETAIL = 200
"""Characters of a lead's detail that are shown; the catalog has all."""


class Teller:
    """Counts, and turns what happens into events."""

    def __init__(self, progress: Progress, *, keep_going: bool) -> None:
        self._progress = progress
        self._keep_going = keep_going
        self.done = 0
        """Leads settled so far."""
        self.total = 0
        """Leads known so far."""
        self.errors: list[EnvsynthError] = []
        """Sources that could not be read."""
        self._noted: set[str] = set()
        self._trouble_kind = ""
        self._times = 0

    def say(self, kind: EventKind, text: str, source: str = "", **detail: str) -> None:
        """Tell one event."""
        self._progress(Event(kind, text, source, self.done, self.total, dict(detail)))

    def note(self, text: str) -> None:
        """Tell one line that is no error, of no source."""
        self.say("note", text)

    def notes(self, notes: Sequence[str], source: str) -> None:
        """Tell each note once a build."""
        for note in notes:
            if note not in self._noted:
                self._noted.add(note)
                self.say("note", note, source)

    def source_failed(self, *errors: EnvsynthError) -> None:
        """Tell of sources that cannot be built.

        Raises:
            EnvsynthError: the last of them, unless the build keeps going; or the same infrastructure error came too
                often.
        """
        for position, error in enumerate(errors, 1):
            if position == len(errors) and not self._keep_going:
                raise error
            self.errors.append(error)
            self.say("error", str(error))
            self._count(error.what if error.exit_code == EnvsynthError.exit_code else "", str(error))

    def source_read(self) -> None:
        """Note that the environment did its part: infrastructure errors before and after it are not in a row."""
        self._count("", "")

    def settled(self, outcome: Outcome, source: str, trouble_kind: str) -> None:
        """Tell what became of a lead.

        Args:
            outcome: what it came to.
            source: the source's URI.
            trouble_kind: what failed for the environment's sake, equal for equal errors; empty when nothing did.

        Raises:
            EnvsynthError: the same infrastructure error came too often.
        """
        self.done += 1
        name = outcome.task.id if outcome.task else outcome.lead.ref[:12]
        text = f"{outcome.status.value} {name}"
        text += f" ({outcome.reason}): {outcome.lead.title}" if outcome.reason else f": {outcome.lead.title}"
        if outcome.detail and not trouble_kind:
            text += f" [{outcome.detail[:_DETAIL]}]"
        self.say(
            "lead", text, source, status=outcome.status.value, reason=outcome.reason, detail=outcome.detail,
            lead=outcome.lead.key, name=name,
        )  # fmt: skip
        if trouble_kind and trouble_kind != self._trouble_kind:
            # Equal errors are told once; each stands in the catalog.
            self.say("error", f"owed {outcome.lead.ref[:12]}: {outcome.trouble}", source)
        self._count(trouble_kind, outcome.trouble)

    def _count(self, trouble_kind: str, cause: str) -> None:
        self._times = self._times + 1 if trouble_kind == self._trouble_kind else 1
        self._trouble_kind = trouble_kind
        if trouble_kind and self._times >= SAME_ERRORS:
            raise EnvsynthError(
                f"stopped after {SAME_ERRORS} equal infrastructure errors in a row", cause=cause,
                next_step="envsynth doctor; then the same command again: finished work is kept", retryable=True,
            )  # fmt: skip
