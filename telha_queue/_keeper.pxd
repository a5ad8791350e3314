"""The part of `_keeper` that `_rocks` makes objects of. The types of its fields are in ext/."""

from keeper cimport Renewer as CoreRenewer


cdef class Renewer:
    cdef CoreRenewer core
    cdef object owner  # what `core` points into
