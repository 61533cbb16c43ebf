"""Errors and warnings of lasthop."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    import re


class ScenarioError(ValueError):
    """Invalid input: the fault, its place, and valid alternatives.

    Attributes:
        message: The fault, in one sentence.
        code: A stable name of the kind of fault, such as ``unknown-key``; empty if the fault is not in a scenario.
        key: The invalid key or argument; keys are dotted, as for :meth:`Scenario.set`.
        source: The place of the fault: a file's name, ``set`` or ``vary``.
        line: The line there, counted from one; zero if the fault is not in a text.
        column: The column there, in characters, counted from one.
        label: A few words about the place, shown below the quoted line.
        help: The expected input, an example, and the probable intention.
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


class AsWritten:
    """Replaces keys and options in errors by arguments of a Python function, in a ``with`` block.

    Studies build their own scenarios, and their messages name options of the command. ``keys`` maps the ends of keys of
    these scenarios to the arguments that set them.
    """

    def __init__(self, keys: dict[str, str] | None = None) -> None:
        self.keys = keys or {}

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, ScenarioError):
            self._rename(error)

    def _rename(self, error: ScenarioError) -> None:
        import re

        for end, argument in self.keys.items():
            if error.key.endswith(end):
                error.message = error.message.replace(f"`{error.key}`", argument, 1)
                error.help = re.sub(r"`[\w-]+ = ", f"`{argument}=", error.help.split("\n")[0])
                error.key, error.source, error.line, error.column = argument, argument, 0, 0
        for field in ("message", "help"):
            text = getattr(error, field)
            text = re.sub(r"--(set|vary) ([\w.-]+)=([\w.]+)", r'.\1("\2", \3)', text)
            text = re.sub(r"--([a-z][a-z-]+)(?:[ =]([^`\s]+))?", _argument, text)
            setattr(error, field, text)
        if not error.key and (begins := re.match(r"(?:there is no )?([a-z_]+)(?:: | is `| `)", error.message)):
            error.key = begins[1]
        error.args = (error.message,)


def _argument(option: re.Match[str]) -> str:
    name = option[1].replace("-", "_")
    return f"{name}={option[2]}" if option[2] else name


class ScenarioWarning(UserWarning):
    """A part of a scenario that is valid but probably not intended. The scenario runs anyway."""
