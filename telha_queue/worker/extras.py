"""Packages that only some programs need: imported when they are used, and named when they are missing."""

from __future__ import annotations

from importlib import import_module
from types import ModuleType


class MissingExtra(ImportError):
    """A package is not installed; the text says which extra brings it."""


def wanted(module: str, extra: str) -> ModuleType:
    """Import a module, or say what to install."""
    try:
        return import_module(module)
    except ImportError as error:
        package = module.partition(".")[0]
        raise MissingExtra(f"this needs the package {package}: pip install 'telha-queue[{extra}]'") from error
