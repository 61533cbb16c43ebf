"""Where batches are kept other than in a directory."""

from __future__ import annotations

from ._errors import ScenarioError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any, Protocol

    class Store(Protocol):
        """Whole objects under names. One that workers of other processes use is pickled."""

        def title(self) -> str:
            """What messages call it."""

        def has(self, name: str, /) -> bool:
            """Whether there is an object of this name."""

        def list(self) -> list[str]:
            """The names of all objects, in any order."""

        def get(self, name: str, /) -> bytes | None:
            """An object; None if there is none."""

        def put_if_absent(self, name: str, data: bytes, /) -> bool:
            """Puts an object there, whole or not at all. False if there is one of this name, which stays as it is."""


class Bucket:
    """A store at an address that fsspec knows, such as ``s3://bucket/results``.

    What is there is never written over: an object is put with the condition that there is none (``If-None-Match``
    of S3).
    """

    def __init__(self, url: str, options: Mapping[str, Any] | None = None) -> None:
        self.url = url.rstrip("/")
        self.options = dict(options or {})
        self._open()

    def _open(self) -> None:
        try:
            from fsspec.core import url_to_fs

            # Others write there too: listings are not remembered.
            self._fs, self._root = url_to_fs(self.url, use_listings_cache=False, **self.options)
        except ImportError as error:
            raise ScenarioError(f"{self.url}: {error}", help="pip install lasthop[s3]") from error
        except ValueError as error:
            raise ScenarioError(f"{self.url}: {error}", help="for example s3://bucket/results") from error

    def _at(self, name: str) -> str:
        return f"{self._root}/{name}"

    def title(self) -> str:
        """Its address."""
        return self.url

    def has(self, name: str) -> bool:
        """Whether there is an object of this name."""
        return bool(self._fs.exists(self._at(name)))

    def list(self) -> list[str]:
        """The names of all objects."""
        try:
            paths = self._fs.ls(self._root, detail=False)
        except FileNotFoundError:
            return []
        return [path.rsplit("/", 1)[-1] for path in paths]

    def get(self, name: str) -> bytes | None:
        """An object; None if there is none."""
        try:
            data: bytes = self._fs.cat_file(self._at(name))
        except FileNotFoundError:
            return None
        return data

    def put_if_absent(self, name: str, data: bytes) -> bool:
        """Puts an object there, unless there is one of this name."""
        try:
            self._fs.pipe_file(self._at(name), data, mode="create")
        except FileExistsError:
            return False
        return True

    def __reduce__(self) -> tuple[object, ...]:
        return Bucket, (self.url, self.options)

    def __repr__(self) -> str:
        return f"<Bucket {self.url}>"
