"""Compiles the three extension modules. Everything that is only metadata or tool settings is in pyproject.toml.

TELHA_ROCKSDB=system|bundled      which RocksDB to link; bundled is what scripts/build-rocksdb.sh built
TELHA_SANITIZE=address,undefined  instrument the extensions
TELHA_WERROR=1                    C++ and Cython warnings are errors
TELHA_BUILD=build                 where to compile; a directory of its own leaves what is compiled elsewhere in force
TELHA_ANNOTATE=1                  write Cython's annotated listings to build/annotate/
"""

import os
import shlex
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext

MODE = os.environ.get("TELHA_ROCKSDB") or "system"
SANITIZE = os.environ.get("TELHA_SANITIZE", "")
WERROR = os.environ.get("TELHA_WERROR") == "1"
ANNOTATE = os.environ.get("TELHA_ANNOTATE") == "1"
BUILD = os.environ.get("TELHA_BUILD") or "build"
GENERATED = "build/annotate" if ANNOTATE else "build/werror" if WERROR else f"{BUILD}/cython"
ROCKSDB_SCRIPT = "scripts/build-rocksdb.sh"

DIRECTIVES = {
    "language_level": 3,
    "auto_pickle": False,  # these two add methods that no stub declares and nobody should call
    "autotestdict": False,
    "embedsignature": False,  # signatures live in the .pyi files
    "boundscheck": False,  # lengths are checked once, at the boundary; the checks would need the GIL
    "wraparound": False,
    "cdivision": True,  # likewise: no divisor is zero or negative, and the check would need the GIL
}
# Python's own headers count as system headers, so that only our code is held to the warnings.
FLAGS = ["-std=c++20", "-O2", "-g0", "-Wall", "-Wextra", "-Wconversion", "-fvisibility=hidden"]
FLAGS += ["-isystem", sysconfig.get_path("include")]
FLAGS += ["-Werror"] * WERROR
LINK_FLAGS = ["-pthread"]
if SANITIZE:
    LINK_FLAGS.append(f"-fsanitize={SANITIZE}")
    FLAGS += [LINK_FLAGS[-1], "-fno-omit-frame-pointer", "-g"]
CXX = shlex.split(os.environ.get("CXX") or sysconfig.get_config_var("CXX") or "c++")


def accepts(program: str, *flags: str) -> bool:
    command = [*CXX, *FLAGS, *flags, "-fsyntax-only", "-x", "c++", "-"]
    return subprocess.run(command, input=program, text=True, capture_output=True, check=False).returncode == 0


def find_library(name: str) -> Path | None:
    """Ask the compiler where a library is; it echoes the bare name when it finds none."""
    command = [*CXX, f"-print-file-name={name}"]
    path = Path(subprocess.run(command, text=True, capture_output=True, check=True).stdout.strip())
    return path if path.is_absolute() else None


def rocksdb_options() -> dict[str, list]:
    """Find the RocksDB to link and return what it adds to the extension, or end with one line saying what to do."""
    if MODE == "bundled":
        found = subprocess.run([ROCKSDB_SCRIPT, "--where"], text=True, capture_output=True, check=False).stdout.strip()
        if not found:
            sys.exit('telha-queue: the bundled RocksDB is not built yet; run "make rocksdb" first')
        return {
            "extra_compile_args": ["-isystem", f"{found}/include"],
            "extra_objects": [f"{found}/lib/librocksdb.a"],
            "extra_link_args": ["-Wl,--exclude-libs,ALL"],  # ours must not meet another RocksDB in the same process
            "libraries": ["lz4", "zstd"],  # shared: Debian's libzstd.a cannot be linked into a shared object
            "define_macros": [("TELHA_ROCKSDB_MODE", '"bundled"'), ("TELHA_ROCKSDB_ASSERTS", "0")],
        }
    if MODE != "system":
        sys.exit(f"telha-queue: TELHA_ROCKSDB is {MODE!r}; it must be system or bundled")
    library = find_library("librocksdb.so")
    if library is None or not accepts("#include <rocksdb/version.h>\n"):
        sys.exit(
            "telha-queue: RocksDB headers not found; install librocksdb-dev (Debian/Ubuntu), "
            'or build the bundled one with "make rocksdb" and set TELHA_ROCKSDB=bundled'
        )
    # A library built with assertions ends the process where another returns a status: users are told which they have.
    asserts = str(int(b"__assert_fail" in library.read_bytes()))
    macros = [("TELHA_ROCKSDB_MODE", '"system"'), ("TELHA_ROCKSDB_ASSERTS", asserts)]
    return {"libraries": ["rocksdb"], "define_macros": macros}


class BuildExt(build_ext):
    """Checks the machine and runs Cython only when something is compiled, so that metadata and sdist need neither."""

    def run(self) -> None:
        if not CXX or not shutil.which(CXX[0]):
            sys.exit("telha-queue: no C++ compiler found; install g++ (Debian/Ubuntu)")
        if not accepts("#include <span>\nstd::span<int> s;\n"):
            sys.exit(f"telha-queue: {CXX[0]} does not compile C++20; install g++ 11 or newer")
        if not accepts("#include <Python.h>\n"):
            sys.exit("telha-queue: Python.h not found; install python3-dev (Debian/Ubuntu)")
        rocks = rocksdb_options()
        from Cython.Build import cythonize
        from Cython.Compiler import Options

        Options.warning_errors = WERROR
        generated = cythonize(
            [Extension(ext.name, ext.sources, language="c++") for ext in self.extensions], include_path=["ext", "."],
            build_dir=GENERATED, compiler_directives=DIRECTIVES, annotate=ANNOTATE, force=ANNOTATE or WERROR,
            quiet=True,
        )  # fmt: skip
        # Cython copies headers beside its output, where they would be a second copy that "#pragma once" cannot see.
        for header in Path(GENERATED).rglob("*.hpp"):
            header.unlink()
        # Written only when it changes: the extensions depend on it, so another mode or flag recompiles them.
        configuration = Path(GENERATED, "configuration.txt")
        text = f"{CXX} {FLAGS} {LINK_FLAGS} {rocks}\n"
        if not configuration.exists() or configuration.read_text() != text:
            configuration.parent.mkdir(parents=True, exist_ok=True)
            configuration.write_text(text)
        for ext, cpp in zip(self.extensions, generated, strict=True):
            ext.sources = cpp.sources
            ext.depends = [*ext.depends, str(configuration)]
            ext.extra_compile_args, ext.extra_link_args = list(FLAGS), list(LINK_FLAGS)
            for attribute, added in rocks.items() if ext.name.endswith("._rocks") else ():
                setattr(ext, attribute, [*getattr(ext, attribute), *added])
        super().run()


def extension(name: str) -> Extension:
    depends = sorted(str(path) for path in Path("ext").glob("*") if path.suffix in (".pxd", ".hpp", ".pyx", ".pxi"))
    depends += map(str, sorted(Path("telha_queue").glob("*.pxd")))
    depends.append(ROCKSDB_SCRIPT)
    return Extension(f"telha_queue.{name}", [f"ext/{name}.pyx"], language="c++", include_dirs=["ext"], depends=depends)


if __name__ == "__main__":
    setup(
        ext_modules=[extension("_codec"), extension("_seam"), extension("_keeper"), extension("_rocks")],
        cmdclass={"build_ext": BuildExt},
        options={"build": {"build_base": BUILD}},
    )
