"""Code that runs without the GIL stays clear of Python; and the gate that says so really finds what it should."""

import importlib.util
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

spec = importlib.util.spec_from_file_location("annotate_gate", ROOT / "scripts" / "annotate_gate.py")
assert spec is not None
assert spec.loader is not None
annotate_gate = importlib.util.module_from_spec(spec)
spec.loader.exec_module(annotate_gate)

CLEAN_PXD = """
from libc.stdint cimport uint64_t

cdef inline uint64_t halve(
    uint64_t value,  # any
) noexcept nogil:
    return value // 2 + value % 7
"""
CLEAN_PYX = """
from maths cimport halve

cdef class Box:
    cdef int twice(self, int value) noexcept nogil:
        return 2 * value

    def run(self, int value):
        cdef int result
        with nogil:
            result = self.twice(value) + <int> halve(7)
        return result
"""
THROWING = """
cdef extern from *:
    '''
    inline int may_throw(int value) { return value; }
    '''
    int may_throw(int value) except + nogil
"""


@pytest.fixture
def check(tmp_path):
    def run(pyx: str, pxd: str = CLEAN_PXD) -> str:
        (tmp_path / "maths.pxd").write_text(pxd)
        (tmp_path / "_planted.pyx").write_text(pyx)
        return "\n".join(map(str, annotate_gate.check(tmp_path)))

    return run


def test_our_own_code_is_clean():
    assert annotate_gate.check(ROOT / "ext") == []


def test_clean_code_passes(check):
    assert check(CLEAN_PYX) == ""


def test_a_throwing_call_in_an_inline_function_is_found(check):
    pxd = CLEAN_PXD.replace("value // 2 + value % 7", "may_throw(1)").replace("cdef inline", THROWING + "\ncdef inline")
    assert "maths.pxd:11 halve: the nogil function uses" in check(CLEAN_PYX, pxd)


def test_a_throwing_call_in_a_method_is_found(check):
    found = check(THROWING + CLEAN_PYX.replace("2 * value", "may_throw(value)"))
    assert "twice: the nogil function uses" in found
    assert "__Pyx_WriteUnraisable" in found


def test_a_throwing_call_in_a_method_of_a_cpp_class_is_found(check):
    thrower = "\ncdef cppclass Thrower:\n    int run(int value) noexcept nogil:\n        return may_throw(value)\n"
    pyx = CLEAN_PYX.replace("        cdef int result", "        cdef int result\n        cdef Thrower thrower")
    found = check(THROWING + thrower + pyx.replace("self.twice(value)", "thrower.run(value)"))
    assert "run: the nogil function uses" in found


def test_a_throwing_call_in_a_nogil_block_is_found(check):
    found = check(THROWING + CLEAN_PYX.replace("self.twice(value)", "self.twice(may_throw(value))"))
    assert "_planted.pyx:16: the `with nogil:` block uses" in found


def test_taking_the_gil_in_a_nogil_block_is_found(check):
    taken = "with nogil:\n            with gil:\n                print(1)"
    assert "the `with nogil:` block uses" in check(CLEAN_PYX.replace("with nogil:", taken))


def test_a_division_that_checks_for_zero_is_found(check):
    checked = CLEAN_PYX.replace("2 * value", "2 // value").replace(
        "    cdef int twice", "    @cdivision(False)\n    cdef int twice"
    )
    assert "twice: the nogil function uses" in check("from cython cimport cdivision\n" + checked)


def test_a_function_without_an_exception_clause_is_a_performance_hint(check):
    pyx = CLEAN_PYX.replace("cdef class Box:", "cdef void touch() nogil:\n    pass\n\ncdef class Box:")
    assert "performance hint" in check(pyx.replace("            result =", "            touch()\n            result ="))


def test_a_file_that_nothing_imports_is_found(check):
    pyx = CLEAN_PYX.replace(" + <int> halve(7)", "").replace("from maths cimport halve", "")
    assert "halve: is in no generated C++" in check(pyx)


def test_a_folder_without_modules_is_not_clean(tmp_path):
    assert "no .pyx file" in str(annotate_gate.check(tmp_path)[0])
