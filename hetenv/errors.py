"""The one exception that means "your input is wrong": it names the place, the value and the remedy."""

from __future__ import annotations

LONGEST = 500  # characters of each part of a message; all three may repeat what a user wrote


def _shortened(text: str) -> str:
    """``text`` on one line, its middle left out where it is long."""
    line = " ".join(text.splitlines())
    return line if len(line) <= LONGEST else f"{line[: LONGEST - 100]} ... {line[-90:]}"


class InputError(ValueError):
    """Bad input from a user: a file, a field, an option or an array.

    The message is one line: where, what was found, what would be right. Command lines print it
    and exit with status 2; libraries see an ordinary ``ValueError``.
    """

    def __init__(self, where: str, found: object, remedy: str) -> None:
        self.where, self.found, self.remedy = where, found, remedy
        super().__init__(f"{_shortened(where)}: {_shortened(str(found))}; {_shortened(remedy)}")

    def __reduce__(self) -> tuple[type[InputError], tuple[str, object, str]]:
        return type(self), (self.where, self.found, self.remedy)  # worker processes send it home


class PlanError(ValueError):
    """A plan that the cluster cannot carry out. The simulator's state is unchanged."""


class StallError(RuntimeError):
    """No event is left, yet jobs wait: the scheduler refused to place them on an idle cluster."""
