"""A client of the gateway, a real process in front of real processes."""

import shutil
import sys
from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client

Wrapped = Callable[..., AbstractAsyncContextManager[Client]]

FETCHSTASH = shutil.which("fetchstash", path=str(Path(sys.executable).parent)) or "fetchstash"
PLAIN = Path(__file__).parent / "servers" / "plain.py"

both_eras = pytest.mark.parametrize("mode", ["legacy", "auto"])
any_mix = pytest.mark.parametrize("era", ["legacy", "modern"])


def plain(era: str) -> list[str]:
    """Return the command of a server of one era."""
    return [sys.executable, "-P", str(PLAIN), era]


@pytest.fixture
def wrapped(tmp_path: Path) -> Wrapped:
    """Return a function that opens a client of the gateway.

    ``settings`` is the text of a settings file with the servers; without it the words behind the
    mode are the command of the one server.
    """

    @asynccontextmanager
    async def open_client(
        mode: str, *command: str, settings: str = "", flags: tuple[str, ...] = (), **options: Any
    ) -> AsyncGenerator[Client]:
        file = tmp_path / "fetchstash.toml"
        file.write_text(settings, encoding="utf-8")
        words = [*flags, "--config", str(file), *(["--", *command] if command else [])]
        server = StdioServerParameters(
            command=FETCHSTASH,
            args=["wrap", *words],
            env={"FETCHSTASH_STORE_FOLDER": str(tmp_path / "store")},
        )
        with (tmp_path / "stderr").open("w", encoding="utf-8") as errors:
            transport = stdio_client(server, errlog=errors)
            async with Client(transport, mode=mode, **options) as client:
                yield client

    return open_client
