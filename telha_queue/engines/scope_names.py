"""The names of scopes as they are stored: one that is asked for, and the check of all.

A name is right when its scope is made of it. In Python for want of SHA-1.
"""

from __future__ import annotations

from telha_queue.errors import InvalidScope, JobError
from telha_queue.scope import SCOPE_BYTES, Scope, scope_as_stored
from telha_queue.upkeep import Finding, FindingKind, FsckReport

TYPE_CHECKING = False
if TYPE_CHECKING:
    from telha_queue.engines.rocks import RocksEngine

PREFIX = b"scope:"
_PAGE_ROWS = 1000
_MAX_KNOWN = 1024
"""Scopes in memory, some 500 bytes each. When there are more, all are forgotten: what is asked for again is read."""
_MAX_LISTED = 1000


class KnownScopes:
    """The scopes of records, with their names, as a store tells them. Safe to use from many threads."""

    def __init__(self) -> None:
        self._known: dict[bytes, Scope] = {}

    def of(self, key: bytes, store: RocksEngine) -> Scope:
        """The scope of a key; without a name when there is none, or none to be had any more."""
        known = self._known.get(key)
        if known is None:
            try:
                told = scope_as_stored(key, _stored_name(key, store))
            except JobError:  # of a store that is closed, for one; a job's scope is its key, name or not
                return Scope(key)
            self._make_room()
            known = self._known.setdefault(key, told)  # somebody may have named it meanwhile
        return known

    def learn(self, key: bytes, name: str) -> None:
        """Take in a name that was stored just now."""
        self._make_room()
        self._known[key] = scope_as_stored(key, name)

    def _make_room(self) -> None:
        if len(self._known) >= _MAX_KNOWN:
            self._known.clear()


def with_names(store: RocksEngine, repair: bool, report: FsckReport) -> FsckReport:
    """The report, and what is wrong with names added to it; a wrong one is removed if it is to be repaired."""
    wrong = 0
    listed: list[Finding] = []
    after = PREFIX
    while rows := store.list_names(after, _PAGE_ROWS):
        for key, name in rows:
            if is_name_of(key, name):
                continue
            wrong += 1
            if repair:
                store.drop_name(key, name)
            if len(listed) < _MAX_LISTED:
                scope = key.removeprefix(PREFIX)
                listed.append(Finding(FindingKind.NAME_WRONG, scope if len(scope) == SCOPE_BYTES else None, None, key))
        after = rows[-1][0]
    if not wrong:
        return report
    return report._replace(
        found=report.found | {FindingKind.NAME_WRONG: wrong},
        repaired=report.repaired | ({FindingKind.NAME_WRONG: wrong} if repair else {}),
        findings=(*report.findings, *listed),
    )


def _stored_name(scope: bytes, store: RocksEngine) -> str | None:
    before = (int.from_bytes(scope) - 1).to_bytes(SCOPE_BYTES) if any(scope) else b""
    for key, name in store.list_names(PREFIX + before, 1):
        if key == PREFIX + scope:
            return name.decode(errors="replace")  # which makes it a wrong one
    return None


def is_name_of(key: bytes, name: bytes) -> bool:
    """Whether a row holds the name of the scope that it stands under."""
    try:
        return Scope.named(name.decode()).key == key.removeprefix(PREFIX)
    except (UnicodeDecodeError, InvalidScope):
        return False
