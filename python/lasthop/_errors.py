"""What lasthop raises."""

from __future__ import annotations


class ScenarioError(ValueError):
    """An input that cannot be run, with what is wrong, where, and what would be right.

    Attributes:
        message: What is wrong, in one sentence.
        code: A stable word for the kind of fault, such as ``unknown-key``; empty where no scenario is concerned.
        key: The key concerned, dotted as :meth:`Scenario.set` takes it.
        source: Where it was written: a file's name, ``set`` or ``vary``.
        line: The line there, counted from one; zero where no text is concerned.
        column: The column there, in characters, counted from one.
        label: A few words for the place itself.
        help: What was expected, an example, and what was probably meant.
    """

    def __init__(
        self,
        message: str,
        *,
        code: str = "",
        key: str = "",
        source: str = "",
        line: int = 0,
        column: int = 0,
        quoted: str = "",
        label: str = "",
        help: str = "",
    ) -> None:
        super().__init__(message)
        self.message = message
        self.code = code
        self.key = key
        self.source = source
        self.line = line
        self.column = column
        self.quoted = quoted
        self.label = label
        self.help = help

    def __str__(self) -> str:
        lines = [self.message]
        if self.line:
            number = str(self.line)
            pad = " " * len(number)
            lines.append(f"{pad}--> {self.source}:{self.line}:{self.column}")
            lines.append(f"{number} | {self.quoted}")
            lines.append(f"{pad} | {' ' * (self.column - 1)}^ {self.label}")
        lines.extend(f"help: {line}" if i == 0 else f"      {line}" for i, line in enumerate(self.help.splitlines()))
        return "\n".join(lines)

    def __reduce__(self) -> tuple[object, ...]:
        return _restored, (self.__dict__.copy(),)


def _restored(fields: dict[str, object]) -> ScenarioError:
    error = ScenarioError(str(fields["message"]))
    error.__dict__.update(fields)
    return error


class ScenarioWarning(UserWarning):
    """Something that a scenario says and that probably is not meant. It is run all the same."""
