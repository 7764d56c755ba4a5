"""What README tells to write into the hosts' files is what `fetchstash register` writes."""

import json
import re
from pathlib import Path

import pytest

from fetchstash.cli.hosts._hosts import HOSTS, Host
from fetchstash.cli.hosts._register import shown

README = (Path(__file__).parents[3] / "README.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("host", HOSTS.values(), ids=HOSTS)
def test_readme_shows_what_register_does(host: Host) -> None:
    start = ["uvx", "fetchstash"]
    if host.program:
        assert f"\n{' '.join(host.add('fetchstash', start))}\n" in README
        return
    section = README.partition(f"**{host.title}**")[2]
    block = re.search(r"```json\n(.*?)```", section, re.DOTALL)
    assert block
    assert json.loads(block[1]) == json.loads(shown(host, start))
