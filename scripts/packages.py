"""Make what fetchstash is handed out as, in dist/.

scripts/packages wheel    dist/fetchstash-VERSION-py3-none-any.whl
"""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
DIST = ROOT / "dist"


def build_wheel(folder: Path = DIST) -> Path:
    """Build the wheel and return its path."""
    command = [sys.executable, "-P", "-m", "build", "--wheel", "--no-isolation", "--outdir"]
    done = subprocess.run([*command, folder, ROOT], capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"{done.stdout}{done.stderr}\nthe wheel could not be built")
    return max(folder.glob("fetchstash-*.whl"), key=os.path.getmtime)


def main() -> None:
    """Make what is named."""
    match sys.argv[1:]:
        case ["wheel"]:
            print(build_wheel())
        case _:
            sys.exit("usage: scripts/packages wheel")


if __name__ == "__main__":
    main()
