"""Registers the environments with Gymnasium."""

from __future__ import annotations


def register() -> None:
    """Registers the environments once. Gymnasium 1 loads no plugins, so the import of this package calls this."""
    import gymnasium

    for name, action in (("Window", "window"), ("Rate", "rate")):
        if f"lasthop/{name}-v0" not in gymnasium.registry:
            gymnasium.register(f"lasthop/{name}-v0", "lasthop.gym:make", kwargs={"action": action})
