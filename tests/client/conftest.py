"""Makes the modules that the client's tests share importable by name, in importlib's mode."""

import sys
from pathlib import Path

# At the end: an installed fetchstash goes before the checkout's.
sys.path.append(str(Path(__file__).parents[2]))
