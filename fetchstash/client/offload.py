"""Keep what leaves the context in fetchstash's own store, where the server's tools find it."""

import atexit
import os
import tempfile
from contextlib import ExitStack
from hashlib import sha256
from pathlib import Path
from threading import Lock
from typing import Any, Self

from fetchstash.client._stubs import TEXT_KIND
from fetchstash.errors import ExpiredRef, UnknownRef, type_checked


@type_checked
class StoreOffload:
    """An Offload into the artifact store in ``folder``, for a run of the same name as the server's.

        recovery = Recovery(Policy(offload=StoreOffload(folder)))

    The store is asynchronous and a rewrite is not, so an event loop runs in a thread of its own,
    from the first ``keep`` on. The same text has the same reference as long as it is kept, in
    another process too: a conversation that goes on there sends the same stubs, and the provider's
    prompt cache stays warm. ``close``, the end of a ``with`` block or of the program ends it.
    """

    def __init__(self, folder: str | Path, run: str = "auto") -> None:
        self._folder = Path(folder)
        self._run = run
        self._lock = Lock()
        self._opened = ExitStack()
        self._portal: Any = None
        self._store: Any = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def keep(self, text: str, name: str) -> str:
        """Keep ``text`` and return its reference. Raises StoreError, Busy or TooLarge."""
        with self._lock:
            portal = self._portal or self._open()
        ref: str = portal.call(self._put, text, name)
        return ref

    def close(self) -> None:
        """Close the store. A later ``keep`` opens it again."""
        with self._lock:
            self._portal = None
            self._opened.close()
        atexit.unregister(self.close)

    def _open(self) -> Any:
        from anyio.from_thread import start_blocking_portal  # noqa: PLC0415 - third-party

        from fetchstash.store import StoreLimits, open_store  # noqa: PLC0415 - as above

        with ExitStack() as opened:
            portal = opened.enter_context(start_blocking_portal())
            self._store = portal.call(open_store, StoreLimits(folder=self._folder, run=self._run))
            opened.callback(portal.call, self._store.aclose)
            self._portal, self._opened = portal, opened.pop_all()
        atexit.register(self.close)
        return portal

    async def _put(self, text: str, name: str) -> str:
        from anyio import to_thread  # noqa: PLC0415 - as above

        from fetchstash.store import Facts  # noqa: PLC0415 - as above
        from fetchstash.text.ranges import Ranges  # noqa: PLC0415 - as above

        # Found again as a document is by its URL.
        url = f"fetchstash-client:{sha256(text.encode('utf-8', 'replace')).hexdigest()}"
        try:
            kept = await self._store.touch((await self._store.get(url)).artifact_ref)
            return str(kept.artifact_ref)
        except (UnknownRef, ExpiredRef):
            files = await to_thread.run_sync(self._spool, text)
        facts = Facts(
            content_kind=TEXT_KIND,
            media_type="text/plain",
            name=name,
            handler="client",
            extracted_chars=len(text),
        )
        put = await self._store.put(*files, facts, Ranges(), url=url)
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
