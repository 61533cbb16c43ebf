"""What lasthop raises."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    import re


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


class AsWritten:
    """Renames what errors concern to the arguments of a function, in a ``with`` block.

    Studies write scenarios of their own and have messages for the command line. ``keys`` has the ends of keys of such
    scenarios, each with the argument that sets them.
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
    """Something that a scenario says and that probably is not meant. It is run all the same."""
