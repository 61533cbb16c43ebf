"""The names of environments, for Gymnasium's registry."""

from __future__ import annotations


def register() -> None:
    """Registers the environments once. Gymnasium 1 loads no plugins, so an import of this package has to."""
    import gymnasium

    for name, action in (("Window", "window"), ("Rate", "rate")):
        if f"lasthop/{name}-v0" not in gymnasium.registry:
            gymnasium.register(f"lasthop/{name}-v0", "lasthop.gym:make", kwargs={"action": action})
