"""Call a service while its bucket fails: each error says what to do, and it recovers by itself.

    python scripts/replicas/outage.py NAME URL ENDPOINT [--seconds 15]

One replica with tokens, its bucket behind the fault proxy, without a cache. Clients of two tenants
fetch and read while the bucket throttles everything, never answers, and is out. Then a call is
answered, or says `[store_error]`, or the service answers 503 since it cannot verify a token. After
each fault both clients must work again without a restart, and read what was acknowledged.
"""

import argparse
import asyncio
import os
import random
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from scripts.replicas.clients import TENANTS, Client, Ledger, Replica, Web, settings_file, token_for
from scripts.replicas.faults import FaultProxy, Faults, fault_proxy

EXPECTED = {"", "store_error", "HTTP 503"}
RECOVERY_SECONDS = 240
CALL_SECONDS = 120
"""A call that takes longer hangs."""

FAULTS = {
    "throttled": Faults(throttled=1),
    "silent": Faults(unheard=1),
    "out": Faults(outage=True),
}


async def use(client: Client, chance: random.Random) -> None:
    """Make one call."""
    if chance.random() < 0.4:
        await client.fetch()
    elif chance.random() < 0.5:
        await client.grep(chance)
    else:
        await client.read(chance)


async def during(clients: list[Client], ledger: Ledger, seconds: float) -> Counter[str]:
    """Call for a while; return how often each code was answered."""
    first, end = len(ledger.calls), time.monotonic() + seconds

    async def go_on(client: Client, number: int) -> None:
        chance = random.Random(number)  # noqa: S311 - it guards nothing
        while time.monotonic() < end:
            await use(client, chance)
            await asyncio.sleep(0.1)

    await asyncio.gather(*(go_on(client, number) for number, client in enumerate(clients)))
    calls = ledger.calls[first:]
    for call in calls:
        if call.code not in EXPECTED:
            ledger.faults.append(f"{call.tool}: {call.code}")
        if call.end - call.start > CALL_SECONDS:
            ledger.faults.append(f"{call.tool} took {call.end - call.start:.0f} s")
    return Counter(call.code or "answered" for call in calls)


async def recovers(clients: list[Client], ledger: Ledger) -> float:
    """Return after how many seconds a fetch of each client is answered again."""
    start = time.monotonic()
    for client in clients:
        while True:
            await client.fetch()
            if not ledger.calls[-1].code:
                break
            if time.monotonic() - start > RECOVERY_SECONDS:
                ledger.faults.append(f"{client.tenant}: still {ledger.calls[-1].code}")
                break
            await asyncio.sleep(0.5)
    return time.monotonic() - start


async def play(
    proxy: FaultProxy, url: str, endpoint: str, names: list[str], seconds: float, folder: Path
) -> Ledger:
    """Run all of it; return the ledger."""
    ledger, web = Ledger(), Web()
    port = await web.start()
    settings = settings_file(folder, url, proxy.before(endpoint), port)
    environment = {**os.environ, "FETCHSTASH_STORE_FOLDER": str(folder / "cache")}
    environment["FETCHSTASH_STORE_CACHE_BYTES"] = "0"
    tokens = [await asyncio.to_thread(token_for, tenant, settings) for tenant in TENANTS]
    replica = Replica(folder, settings, environment)
    await replica.start()
    try:
        pairs = zip(TENANTS, tokens, strict=True)
        clients = [Client(ledger, port, replica.port, tenant, token) for tenant, token in pairs]
        for client in clients:
            for _ in range(3):
                await client.fetch()
        for name in names:
            faults = FAULTS[name]
            await asyncio.to_thread(proxy.set, faults)
            codes = await during(clients, ledger, seconds)
            await asyncio.to_thread(proxy.set, Faults())
            well = await recovers(clients, ledger)
            shown = ", ".join(f"{count} {code}" for code, count in codes.most_common())
            print(f"  bucket {name}: {shown}; well again after {well:.1f} s", flush=True)
        for client in clients:
            for ref, number in ledger.kept[client.tenant].items():
                await client.read_all(ref, number)
                if ledger.calls[-1].code:
                    ledger.faults.append(f"not read at the end: {ledger.calls[-1].code}")
            await client.caller.aclose()
    finally:
        replica.kill()
    return ledger


def main() -> int:
    """Play it on one bucket; return the exit code."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("name")
    parser.add_argument("url")
    parser.add_argument("endpoint")
    parser.add_argument("--seconds", type=float, default=15)
    parser.add_argument("--fault", action="append", choices=list(FAULTS), help="this alone")
    args = parser.parse_args()
    print(f"a service whose bucket fails: {args.name}", flush=True)
    with tempfile.TemporaryDirectory() as folder, fault_proxy(args.endpoint) as proxy:
        place = Path(folder).resolve()
        names = args.fault or list(FAULTS)
        ledger = asyncio.run(play(proxy, args.url, args.endpoint, names, args.seconds, place))
    kept = sum(map(len, ledger.kept.values()))
    for fault in ledger.faults[:20]:
        print(f"FAULT {fault}")
    print(f"{kept} acknowledged, all read at the end; {len(ledger.faults)} faults")
    return bool(ledger.faults)


if __name__ == "__main__":
    sys.exit(main())
