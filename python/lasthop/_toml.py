"""Converts Python values to TOML."""

from __future__ import annotations

from ._errors import ScenarioError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

_WORD = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_")
_NOT_WORDS = frozenset(("true", "false", "inf", "nan"))


def value(key: str, given: object) -> str:
    """``given`` as TOML. Raises a :class:`ScenarioError` for a value that TOML cannot represent."""
    # Converts numbers and booleans of numpy to those of Python.
    item = getattr(given, "item", None)
    if callable(item) and not getattr(given, "shape", None):
        given = item()
    if isinstance(given, bool):
        return "true" if given else "false"
    if isinstance(given, int):
        return str(given)
    if isinstance(given, float):
        if given != given or given in (float("inf"), float("-inf")):
            raise ScenarioError(
                f"`{key}` is set to {given}",
                code="bad-value",
                key=key,
                help="a number must be finite; quantities have units: `20ms`, `2mbit`, `64KiB`",
            )
        return repr(given)
    if isinstance(given, str):
        return quoted(given)
    if isinstance(given, (list, tuple)):
        return "[" + ", ".join(value(key, each) for each in given) + "]"
    if hasattr(given, "items"):
        pairs = (f"{name(k)} = {value(f'{key}.{k}', v)}" for k, v in given.items())
        return "{" + ", ".join(pairs) + "}"
    raise ScenarioError(
        f"`{key}` is set to {brief(given)}",
        code="bad-value",
        key=key,
        help="a value is a text such as `20ms`, a number, True or False, a list, or a dict of these",
    )


def word(key: str, given: object) -> str:
    """``given`` as an argument of the command: a text that has no other meaning is not quoted."""
    text = str(given) if isinstance(given, str) else ""
    plain = text.strip("%").replace(".", "")
    if plain and _WORD.issuperset(plain) and (plain[0].isalpha() or text[-1].isalpha() or text[-1] == "%"):
        if text.lower() not in _NOT_WORDS and text[:2] not in ("0x", "0o", "0b"):
            return text
    return value(key, given)


def quoted(text: str) -> str:
    """A text in quotes."""
    escaped = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\t": "\\t", "\r": "\\r"}
    plain = "".join(
        escaped.get(c, c if c.isprintable() else f"\\U{ord(c):08x}") for c in text
    )
    return f'"{plain}"'


def name(key: object) -> str:
    """A key, quoted if necessary."""
    if not isinstance(key, str):
        raise ScenarioError(f"{brief(key)} is no key", code="unknown-key", help="a key is a str, such as `errors`")
    return key if key and _WORD.issuperset(key) else quoted(key)


def document(given: Mapping[str, object]) -> str:
    """A whole scenario. Tables and lists of tables have headers, so that errors quote short lines."""
    lines: list[str] = []
    _table(given, "", lines)
    return "\n".join(lines) + "\n"


def _table(given: Mapping[str, object], path: str, lines: list[str]) -> None:
    later: list[tuple[str, str, Any]] = []
    for key, each in given.items():
        full = f"{path}.{name(key)}" if path else name(key)
        if hasattr(each, "items") and path in ("", "host"):
            later.append(("[{}]", full, each))
        elif isinstance(each, (list, tuple)) and each and all(hasattr(i, "items") for i in each) and key == "path":
            later.extend(("[[{}]]", full, i) for i in each)
        else:
            lines.append(f"{name(key)} = {value(full, each)}")
    for form, full, inner in later:
        lines.append(form.format(full))
        _table(inner, full, lines)


def brief(given: object) -> str:
    text = repr(given)
    return f"{type(given).__name__} {text if len(text) <= 60 else text[:57] + '...'}"
