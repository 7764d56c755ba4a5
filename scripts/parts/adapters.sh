#!/usr/bin/env bash
# Tests each of the client's adapters against its real SDK, at the newest version that resolves, each in an environment of its own
# outside the checkout, and checks the types of the adapter and of its example there: scripts/ci adapters [NAME…]. "together" is one
# environment with all their extras: every pair resolves, every adapter is imported, and openai's is tested with its older major.
# Uses uv where it is installed, else venv and pip. An SDK that cannot be installed is skipped, and a line says so.
set -euo pipefail
cd "$(dirname "$0")/../.."

home="${ADAPTERS_HOME:-${XDG_CACHE_HOME:-$HOME/.cache}/fetchstash/adapters}"
export PYTHONPATH="$PWD" LITELLM_LOCAL_MODEL_COST_MAP=True
declare -A packages=(
  [anthropic]="anthropic"
  [google_genai]="google-genai"
  [langchain]="langchain langchain-openai langchain-anthropic langchain-mcp-adapters"
  [litellm]="litellm mcp"
  [openai]="openai"
  [pydantic_ai]="pydantic-ai-slim[openai,anthropic,mcp]"
)
adapters=(anthropic google_genai langchain litellm openai pydantic_ai)
[ $# -gt 0 ] || set -- "${adapters[@]}" together

base="${PYTHON:-}"
for candidate in .venv/bin/python python3; do
  [ -n "$base" ] || ! command -v "$candidate" >/dev/null || base="$candidate"
done

[[ " $* " != *" together "* ]] || packages[together]="$("$base" - "${adapters[@]//_/-}" <<'PY'
import sys, tomllib
extras = tomllib.load(open("pyproject.toml", "rb"))["project"]["optional-dependencies"]
print(*(requirement for name in sys.argv[1:] for requirement in extras[name]))
PY
)"

make() { # FOLDER: an empty environment
  if command -v uv >/dev/null; then uv venv --quiet --python "$base" "$1"; else "$base" -m venv --upgrade-deps "$1" >/dev/null; fi # an old pip searches for minutes
}
install() { # FOLDER PACKAGE…
  local folder="$1"; shift
  if command -v uv >/dev/null; then uv pip install --quiet --upgrade --python "$folder/bin/python" "$@"
  else "$folder/bin/python" -m pip install --quiet --upgrade --disable-pip-version-check "$@"; fi
}

failed=0 skipped=() offline=""
for name in "$@"; do
  python="$home/$name/bin/python"
  [ -x "$python" ] || make "$home/$name" || { skipped+=("$name"); echo "== $name: SKIPPED, no environment can be made here"; continue; }
  # shellcheck disable=SC2086 # several packages
  if ! install "$home/$name" pytest anyio hypothesis opentelemetry-api mypy ${packages[$name]}; then
    if [ "$name" = together ] && [ -z "$offline" ]; then
      failed=1; echo "== together: FAILED, the adapters' extras do not resolve together, or the registry does not answer"; continue
    fi
    offline=yes
    module="${name/google_/google.}"; [ "$name" != together ] || module="litellm, openai, anthropic, langchain, pydantic_ai, google.genai"
    if ! "$python" -c "import $module, mypy, pytest, hypothesis"; then
      skipped+=("$name")
      echo "== $name: SKIPPED, its SDK cannot be installed here"
      continue
    fi
    echo "$name: not upgraded, for the registry does not answer: tested as it was installed last"
  fi
  echo "== $name"
  "$python" -c "
from importlib.metadata import distributions
sdks = ('anthropic', 'google-genai', 'langchain', 'langchain-core', 'langchain-openai', 'litellm', 'openai', 'pydantic-ai-slim')
print(*sorted({f'{d.name} {d.version}' for d in distributions() if d.name in sdks}), sep='\n')"
  if [ "$name" = together ]; then
    "$python" -P -c "import importlib, sys; [importlib.import_module(f'fetchstash.client.adapters.{name}') for name in sys.argv[1:]]" "${adapters[@]}" || failed=1
    ADAPTER_UNDER_TEST=openai "$python" -P -m pytest -q -p no:cacheprovider --no-header -rfE -m "not slow" \
      tests/client/test_adapters.py tests/client/test_adapter_reach.py tests/client/test_adapter_loops.py tests/client/test_sdk_errors.py || failed=1
    continue
  fi
  "$python" -m mypy --cache-dir "$home/$name/.mypy_cache" --follow-imports=silent \
    fetchstash/client/adapters/_wrapped.py "fetchstash/client/adapters/$name.py" "examples/client_$name.py" || failed=1
  ADAPTER_UNDER_TEST="$name" "$python" -P -m pytest -q -p no:cacheprovider --no-header -rfE \
    tests/client/test_adapters.py tests/client/test_adapter_reach.py tests/client/test_adapter_loops.py \
    tests/client/test_sdk_errors.py tests/client/test_sdk_types.py tests/client/test_pydantic_messages.py || failed=1
done
ADAPTERS_HOME="$home" .venv/bin/python -P -m pytest tests/test_examples.py -k framework -q -p no:cacheprovider || failed=1
[ ${#skipped[@]} -eq 0 ] || echo "SKIPPED: ${skipped[*]}"
exit "$failed"
