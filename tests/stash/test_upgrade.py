"""What fetchstash 0.1 kept and was told, opened by this version."""

import base64
import json
import sqlite3
import time
from pathlib import Path
from typing import Any

import pytest

import fetchstash
from fetchstash.config import KEYS, load, toml_value
from fetchstash.stash import SyncStash

KEPT: dict[str, Any] = json.loads(
    (Path(__file__).parent / "of_0_1.json").read_text(encoding="utf-8")
)
SITE = "http://127.0.0.1:8137"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Write the store of 0.1 anew, as if it had been fetched now: nothing of it has expired."""
    for name, kept in KEPT["files"].items():
        file = tmp_path / name
        file.parent.mkdir(exist_ok=True, mode=0o700)
        is_text = isinstance(kept, str)
        data = (
            kept.replace("STORE", str(tmp_path)).encode()
            if is_text
            else base64.b64decode(kept["base64"])
        )
        file.write_bytes(data)
        file.chmod(0o600)
    db = sqlite3.connect(tmp_path / "catalog.db")
    db.executescript("\n".join(KEPT["sql"]).replace("STORE", str(tmp_path)))
    now = time.time()
    db.execute("UPDATE artifact SET created_at = ?, expires_at = ?", (now, now + 86_400))
    db.execute(f"PRAGMA user_version = {KEPT['user_version']}")
    db.commit()
    db.close()
    tmp_path.chmod(0o700)
    return tmp_path


@pytest.mark.in_process
def test_a_store_of_0_1_is_listed_read_searched_and_keeps_its_pins(folder: Path) -> None:
    settings = {"store.folder": str(folder), "store.run": "upgrade"}
    with fetchstash.open_stash_sync(settings) as stash:
        assert [facts.source_url.removeprefix(SITE) for facts in stash.list()] == [
            "/report.html",  # 0.1 knows no order of fetches: the last used comes first
            "/report.pdf",
            "/readings.csv",
            "/stations.json",
        ]
        assert [facts.pinned for facts in stash.list()] == [True, False, False, False]
        reads(stash)
        stash.pin(f"{SITE}/report.html", pinned=False)
        stash.delete(f"{SITE}/readings.csv")
        assert not [finding for finding in stash.check() if finding.level != "note"]
        assert stash.list().total == 3


def reads(stash: SyncStash) -> None:
    page, report = stash.get(f"{SITE}/report.html"), stash.get(f"{SITE}/report.pdf")
    assert page.facts.title == "The lamps of Lanternholm"
    assert [heading.title for heading in page.outline] == [page.facts.title, "The night ferry"]
    assert "leaves at 22:40 from quay 9" in page.text()
    assert [match.text for match in report.grep("torque is [34]")] == [
        "Page 3. The torque is 3 Nm.",
        "Page 4. The torque is 4 Nm.",
    ]
    assert "torque is 2 Nm" in report.slice(unit="pages", start=2, end=2).text
    stations = stash.get(f"{SITE}/stations.json")
    assert '"rock": "basalt"' in stations.slice(path="/stations/7").text
    with report.raw() as file:
        assert file.read_bytes().startswith(b"%PDF-")
    best = next(iter(stash.search("bicycles on the night ferry")))
    assert best.artifact_ref == page.ref
    csv = stash.get(f"{SITE}/readings.csv")
    assert csv.facts.rows == 28


def test_every_setting_of_0_1_is_taken_with_its_value(tmp_path: Path) -> None:
    assert not set(KEPT["settings"]) - set(KEYS)
    given = {
        path: value
        for path, value in KEPT["settings"].items()
        # Where the store lies differs from machine to machine.
        if path not in ("store.folder", "store.url")
    }
    file = tmp_path / "fetchstash.toml"
    sections = {path.partition(".")[0] for path in given}
    lines = [
        line
        for section in sorted(sections)
        for line in (
            f"[{section}]",
            *(
                f"{path.partition('.')[2]} = {toml_value(value)}"
                for path, value in given.items()
                if path.startswith(f"{section}.")
            ),
        )
    ]
    file.write_text("\n".join(lines), encoding="utf-8")
    values = load(file=file).values
    taken = json.loads(json.dumps({path: values[path] for path in given}))
    assert taken == given
