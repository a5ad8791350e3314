"""The names of scopes: one row per scope that jobs were enqueued to by name. See docs/format.md."""

from libc.string cimport memcpy
from libcpp.string cimport string

from keys cimport SCOPE_BYTES
from lookup cimport get
from outcome cimport CODE_NOT_FOUND, Fault, List, ScopeName, set_text
from record cimport Bytes, same
from rocksdb cimport PinnableSlice, Slice, WriteBatch
from scan cimport list_scopes
from store cimport META, Cursor, Store, Visit, bytes_of, slice_of_bytes

cdef enum:
    NAME_AT = 6
    NAME_KEY_BYTES = NAME_AT + SCOPE_BYTES


cdef inline Fault name_scope(Store* store, const char* scope, Bytes name) noexcept nogil:
    """Store the name of a scope, unless it is there already."""
    cdef Visit visit
    cdef PinnableSlice stored
    cdef WriteBatch batch
    cdef Bytes known
    cdef Fault fault
    store.heal()
    fault = visit.enter(store)
    if fault.ok():
        fault = _get_name(store, scope, &stored)
        known.data = stored.data()
        known.size = stored.size()
        if fault.code == CODE_NOT_FOUND or (fault.ok() and not same(known, name)):
            _put_name(store, scope, name, &batch)
            fault = store.commit(&batch)
    return fault


cdef inline Fault find_scopes(Store* store, List[ScopeName]* out) noexcept nogil:
    """Add the scopes that have jobs, in key order, each with its name as it is stored; empty for none."""
    cdef Visit visit
    cdef List[string] scopes
    cdef PinnableSlice name
    cdef size_t i
    cdef Fault fault = visit.enter(store)
    if fault.ok():
        fault = list_scopes(store, &scopes)
    for i in range(scopes.size()):
        if not fault.ok():
            break
        name.Reset()
        fault = _get_name(store, scopes.at(i).data(), &name)
        if fault.code == CODE_NOT_FOUND:
            fault = Fault()
            name.Reset()
        out.add().scope = scopes.at(i)[0]
        set_text(&out.at(i).name, name.data(), name.size())
    return fault


cdef inline Fault list_names(Store* store, Bytes after, size_t limit, List[ScopeName]* out) noexcept nogil:
    """Add up to `limit` rows that hold names, behind the key `after`, each as it is stored: key and value."""
    cdef Visit visit
    cdef Cursor rows
    cdef Fault fault = visit.enter(store)
    if not fault.ok():
        return fault
    rows.survey(META, NULL)
    rows.open_at(store, b"scope:", NAME_AT, after.data, after.size)
    while out.size() < limit and rows.is_on_row():
        if not same(bytes_of(rows.key()), after):
            set_text(&out.add().scope, rows.key().data(), rows.key().size())
            set_text(&out.at(out.size() - 1).name, rows.value().data(), rows.value().size())
        rows.step()
    return rows.fault()


cdef inline Fault drop_name(Store* store, Bytes key, Bytes seen) noexcept nogil:
    """Remove a row that holds no name, if it is as it was seen. The next job enqueued by that name writes it anew."""
    cdef Visit visit
    cdef PinnableSlice stored
    cdef WriteBatch batch
    cdef Fault fault = visit.enter(store)
    if fault.ok():
        fault = get(store, META, slice_of_bytes(key), &stored)
    if fault.ok() and same(bytes_of(stored), seen):
        batch.Delete(store.database.family(META), slice_of_bytes(key))
        fault = store.commit(&batch)
    return Fault() if fault.code == CODE_NOT_FOUND else fault


cdef inline Fault _get_name(Store* store, const char* scope, PinnableSlice* out) noexcept nogil:
    cdef char[NAME_KEY_BYTES] key
    _encode_name_key(key, scope)
    return get(store, META, Slice(key, NAME_KEY_BYTES), out)


cdef inline void _put_name(Store* store, const char* scope, Bytes name, WriteBatch* batch) noexcept nogil:
    cdef char[NAME_KEY_BYTES] key
    _encode_name_key(key, scope)
    batch.Put(store.database.family(META), Slice(key, NAME_KEY_BYTES), Slice(name.data, name.size))


cdef inline void _encode_name_key(char* out, const char* scope) noexcept nogil:
    memcpy(out, b"scope:", NAME_AT)
    memcpy(out + NAME_AT, scope, SCOPE_BYTES)
