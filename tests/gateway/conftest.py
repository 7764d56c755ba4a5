"""A client of the gateway, a real process in front of real processes."""

import shutil
import sys
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client

from fetchstash.gateway import _upstream

Wrapped = Callable[..., AbstractAsyncContextManager[Client]]
Shared = Callable[[str, str], Awaitable[Client]]

FETCHSTASH = shutil.which("fetchstash", path=str(Path(sys.executable).parent)) or "fetchstash"
PLAIN = Path(__file__).parent / "servers" / "plain.py"

both_eras = pytest.mark.parametrize("mode", ["legacy", "auto"])
any_mix = pytest.mark.parametrize("era", ["legacy", "modern"])


def plain(era: str) -> list[str]:
    """Return the command of a server of one era."""
    return [sys.executable, "-P", str(PLAIN), era]


@pytest.fixture(autouse=True)
def no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    """Start servers that ended again at once."""
    monkeypatch.setattr(_upstream, "FIRST_PAUSE_SECONDS", 0)


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    """Run all of these tests in one event loop, so that they can share a gateway."""
    return "asyncio"


@pytest.fixture(scope="session")
async def shared(
    anyio_backend: str, tmp_path_factory: pytest.TempPathFactory
) -> AsyncGenerator[Shared]:
    """Yield a function that returns a client of the gateway in front of ``plain.py``.

    It is started once for each mode of the client and era of the server: for tests that leave it
    as it was, whose call no other test's can disturb.
    """
    clients: dict[tuple[str, str], Client] = {}
    async with AsyncExitStack() as stack:

        async def client(mode: str, era: str) -> Client:
            if (mode, era) not in clients:
                opened = client_of(tmp_path_factory.mktemp("gateway"), mode, ["--", *plain(era)])
                clients[mode, era] = await stack.enter_async_context(opened)
            return clients[mode, era]

        yield client


@asynccontextmanager
async def client_of(
    folder: Path, mode: str, words: list[str], **options: Any
) -> AsyncGenerator[Client]:
    """Run ``fetchstash wrap`` with a store in ``folder``, and its stderr in a file there."""
    (folder / "fetchstash.toml").touch()
    server = StdioServerParameters(
        command=FETCHSTASH,
        args=["wrap", "--config", str(folder / "fetchstash.toml"), *words],
        env={"FETCHSTASH_STORE_FOLDER": str(folder / "store")},
    )
    with (folder / "stderr").open("w", encoding="utf-8") as errors:
        async with Client(stdio_client(server, errlog=errors), mode=mode, **options) as client:
            yield client


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
        (tmp_path / "fetchstash.toml").write_text(settings, encoding="utf-8")
        words = [*flags, *(["--", *command] if command else [])]
        async with client_of(tmp_path, mode, words, **options) as client:
            yield client

    return open_client
