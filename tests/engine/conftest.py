"""Lets the tests of this folder share their helpers, which pytest's importlib mode does not by itself."""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parent))
