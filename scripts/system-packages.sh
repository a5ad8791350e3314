#!/usr/bin/env bash
# Installs the system packages that a build needs and this machine lacks; does nothing, fast, when all are there.
#
#   scripts/system-packages.sh [system|bundled] [PROGRAM|LIBRARY...]
#
#   which RocksDB the build will use, default system; what is needed besides: programs, each in a package of its name,
#   and packages of libraries, whose names begin with "lib"
#
#   PYTHON   the Python that will run the queue; default python3
set -euo pipefail

mode=${1:-system}
python=${PYTHON:-python3}
missing=()
libraries=()

fail() { echo "telha-queue: $*" >&2; exit 1; }
need() { command -v "$1" >/dev/null || missing+=("$2"); }
need_package() {
    [ "$(dpkg-query --show --showformat='${db:Status-Status}' "$1" 2>/dev/null)" = installed ] || missing+=("$1")
}

need make make
need c++ g++
for name in "${@:2}"; do
    case "$name" in
        lib*) libraries+=("$name") ;;
        *) need "$name" "$name" ;;
    esac
done
# Python is asked what it can do: one that was not installed by apt brings its own venv and headers.
if command -v "$python" >/dev/null; then
    "$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' ||
        fail "$("$python" --version) is too old; Python 3.11 or newer is needed (make PYTHON=/path/to/python3 ...)"
    "$python" -c 'import ensurepip, venv' 2>/dev/null || missing+=(python3-venv)
    "$python" -c 'import os, sysconfig as s, sys; sys.exit(not os.path.exists(s.get_path("include") + "/Python.h"))' ||
        missing+=(python3-dev)
else
    missing+=(python3 python3-venv python3-dev)
fi

if command -v dpkg-query >/dev/null; then
    case "$mode" in
        system) need_package librocksdb-dev; need ldb rocksdb-tools ;; # the tests read the store with ldb
        bundled) need cmake cmake; need_package liblz4-dev; need_package libzstd-dev ;;
        *) fail "TELHA_ROCKSDB is '$mode'; it must be system or bundled" ;;
    esac
    for name in "${libraries[@]}"; do need_package "$name"; done
elif [ ${#missing[@]} -eq 0 ]; then
    exit 0 # no way to ask for libraries here; the compiler will name a missing one
fi
[ ${#missing[@]} -gt 0 ] || exit 0

command -v apt-get >/dev/null ||
    fail "please install what Debian calls: ${missing[*]} (and RocksDB's development files)"
as_root=()
if [ "$(id -u)" -ne 0 ]; then
    command -v sudo >/dev/null || fail "please run as root: apt-get install ${missing[*]}"
    as_root=(sudo)
fi
echo "telha-queue: installing ${missing[*]}" >&2
install=("${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -qq -o DPkg::Lock::Timeout=300)
{
    # The lists may be absent (a fresh container) or too old to find the packages: then fetch them and try again.
    "${install[@]}" install --yes --no-install-recommends "${missing[@]}" 2>/dev/null ||
        { "${install[@]}" update && "${install[@]}" install --yes --no-install-recommends "${missing[@]}"; }
} >/dev/null || fail "apt could not install: ${missing[*]}"
command -v "$python" >/dev/null || fail "$python is still missing after the installation"
"$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' ||
    fail "$("$python" --version) is too old; Python 3.11 or newer is needed (make PYTHON=/path/to/python3 ...)"
