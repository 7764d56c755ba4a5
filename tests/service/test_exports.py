from dataclasses import replace

import httpx2
import pytest

from fetchstash.config import Settings
from fetchstash.errors import BadArgument
from fetchstash.service import exports
from fetchstash.system import telemetry

pytestmark = pytest.mark.anyio


def with_metrics(settings: Settings, address: str) -> Settings:
    return replace(settings, http=replace(settings.http, metrics=address))


async def test_metrics_are_served_at_an_address_of_their_own(settings: Settings) -> None:
    async with exports(with_metrics(settings, "127.0.0.1:0")) as url, httpx2.AsyncClient() as http:
        telemetry.count("worker_kills", 3, reason="cpu")
        answer = await http.get(url)
    assert 'fetchstash_worker_kills_total{reason="cpu"} 3.0' in answer.text
    async with httpx2.AsyncClient() as http:
        with pytest.raises(httpx2.ConnectError):
            await http.get(url)


async def test_without_an_address_there_are_no_metrics(settings: Settings) -> None:
    async with exports(settings) as url:
        assert url == ""


async def test_an_address_that_is_taken_is_one_line(settings: Settings) -> None:
    async with exports(with_metrics(settings, "127.0.0.1:0")) as url:
        taken = url.removeprefix("http://").removesuffix("/metrics")
        with pytest.raises(BadArgument, match="cannot be used"):
            async with exports(with_metrics(settings, taken)):
                pass
