"""What commands ask of a bucket."""

from pathlib import Path

import pytest
from click.testing import CliRunner

from fetchstash.cli import commands
from tests.store.buckets import every_bucket_is, new_objects

pytestmark = pytest.mark.slow

LINES = 400_000


@pytest.mark.parametrize("command", [["grep", "line 399999"], ["get"]])
def test_a_whole_text_is_opened_once_and_read_ahead(command: list[str], tmp_path: Path) -> None:
    objects = new_objects()
    document = tmp_path / "document.txt"
    document.write_text("".join(f"line {n}\n" for n in range(LINES)))
    with every_bucket_is(objects):
        place = ["--url", "s3://bucket", "--run", "default", "--folder"]
        words = ["fetch", str(document), *place, str(tmp_path / "a")]
        assert CliRunner().invoke(commands, words).exit_code == 0
        for most in (6, 0):  # the second time all of it is here
            objects.requests.clear()
            done = CliRunner().invoke(commands, [*command, "@1", *place, str(tmp_path / "b")])
            assert done.output.endswith("line 399999\n")
            assert objects.names().count("get_range") <= most
