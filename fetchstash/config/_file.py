"""Read the settings file."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from fetchstash.errors import BadArgument

CONFIG_VARIABLE = "FETCHSTASH_CONFIG"


def read_file(named: Path | None, environment: Mapping[str, str]) -> tuple[Path, dict[str, Any]]:
    """Return the path and the contents of the settings file, {} if the default one is missing.

    ``named`` is the file named by an argument. Raises BadArgument.
    """
    by_variable = environment.get(CONFIG_VARIABLE)
    path = named or (Path(by_variable) if by_variable else None)
    optional = path is None
    if path is None:
        import platformdirs  # noqa: PLC0415 - only where no file is named

        path = platformdirs.user_config_path("fetchstash", appauthor=False) / "fetchstash.toml"
    try:
        text = path.read_text(encoding="utf-8-sig")
        import tomllib  # noqa: PLC0415 - only where there is a file

        return path, tomllib.loads(text)
    except FileNotFoundError:
        if optional:
            return path, {}
        raise BadArgument(f"There is no settings file {path}.", "Name an existing one.") from None
    except OSError as error:
        what = f"The settings file {path} cannot be read: {error.strerror}."
        raise BadArgument(what, "Make it readable or name another.") from None
    except UnicodeDecodeError:
        what = f"The settings file {path} is not UTF-8."
        raise BadArgument(what, "Save it in that encoding.") from None
    except ValueError as error:  # TOMLDecodeError is one
        what = f"The settings file {path} is not TOML: {error}."
        raise BadArgument(what, "Correct that line.") from None
