#!/usr/bin/env bash
# Builds the pinned RocksDB once, as a static library that can be linked into an extension module, in a cache outside
# the checkout. Prints the directory (include/, lib/) as its last line; a second call does only that.
#
#   scripts/build-rocksdb.sh            build if needed, then print the directory
#   scripts/build-rocksdb.sh --where    print the directory; exit 1 when nothing is built there
#
#   TELHA_ROCKSDB_SOURCE   path or URL of the source archive; without it, Debian's source package through apt
#   TELHA_CACHE_DIR        default ${XDG_CACHE_HOME:-~/.cache}/telha-queue
#   TELHA_JOBS             parallel compilations; default all processors
set -euo pipefail

version=9.11.2
sha256=4005068f5099c54c39968f3466da216e0a7b97fc78e1c51c722e643763058a5c
archive=rocksdb_$version.orig.tar.gz

# Old enough for any server of the last decade, new enough for the hardware CRC that every log record needs.
case "$(uname -m)" in
    x86_64) baseline=x86-64-v2 ;;
    *) baseline=1 ;; # the compiler's own portable baseline
esac

# Hidden symbols: another RocksDB in the same process (a second extension, a plug-in) must never be mixed with ours.
# NDEBUG: an assertion would end the user's process where an error status can be reported.
# NPERF_CONTEXT, NIOSTATS_CONTEXT: counters of each thread that nobody reads. They cost a write 1,500 instructions in a
# shared object, where a thread's own variables are found by a call.
# cstdint: a few files of this release rely on other headers to bring it in.
undefined="-DNPERF_CONTEXT -DNIOSTATS_CONTEXT"
options=(
    -DCMAKE_BUILD_TYPE=Release
    -DCMAKE_CXX_FLAGS_RELEASE="-O2 -DNDEBUG"
    -DCMAKE_CXX_FLAGS="-fvisibility=hidden -fvisibility-inlines-hidden -include cstdint $undefined"
    -DCMAKE_POSITION_INDEPENDENT_CODE=ON
    -DCMAKE_INSTALL_LIBDIR=lib
    -DPORTABLE="$baseline"
    -DUSE_RTTI=1
    -DFAIL_ON_WARNINGS=OFF
    -DROCKSDB_BUILD_SHARED=OFF
    -DWITH_LZ4=ON -DWITH_ZSTD=ON
    -DWITH_SNAPPY=OFF -DWITH_ZLIB=OFF -DWITH_BZ2=OFF
    -DWITH_GFLAGS=OFF -DWITH_JEMALLOC=OFF -DWITH_LIBURING=OFF -DWITH_NUMA=OFF -DWITH_TBB=OFF
    -DWITH_TESTS=OFF -DWITH_BENCHMARK_TOOLS=OFF -DWITH_CORE_TOOLS=OFF -DWITH_TOOLS=OFF -DWITH_TRACE_TOOLS=OFF
)

fail() { echo "telha-queue: $*" >&2; exit 1; }

cache=${TELHA_CACHE_DIR:-${XDG_CACHE_HOME:-$HOME/.cache}/telha-queue}
flags=$(printf '%s\n' "$sha256" "$(uname -m)" "${options[@]}" | sha256sum | cut -c1-12)
prefix=$cache/rocksdb-$version-$flags

if [ -f "$prefix/lib/librocksdb.a" ]; then
    echo "$prefix"
    exit 0
fi
[ "${1:-}" != --where ] || exit 1

for tool in cmake make c++ tar python3; do
    command -v "$tool" >/dev/null || fail "$tool not found; run scripts/system-packages.sh bundled, then try again"
done
mkdir -p "$cache"
work=$(mktemp -d "$cache/.rocksdb-build.XXXXXX")
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT TERM HUP

# Apt with every path of its own, so that the machine's sources and lists stay as they are and root is not needed.
private_apt() {
    local command=$1
    shift
    "$command" -qq \
        -o Dir::Etc::sourcelist="$work/apt/sources.list" -o Dir::Etc::sourceparts=/dev/null \
        -o Dir::Etc::preferences=/dev/null -o Dir::Etc::preferencesparts=/dev/null \
        -o Dir::State="$work/apt/state" -o Dir::State::status="$work/apt/status" -o Dir::Cache="$work/apt/cache" \
        -o APT::Sandbox::User="$(id -un)" -o Acquire::Languages=none -o Acquire::Retries=3 "$@"
}

