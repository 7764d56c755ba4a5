"""What /readyz finds out: here, that the audit log takes no lines."""

import json
from pathlib import Path

import pytest

from fetchstash.errors import StoreError
from fetchstash.handlers import ExtractLimits
from fetchstash.service import AuditLog
from fetchstash.service._request import Record
from fetchstash.service._serve import Readiness
from fetchstash.store import MemoryObjects

pytestmark = [pytest.mark.anyio, pytest.mark.slow]


async def test_a_service_whose_audit_log_is_lost_is_not_ready_until_it_takes_lines(
    tmp_path: Path,
) -> None:
    path = tmp_path / "audit.jsonl"
    audit = AuditLog(path)

    async def reason() -> str:
        return await Readiness(MemoryObjects(), ExtractLimits(), audit).reason()

    assert await reason() == ""
    path.mkdir()
    assert await reason() == ""  # no line was lost yet
    with pytest.raises(StoreError):
        audit.call(Record("", {}), [])
    assert await reason() == "audit_log"
    assert await reason() == "audit_log"
    path.rmdir()
    assert await reason() == ""
    [line] = map(json.loads, path.read_text().splitlines())
    assert (line["event"], line["lost"]) == ("resumed", 1)
