"""Imports point inward only: the rules that import-linter cannot see, because extension modules are invisible to it."""

import ast
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "telha_queue"
OUTER = ("cli", "worker", "server", "client")  # each a module or a package


def modules() -> dict[str, Path]:
    """Map each dotted name in the package to its file."""
    return {
        ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"): path
        for path in PACKAGE.rglob("*.py")
    }


def imports(path: Path, name: str = "") -> set[str]:
    """Return every dotted name that a file imports, anywhere in it, with relative imports made absolute."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text(), str(path))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            parts = name.split(".")
            keep = len(parts) - node.level + (path.name == "__init__.py")
            base = [*parts[:keep], node.module or ""] if node.level else [node.module or ""]
            base_name = ".".join(filter(None, base))
            found |= {base_name} | {f"{base_name}.{alias.name}" for alias in node.names}
    return found


def within(name: str, *prefixes: str) -> bool:
    return any(name == prefix or name.startswith(f"{prefix}.") for prefix in prefixes)


def test_only_the_rocks_engine_imports_the_compiled_store():
    users = {
        name
        for name, path in modules().items()
        if any(within(used, "telha_queue._rocks") for used in imports(path, name))
    }
    assert users == {"telha_queue.engines.rocks"}


def test_outer_rings_know_no_engine():
    files = [
        (name, path) for name, path in modules().items() if within(name, *(f"telha_queue.{ring}" for ring in OUTER))
    ]
    files += [("", path) for path in (ROOT / "demo").glob("*.py")]
    wrong = {
        f"{path.relative_to(ROOT)}: {used}"
        for name, path in files
        for used in imports(path, name)
        if within(used, "telha_queue.engine", "telha_queue.engines", "telha_queue._rocks")
    }
    assert wrong == set()


def test_the_codec_needs_neither_rocksdb_nor_the_queue():
    outward = ("rocksdb", "store", "scan", "batch", "telha_queue.queue", "telha_queue.engine", "telha_queue.engines")
    pending, seen = ["_codec.pyx"], set()
    while pending:
        path = ROOT / "ext" / pending.pop()
        if path in seen or not path.exists():
            continue
        seen.add(path)
        for line in path.read_text().splitlines():
            words = line.replace(",", " ").split()
            if words[:1] in (["from"], ["cimport"], ["import"]):
                assert not any(within(word, *outward) for word in words[1:]), f"{path.name}: {line.strip()}"
                pending += [f"{word}.pxd" for word in words[1:]]
    assert seen


def test_no_test_sleeps():
    sleepers = {
        f"{path.relative_to(ROOT)}:{node.lineno}"
        for path in (ROOT / "tests").rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if (isinstance(node, ast.Attribute) and node.attr == "sleep")
        or (isinstance(node, ast.ImportFrom) and any(alias.name == "sleep" for alias in node.names))
    }
    assert sleepers == set()
