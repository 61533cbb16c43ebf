"""HTML for notebooks."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from matplotlib.axes import Axes


def escape(text: object) -> str:
    """Escapes a text for HTML."""
    return str(text).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """A table as HTML."""
    th = "".join(f"<th>{escape(h)}</th>" for h in head)
    body = "".join("<tr>" + "".join(f"<td>{escape(c)}</td>" for c in row) + "</tr>" for row in rows)
    return f"<table><thead><tr>{th}</tr></thead><tbody>{body}</tbody></table>"


def figure(draw: Callable[[], Axes]) -> str:
    """The figure of ``draw`` as an HTML image; an empty text without matplotlib."""
    import base64
    import io

    try:
        from matplotlib import pyplot
    except ImportError:
        return ""
    shown = draw().get_figure(root=True)
    if shown is None:
        return ""
    data = io.BytesIO()
    shown.savefig(data, format="png", dpi=110)
    pyplot.close(shown)
    return f'<br><img src="data:image/png;base64,{base64.b64encode(data.getvalue()).decode()}">'
