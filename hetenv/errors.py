"""The one exception that means "your input is wrong": it names the place, the value and the remedy."""

from __future__ import annotations

LONGEST = 500  # characters of what was found and of the remedy, which may name things found


def shortened(text: str) -> str:
    """``text``, its middle left out where it is long."""
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 100]} ... {text[-90:]}"


class InputError(ValueError):
    """Bad input from a user: a file, a field, an option or an array.

    The message is one line: where, what was found, what would be right. Command lines print it
    and exit with status 2; libraries see an ordinary ``ValueError``.
    """

    def __init__(self, where: str, found: object, remedy: str) -> None:
        self.where, self.found, self.remedy = where, found, remedy
        super().__init__(f"{where}: {shortened(str(found))}; {shortened(remedy)}")

    def __reduce__(self) -> tuple[type[InputError], tuple[str, object, str]]:
        return type(self), (self.where, self.found, self.remedy)  # worker processes send it home


class PlanError(ValueError):
    """A plan that the cluster cannot carry out. The simulator's state is unchanged."""


class StallError(RuntimeError):
    """No event is left, yet jobs wait: the scheduler refused to place them on an idle cluster."""
