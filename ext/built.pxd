"""How this extension was built: what setup.py and RocksDB's headers said. Needs the GIL."""

cdef extern from "rocksdb/version.h":
    int ROCKSDB_MAJOR
    int ROCKSDB_MINOR
    int ROCKSDB_PATCH

cdef extern from *:
    const char* ROCKSDB_MODE "TELHA_ROCKSDB_MODE"
    bint ROCKSDB_ASSERTS "TELHA_ROCKSDB_ASSERTS"


cdef inline dict how_built():
    return {
        "rocksdb": f"{ROCKSDB_MAJOR}.{ROCKSDB_MINOR}.{ROCKSDB_PATCH}",
        "rocksdb_mode": ROCKSDB_MODE.decode(),
        "rocksdb_asserts": ROCKSDB_ASSERTS,
    }
