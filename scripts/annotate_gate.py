"""Fails when code that runs without the GIL touches Python, as seen in the C++ that Cython generates for ext/.

Two regions are searched: the body of every function declared nogil, and every `with nogil:` block. In both, any name
of the C-API is a violation, save the few that are plain C. Also fails on every performance hint that Cython prints, and
on a region of the sources that is in no generated C++: nothing uses it, so nothing was checked.

    python scripts/annotate_gate.py [folder of the sources, default ext]
"""

from __future__ import annotations

import importlib.util
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
C_API = re.compile(r"\b(_?Py[A-Z_]\w*|__Pyx_\w+|__PYX_ERR)\b")
# Types, arithmetic helpers without checks, and reference-counting scaffolding that expands to nothing.
HARMLESS = re.compile(
    r"Py_(ssize_t|hash_t|UNUSED|uintptr_t|intptr_t)|__Pyx_(div|mod|pow)_\w+|__Pyx_RefNanny\w*"
    r"|__Pyx_pretend_to_initialize|__Pyx_FastGIL_(Remember|Forget)|__Pyx_FakeReference\w*"
)
PLACE = re.compile(r'/\* "([^"]+)":(\d+)$')
COMMENT_OR_STRING = re.compile(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"', re.DOTALL)
CYTHON_COMMENT_OR_STRING = re.compile(
    r"""#[^\n]*|\'\'\'.*?\'\'\'|\"\"\".*?\"\"\"|'(?:\\.|[^'\\\n])*'|"(?:\\.|[^"\\\n])*\"""", re.DOTALL
)
# A function is __pyx_f_<mangled module and class>_<name>, a method of a C++ class __pyx_t_<mangled class>::<name>.
DEFINITION = re.compile(r"^(?:\w[^;(]*[\s*&>])?(?:__pyx_f_(?:__pyx_fuse_\d+)*(\w+)|__pyx_t_(\w+::\w+))\(.*\) *\{$")
DECLARED_NOGIL = re.compile(r"^[^=(]*?\b(\w+)\s*\(.*\)[^()]*\bnogil\b[^()]*:$")


class Violation(NamedTuple):
    place: str
    problem: str

    def __str__(self) -> str:
        return f"{self.place}: {self.problem}"


def directives() -> dict[str, object]:
    """The directives of the real build, so that what is checked is what ships."""
    spec = importlib.util.spec_from_file_location("telha_setup", ROOT / "setup.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return dict(module.DIRECTIVES)


def blanked(pattern: re.Pattern[str], source: str) -> str:
    """Remove comments and strings, but keep every line where it is."""
    return pattern.sub(lambda found: "\n" * found[0].count("\n"), source)


def logical_lines(source: str) -> Iterator[tuple[int, str]]:
    """Yield each statement on one line, with the number of the line that it starts on."""
    pending, start, depth = "", 0, 0
    for number, line in enumerate(blanked(CYTHON_COMMENT_OR_STRING, source).splitlines(), 1):
        start = start if pending else number
        pending = f"{pending} {line.strip()}" if pending else line.rstrip()
        depth += sum(map(line.count, "([{")) - sum(map(line.count, ")]}"))
        if depth <= 0:
            yield start, pending
            pending, depth = "", 0


def declared_nogil(path: Path, package: str) -> dict[str, str]:
    """Map the end of each generated name, as Cython mangles it, to the place of its declaration.

    A `with nogil:` block has no name in C++; it is found by its place, which is its key here.
    """
    module = f"{package}.{path.stem}" if path.suffix == ".pyx" else path.stem
    mangled = "".join(f"{len(part)}{part}_" for part in module.split("."))
    found, owner = {}, ""
    for number, line in logical_lines(path.read_text()):
        place = f"{path.name}:{number}"
        if line[:1].strip():
            python_class = re.match(r"cdef class (\w+)", line)
            cpp_class = re.match(r"cdef cppclass (\w+)", line)
            owner = f"{len(python_class[1])}{python_class[1]}_" if python_class else ""
            owner = f"{cpp_class[1]}::" if cpp_class else owner
        if function := DECLARED_NOGIL.match(line):
            found[f"{mangled}{owner if line[0].isspace() else ''}{function[1]}"] = f"{place} {function[1]}"
        elif re.match(r"\s*with nogil\b", line):
            found[place] = place
    return found


def regions(cpp: str) -> Iterator[tuple[str, int, int]]:
    """Yield (key as in declared_nogil, first line, end line) of each generated function and each nogil block."""
    function, function_start, block, block_start, place = "", 0, "", 0, ""
    for number, line in enumerate(cpp.splitlines()):
        if found := PLACE.search(line):
            place = f"{Path(found[1]).name}:{found[2]}"
        elif found := DEFINITION.match(line):
            function, function_start = found[1] or found[2], number
        elif line == "}" and function:
            yield function, function_start, number
            function = ""
        elif "__Pyx_FastGIL_Remember();" in line:
            block, block_start = place, number
        elif "__Pyx_FastGIL_Forget();" in line and block:
            yield block, block_start, number
            block = ""


def violations_in(cpp: str, nogil: dict[str, str], seen: set[str]) -> Iterator[Violation]:
    blank = blanked(COMMENT_OR_STRING, cpp).splitlines()
    for key, start, end in regions(cpp):
        if key not in nogil:
            continue
        seen.add(key)
        used = {word for line in blank[start:end] for word in C_API.findall(line) if not HARMLESS.fullmatch(word)}
        if used:
            where = "the `with nogil:` block" if key == nogil[key] else "the nogil function"
            yield Violation(nogil[key], f"{where} uses {', '.join(sorted(used))}")


def check(folder: Path, package: str = "telha_queue") -> list[Violation]:
    """Run Cython over every module in the folder and return what is wrong, in reading order."""
    modules = sorted(folder.glob("*.pyx"))
    if not modules:
        return [Violation(str(folder), "there is no .pyx file to check")]
    nogil: dict[str, str] = {}
    for path in sorted([*folder.glob("*.pxd"), *modules]):
        nogil |= declared_nogil(path, package)
    options = [word for name, value in directives().items() for word in ("-X", f"{name}={value}")]
    found: list[Violation] = []
    seen: set[str] = set()
    with tempfile.TemporaryDirectory() as scratch:
        for path in modules:
            output = Path(scratch, f"{path.stem}.cpp")
            command = [sys.executable, "-m", "cython", "--cplus", "-I", str(folder), "-I", str(folder.parent), *options]
            command += ["--module-name", f"{package}.{path.stem}", "-o", str(output), str(path)]
            run = subprocess.run(command, capture_output=True, text=True, check=False)
            if run.returncode:
                return [Violation(path.name, f"Cython failed:\n{run.stderr}")]
            hints = re.findall(r"^performance hint: (?:.*/)?(\w+\.p[yx][xd]:\d+:\d+): (.*)$", run.stderr, re.MULTILINE)
            found += [Violation(place, f"performance hint: {text}") for place, text in hints]
            found += violations_in(output.read_text(), nogil, seen)
    found += [Violation(nogil[key], "is in no generated C++") for key in nogil if key not in seen]
    return list(dict.fromkeys(found))  # an inline function is generated into every extension that uses it


def main() -> int:
    found = check(Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "ext")
    for violation in found:
        print(violation)
    print(f"annotate gate: {len(found)} violation(s)" if found else "annotate gate: clean")
    return bool(found)


if __name__ == "__main__":
    sys.exit(main())
