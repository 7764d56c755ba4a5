#!/usr/bin/env bash
# Tests the extras that .venv does not have (ocr, browser), in an environment of its own outside the checkout, which sees the packages
# of .venv too: scripts/ci extras. What they need of Debian (Chromium, fonts, tesseract for the benchmark) is installed where root may.
# What cannot be installed is skipped, and a line says so.
set -euo pipefail
cd "$(dirname "$0")/../.."

home="${EXTRAS_HOME:-${XDG_CACHE_HOME:-$HOME/.cache}/fetchstash/extras}"
python="$home/bin/python"
skipped=() tests=()

[ -x .venv/bin/python ] || { echo "There is no .venv: run scripts/test first."; exit 1; }
[ -x "$python" ] || .venv/bin/python -m venv "$home" || { echo "SKIPPED: no environment can be made in $home"; exit 0; }
# The checkout and what .venv sees come last: what is installed here goes first.
PYTHONSAFEPATH=1 .venv/bin/python - "$PWD" "$home" <<'PY'
import sys
from pathlib import Path
checkout, home = sys.argv[1:]
packages = [checkout, *(path for path in sys.path if Path(path).name == "site-packages")]
(site,) = Path(home).glob("lib/python3*/site-packages")
(site / "zz-checkout.pth").write_text("".join(f"{path}\n" for path in dict.fromkeys(packages)))
command = Path(home, "bin", "fetchstash")  # which the tests start as a host does
command.write_text(f"#!{home}/bin/python -P\nimport sys\nfrom fetchstash.cli import main\nsys.exit(main())\n")
command.chmod(0o755)
PY

install() { # EXTRA MODULE PACKAGE…: whether the packages are there
  local extra="$1" module="$2"; shift 2
  if ! "$python" -m pip install --quiet --upgrade --disable-pip-version-check "$@"; then
    "$python" -P -c "import $module" 2>/dev/null || { skipped+=("$extra"); echo "== $extra: SKIPPED, $* cannot be installed here"; return 1; }
    echo "$extra: not upgraded, for the registry does not answer: tested as it was installed last"
  fi
}

debian() { # COMMAND PACKAGE…: whether the command is there, installed now if root may
  local command="$1"; shift
  command -v "$command" >/dev/null && return
  [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null || return 1
  echo "== installing $*"
  apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$@" >/dev/null
  command -v "$command" >/dev/null
}

if install ocr rapidocr "rapidocr>=3.10" "onnxruntime>=1.31"; then tests+=(tests/handlers/test_ocr.py); fi
if debian chromium chromium chromium-sandbox fonts-liberation || [ -n "$(command -v google-chrome || true)" ]; then
  if install browser playwright "playwright>=1.55"; then
    tests+=(tests/fetch/test_browser.py tests/server/ui/test_browser.py)
    npm install --silent --no-audit --no-fund --prefix "$home/node" axe-core ||
      echo "axe-core cannot be installed here: the view is not tested for everybody"
  fi
else
  skipped+=(browser); echo "== browser: SKIPPED, there is no Chromium here and none can be installed"
fi
if debian zsh zsh && debian fish fish; then tests+=(tests/cli/test_completion.py)
else skipped+=(shells); echo "== shells: SKIPPED, zsh and fish cannot be installed here"; fi
debian tesseract tesseract-ocr tesseract-ocr-rus tesseract-ocr-chi-sim fonts-liberation fonts-dejavu-core fonts-noto-cjk ||
  echo "tesseract cannot be installed here: bench/handlers_ocr.py compares with nothing"

tests+=(tests/server/test_two_calls_extras.py)
failed=0
if [ ${#tests[@]} -gt 0 ]; then
  PYTHONSAFEPATH=1 "$python" -m pytest -q -p no:cacheprovider --no-header -rs "${tests[@]}" || failed=1
fi
[ ${#skipped[@]} -eq 0 ] || echo "SKIPPED: ${skipped[*]}"
exit "$failed"
