"""Pages of scripts: which of them a browser renders, and a page as its screenshot."""

from dataclasses import dataclass
from urllib.parse import urlsplit

import anyio
import anyio.to_thread

from fetchstash.config import Settings
from fetchstash.errors import BadArgument, Call
from fetchstash.fetch import FetchLimits, Renderer
from fetchstash.stash._facts import described
from fetchstash.stash._values import Picture
from fetchstash.store import ArtifactStore, Facts

_WHOLE_PAGE = "page"
"""The path that every web page answers, and no other document."""
_MASK = "***"


def is_web_page(facts: Facts) -> bool:
    """Return whether the document is a page that was fetched."""
    return _WHOLE_PAGE in described(facts).paths and bool(facts.final_url)


def wants_browser(facts: Facts, limits: FetchLimits) -> bool:
    """Return whether the settings have this page rendered."""
    if "off" in limits.browser or not is_web_page(facts):
        return False
    if "auto" in limits.browser and facts.page_verdict == "empty_shell":
        return True
    host = f".{(urlsplit(facts.final_url).hostname or '').removesuffix('.')}"
    return any(host.endswith(f".{domain.lstrip('.')}") for domain in limits.browser)


@dataclass(frozen=True, slots=True)
class Screenshots:
    """Pictures of web pages as a browser shows them."""

    settings: Settings
    store: ArtifactStore
    renderer: Renderer | None

    def can_show(self, facts: Facts) -> bool:
        """Return whether there is a browser for this document."""
        return self.renderer is not None and is_web_page(facts)

    async def picture(self, facts: Facts) -> Picture:
        """Return the page as it is now, within the bounds of pictures."""
        assert self.renderer is not None
        if _MASK in facts.final_url:
            again = Call("read", {"ref": facts.artifact_ref})
            what = "The page's address holds a secret that is not kept, so it cannot be shown."
            raise BadArgument(what, "Try {}.", again)
        limits = self.settings.context
        rendered = await self.renderer.render(
            facts.final_url,
            self.store.spool,
            seconds=self.settings.fetch.deadline_seconds,
            edge=limits.max_image_edge_px,
            max_bytes=limits.max_image_size_bytes,
        )
        try:
            data = await anyio.to_thread.run_sync(rendered.path.read_bytes)
        finally:
            rendered.path.unlink(missing_ok=True)
        return Picture(facts, data, rendered.media_type, rendered.width, rendered.height)
