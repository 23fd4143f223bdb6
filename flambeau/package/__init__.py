"""Archives of code and data, under the names of `torch.package`: not built yet."""

from __future__ import annotations

from typing import Any

from .._core.names.absent import Table

__getattr__, __dir__ = (
    Table(__name__)
    .absent(
        "archives of code are not built yet",
        classes="Directory GlobGroup Importer OrderedImporter PackageExporter PackageImporter",
    )
    .parts()
)


class PackagingError(Exception):
    """What could not be packaged."""


class EmptyMatchError(Exception):
    """A pattern that had to match a module matched none."""


class ObjNotFoundError(Exception):
    """An importer did not find an object."""


class ObjMismatchError(Exception):
    """An importer found another object under the name."""


def is_from_package(obj: Any) -> bool:
    """Whether an object came out of an archive; none can have."""
    return False
