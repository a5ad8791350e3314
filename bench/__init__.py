"""Benchmarks: every figure is a ratio to something measured in the same run. `python -m bench --help` says more."""
