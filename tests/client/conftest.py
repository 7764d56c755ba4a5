"""What the tests of the client share stands in modules beside them; with importlib's import mode they must be found by name."""

import sys
from pathlib import Path

# At the end: an installed fetchstash goes before the checkout's.
sys.path.append(str(Path(__file__).parents[2]))
