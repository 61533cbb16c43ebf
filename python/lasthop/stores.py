"""Stores of batches other than directories."""

from __future__ import annotations

from ._errors import ScenarioError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any, Protocol

    class Store(Protocol):
        """Stores whole objects by name. It must be picklable if workers of other processes use it."""

        def title(self) -> str:
            """The name of the store in messages."""

        def has(self, name: str, /) -> bool:
            """Whether an object of this name exists."""

        def list(self) -> list[str]:
            """The names of all objects, in any order."""

        def get(self, name: str, /) -> bytes | None:
            """The object of this name; None if it does not exist."""

        def put_if_absent(self, name: str, data: bytes, /) -> bool:
            """Stores an object atomically. Returns False if an object of this name exists, and keeps that one."""


class Bucket:
    """A store at an address that fsspec supports, such as ``s3://bucket/results``.

    It never overwrites an object: each write has the condition that none exists (``If-None-Match`` of S3).
    """

    def __init__(self, url: str, options: Mapping[str, Any] | None = None) -> None:
        self.url = url.rstrip("/")
        self.options = dict(options or {})
        self._open()

    def _open(self) -> None:
        try:
            from fsspec.core import url_to_fs

            # Other processes write there too, so listings must not be cached.
            self._fs, self._root = url_to_fs(self.url, use_listings_cache=False, **self.options)
        except ImportError as error:
            raise ScenarioError(f"{self.url}: {error}", help="pip install lasthop[s3]") from error
        except ValueError as error:
            raise ScenarioError(f"{self.url}: {error}", help="for example s3://bucket/results") from error

    def _at(self, name: str) -> str:
        return f"{self._root}/{name}"

    def title(self) -> str:
        """The address."""
        return self.url

    def has(self, name: str) -> bool:
        """Whether an object of this name exists."""
        return bool(self._fs.exists(self._at(name)))

    def list(self) -> list[str]:
        """The names of all objects."""
        try:
            paths = self._fs.ls(self._root, detail=False)
        except FileNotFoundError:
            return []
        return [path.rsplit("/", 1)[-1] for path in paths]

    def get(self, name: str) -> bytes | None:
        """The object of this name; None if it does not exist."""
        try:
            data: bytes = self._fs.cat_file(self._at(name))
        except FileNotFoundError:
            return None
        return data

    def put_if_absent(self, name: str, data: bytes) -> bool:
        """Stores an object, unless one of this name exists; then returns False."""
        try:
            self._fs.pipe_file(self._at(name), data, mode="create")
        except FileExistsError:
            return False
        return True

    def __reduce__(self) -> tuple[object, ...]:
        return Bucket, (self.url, self.options)

    def __repr__(self) -> str:
        return f"<Bucket {self.url}>"
