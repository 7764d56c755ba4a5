"""Run the comparison with peers: ``compare/run --help``."""

import sys

from compare._run import main

if __name__ == "__main__":
    sys.exit(main())
