"""What a store returns of an artifact, whole."""

from fetchstash.store import ArtifactStore


async def text_of(store: ArtifactStore, ref: str) -> str:
    """Return the text of an artifact."""
    reader = await store.open_text(ref)
    try:
        return await reader.read_chars(0, reader.chars)
    finally:
        await reader.aclose()


async def raw_of(store: ArtifactStore, ref: str) -> bytes:
    """Return the raw bytes of an artifact."""
    async with store.open_raw(ref) as path:
        return path.read_bytes()
