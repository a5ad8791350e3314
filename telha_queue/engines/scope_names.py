"""The check of the names of scopes: whether each is the one that its scope is made of. In Python for want of SHA-1."""

from __future__ import annotations

from telha_queue.errors import InvalidScope
from telha_queue.scope import SCOPE_BYTES, Scope
from telha_queue.upkeep import Finding, FindingKind, FsckReport

TYPE_CHECKING = False
if TYPE_CHECKING:
    from telha_queue.engines.rocks import RocksEngine

PREFIX = b"scope:"
_PAGE_ROWS = 1000
_MAX_LISTED = 1000


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


def is_name_of(key: bytes, name: bytes) -> bool:
    """Whether a row holds the name of the scope that it stands under."""
    try:
        return Scope.named(name.decode()).key == key.removeprefix(PREFIX)
    except (UnicodeDecodeError, InvalidScope):
        return False
