"""What leaves the context goes into fetchstash's own store, where the server's tools find it."""

import os
import tempfile
from pathlib import Path
from types import TracebackType
from typing import Any, Self


class StoreOffload:
    """An Offload into the artifact store in ``folder``, for runs of the same name as the server's.

        with StoreOffload(folder) as offload:
            recovery = Recovery(Policy(offload=offload))

    The store is asynchronous and a rewrite is not: an event loop of its own runs in a thread as
    long as the ``with`` block.
    """

    def __init__(self, folder: Path, run: str = "default") -> None:
        self._folder = folder
        self._run = run
        self._portals: Any = None
        self._portal: Any = None
        self._store: Any = None

    def __enter__(self) -> Self:
        from anyio.from_thread import start_blocking_portal  # noqa: PLC0415 - third-party

        from fetchstash.store import StoreLimits, open_store  # noqa: PLC0415 - as above

        self._portals = start_blocking_portal()
        self._portal = self._portals.__enter__()
        self._store = self._portal.call(open_store, StoreLimits(folder=self._folder, run=self._run))
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._portal.call(self._store.aclose)
        self._portals.__exit__(kind, error, trace)

    def keep(self, text: str, name: str) -> str:
        """Keep ``text`` as an artifact and return its reference.

        Raises StoreError, Busy or TooLarge.
        """
        ref: str = self._portal.call(self._put, text, name)
        return ref

    async def _put(self, text: str, name: str) -> str:
        from anyio import to_thread  # noqa: PLC0415 - as above

        from fetchstash.ranges import Ranges  # noqa: PLC0415 - as above
        from fetchstash.store import Facts  # noqa: PLC0415 - as above

        files = await to_thread.run_sync(self._spool, text)
        facts = Facts(
            content_kind="text",
            media_type="text/plain",
            name=name,
            handler="client",
            extracted_chars=len(text),
        )
        put = await self._store.put(*files, facts, Ranges())
        return str(put.artifact_ref)

    def _spool(self, text: str) -> tuple[Path, Path]:
        """Write the text twice, as raw bytes and as text: the store takes both files over."""
        data = text.encode("utf-8", "replace")
        files: list[Path] = []
        for suffix in (".raw", ".text"):
            handle, name = tempfile.mkstemp(suffix, dir=self._store.spool)
            with os.fdopen(handle, "wb") as file:
                file.write(data)
            files.append(Path(name))
        return files[0], files[1]
