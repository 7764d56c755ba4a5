#!/bin/sh
# Runs the tests that are not slow on other interpreters, each in an environment of its own:
#   scripts/ci matrix                Debian 12's Python (the oldest that README promises), and 3.13 or newer
#   scripts/ci matrix PYTHON …       these
here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd) || exit 1

# find NAME LOWEST CANDIDATE …: prints the first candidate that runs and is at least LOWEST.
find() {
  name=$1 lowest=$2
  shift 2
  for python in "$@"; do
    if "$python" -c "import sys; sys.exit(sys.version_info[:2] < $lowest)" 2>/dev/null; then
      echo "$python"
      return
    fi
  done
  echo "--- matrix: SKIPPED $name, no such Python is installed here" >&2
}

if [ $# -eq 0 ]; then
  pyenv="${PYENV_ROOT:-$HOME/.pyenv}/versions"
  # shellcheck disable=SC2046 # one word each, or none
  set -- $(find "the system's Python" "(3, 11)" /usr/bin/python3) \
    $(find "Python 3.13 or newer" "(3, 13)" python3.14 python3.13 "$pyenv"/3.14*/bin/python "$pyenv"/3.13*/bin/python)
fi
for python in "$@"; do
  version=$("$python" -c 'import platform; print(platform.python_version())') || exit 1
  echo "--- matrix: Python $version ($python)"
  PYTHON=$python CHECKOUT_VENV=.venv-$version "$here/../test" -q -m "not slow" -n auto --dist loadfile || exit 1
done