# The mirror that this machine already uses for Debian itself (not for its security updates). Where its lists have not
# been fetched yet, apt knows no origins, and the entry for the running release stands in.
debian_mirror() {
    local codename
    # shellcheck source=/dev/null
    codename=$(. /etc/os-release && echo "${VERSION_CODENAME:-}")
    # shellcheck disable=SC2016  # these are apt's own placeholders
    apt-get indextargets --format '$(REPO_URI) $(RELEASE) $(ORIGIN)' |
        awk -v codename="$codename" '
            $2 ~ /security/ { next }
            $3 == "Debian" && !known { known = $1 }
            $2 == codename && !likely { likely = $1 }
            END { print known ? known : likely }'
}

fetch_from_debian() {
    local keyring=/usr/share/keyrings/debian-archive-keyring.gpg mirror package uri
    local hint="set TELHA_ROCKSDB_SOURCE to the path or URL of RocksDB $version's source archive"
    command -v apt-get >/dev/null && [ -f "$keyring" ] || fail "no Debian package sources here; $hint"
    mirror=$(debian_mirror)
    [ -n "$mirror" ] || fail "no Debian mirror is configured here; $hint"

    mkdir -p "$work/apt/state/lists/partial" "$work/apt/cache/archives/partial"
    : >"$work/apt/status"
    echo "deb-src [signed-by=$keyring] $mirror trixie main" >"$work/apt/sources.list"
    echo "deb-src [signed-by=$keyring] $mirror sid main" >>"$work/apt/sources.list"
    private_apt apt-get update || fail "cannot read the Debian source index; $hint"

    package=$(private_apt apt-cache showsrc --only-source rocksdb |
        awk -v want="$version-" '$1 == "Version:" && index($2, want) == 1 { print $2; exit }')
    [ -n "$package" ] || fail "Debian no longer carries RocksDB $version; $hint"
    # Only the upstream archive is wanted; Debian's own patches beside it are not.
    uri=$(private_apt apt-get source --print-uris --only-source "rocksdb=$package" |
        awk -v name="$archive" '$2 == name { gsub("\047", "", $1); print $1 }')
    [ -n "$uri" ] || fail "Debian's source package names no $archive; $hint"
    private_apt /usr/lib/apt/apt-helper download-file "$uri" "$work/$archive"
}

source_given=${TELHA_ROCKSDB_SOURCE:-}
echo "telha-queue: fetching RocksDB $version" >&2
case "$source_given" in
    "") fetch_from_debian >&2 ;;
    *://*)
        python3 -c 'import sys, urllib.request as u; u.urlretrieve(*sys.argv[1:])' "$source_given" "$work/$archive" ;;
    *) cp -- "$source_given" "$work/$archive" ;;
esac
echo "$sha256  $work/$archive" | sha256sum --check --status ||
    fail "the RocksDB archive does not have the pinned SHA-256"

mkdir "$work/source"
tar -xzf "$work/$archive" -C "$work/source" --strip-components=1
log=$cache/rocksdb-$version-$flags.log
echo "telha-queue: compiling RocksDB $version (about 10 minutes on 2 processors; log in $log)" >&2
started=$SECONDS
{
    cmake -S "$work/source" -B "$work/build" -DCMAKE_INSTALL_PREFIX="$work/install" "${options[@]}" &&
        cmake --build "$work/build" --parallel "${TELHA_JOBS:-$(nproc)}" --target rocksdb &&
        cmake --install "$work/build"
} >"$log" 2>&1 || { tail -n 20 "$log" >&2; fail "RocksDB did not build; the whole log is $log"; }

# The rename is what publishes the library: whoever is interrupted before it leaves nothing behind.
mv -T "$work/install" "$prefix" 2>/dev/null || [ -f "$prefix/lib/librocksdb.a" ] || fail "cannot write $prefix"
echo "telha-queue: RocksDB $version built in $((SECONDS - started)) s" >&2
echo "$prefix"
