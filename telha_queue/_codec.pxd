"""The part of `_codec` that `_rocks` makes objects of. The types of its fields are in ext/."""

from record cimport View
from row cimport Row


cdef class JobRecord:
    cdef Row _row
    cdef View* _view  # what the row says, taken apart when a field is first read
    cdef object _source  # has load_payload, for one that stands in a row of its own, and scope_of
    cdef object _payload
    cdef object _result

    cdef const View* view(self) except NULL
