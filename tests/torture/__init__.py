"""Torture: kills, power cuts, failing disks, damaged files and races, each with what the queue must still hold.

`python -m tests.torture --help` runs them at length; the test files beside this one run them small.
"""
