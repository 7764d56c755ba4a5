"""Time the verification of tokens on one core, and of known tokens while random ones are tried.

    python -P bench/access.py [--rounds 5]

The store of the second part answers each request after 100 ms. Ratios to an HMAC-SHA-256 of the
token show how busy the machine is.
"""

import argparse
import hashlib
import hmac
import json
import statistics
import time
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

import anyio
import anyio.lowlevel
import httpx2
import jwt
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa

from fetchstash.config import OAuthLimits
from fetchstash.service.access import Issuer, OAuthTokens, OwnTokens, Rejected, Verifier
from fetchstash.store import MemoryObjects

ISSUER, AUDIENCE = "https://id.example.org", "https://fetch.example.org/mcp"
KEYS: dict[str, Any] = {
    "RS256": rsa.generate_private_key(65537, 2048),
    "ES256": ec.generate_private_key(ec.SECP256R1()),
    "EdDSA": ed25519.Ed25519PrivateKey.generate(),
}


class Slow(MemoryObjects):
    """Answers after 100 ms, as a bucket far away."""

    async def read(self, key: str) -> bytes | None:
        """Read, late."""
        await anyio.sleep(0.1)
        return await super().read(key)

    async def keys(self, folder: str = "") -> list[str]:
        """List, late."""
        await anyio.sleep(0.1)
        return await super().keys(folder)


def provider(algorithm: str) -> tuple[OAuthTokens, str]:
    """Return what verifies tokens of an algorithm, and such a token."""
    key = KEYS[algorithm]
    public = jwt.get_algorithm_by_name(algorithm).to_jwk(key.public_key(), as_dict=True)
    documents = {"/keys": {"keys": [{**public, "kid": "k"}]}}
    metadata = {"issuer": ISSUER, "jwks_uri": f"{ISSUER}/keys"}

    def answer(request: httpx2.Request) -> httpx2.Response:
        data = json.dumps(documents.get(request.url.path, metadata)).encode()
        return httpx2.Response(200, stream=httpx2.ByteStream(data))

    issuer = Issuer(ISSUER, transport=httpx2.MockTransport(answer))
    now = int(time.time())
    claims = {"iss": ISSUER, "aud": AUDIENCE, "sub": "ada", "tenant": "a", "scope": "fetch"}
    token = jwt.encode({**claims, "iat": now, "exp": now + 900}, key, algorithm, {"kid": "k"})
    return OAuthTokens(OAuthLimits(ISSUER, AUDIENCE), issuer), token


async def microseconds(work: Callable[[], Awaitable[object]], rounds: int, times: int) -> float:
    """Return the median time of a call, in CPU time."""
    spent: list[float] = []
    for _ in range(rounds):
        begin = time.process_time()
        for _ in range(times):
            await work()
        spent.append((time.process_time() - begin) / times * 1e6)
    return statistics.median(spent)


async def verifications(rounds: int) -> None:
    own = OwnTokens(MemoryObjects())
    text = (await own.create("a", "bench")).text
    rows: list[tuple[str, Verifier, str, int]] = [("our own", own, text, 5_000)]
    rows += [(algorithm, *provider(algorithm), 500) for algorithm in KEYS]

    async def sign() -> None:
        hmac.new(b"key", text.encode(), hashlib.sha256).digest()

    unit = await microseconds(sign, rounds, 5_000)
    print(f"HMAC-SHA-256 of a token: {unit:.1f} µs")
    for name, verifier, token, times in rows:
        await verifier.verify(token)
        spent = await microseconds(partial(verifier.verify, token), rounds, times)
        print(f"{name}: {spent:.0f} µs, {spent / unit:.0f} × the HMAC, {1e6 / spent:,.0f} a second")


async def flooded() -> None:
    """Verify a known token while 50 clients try well-formed random ones for five seconds."""
    objects, strangers = Slow(), OwnTokens(MemoryObjects())
    own = OwnTokens(objects)
    known = (await own.create("a", "bench")).text
    await own.verify(known)
    tried = [(await strangers.create("a", "bench")).text for _ in range(500)]
    waits: list[float] = []
    attempts = 0

    async def flood(first: int) -> None:
        nonlocal attempts
        while True:
            for text in tried[first:] + tried[:first]:
                try:
                    await own.verify(text)
                except Rejected:
                    attempts += 1
                await anyio.lowlevel.checkpoint()

    async with anyio.create_task_group() as tasks:
        for number in range(50):
            tasks.start_soon(flood, number * 10)
        end = time.monotonic() + 5
        while time.monotonic() < end:
            begin = time.monotonic()
            await own.verify(known)
            waits.append(time.monotonic() - begin)
            await anyio.sleep(0.001)
        tasks.cancel_scope.cancel()
    waits.sort()
    worst = (
        f"p99 {waits[int(len(waits) * 0.99)] * 1e3:.2f} ms, the longest {waits[-1] * 1e3:.2f} ms"
    )
    print(f"a known token beside {attempts:,} random ones in 5 s, store 100 ms away: {worst}")


async def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=5)
    await verifications(parser.parse_args().rounds)
    await flooded()


if __name__ == "__main__":
    anyio.run(main)
