"""The command ``store``, and what doctor says of a bucket."""

import json
from pathlib import Path

import pytest

from tests.cli.terminal import Terminal

pytestmark = pytest.mark.slow


def test_rules_are_printed_with_the_command_that_applies_them(
    run: Terminal, tmp_path: Path
) -> None:
    settings = tmp_path / "settings.toml"
    settings.write_text("[tenants.acme.store]\nmax_age_days = 30\n")
    done = run("store", "init", "--url", "gs://bucket/team", "--config", str(settings))
    rules = json.loads(done.stdout)["lifecycle"]["rule"]
    days = {rule["condition"]["matchesPrefix"][0]: rule["condition"]["age"] for rule in rules[::2]}
    # As long as the tenant that keeps artifacts longest.
    assert days == {"team/blobs/": 39, "team/records/": 32, "team/urls/": 32}
    assert "gcloud storage buckets update gs://bucket" in done.stderr


def test_a_store_that_is_no_bucket_has_no_rules(run: Terminal) -> None:
    assert run("store", "init", code=2).stderr.startswith("[bad_argument] ")


def test_doctor_says_what_keeps_a_bucket_from_being_used(run: Terminal) -> None:
    pytest.importorskip("obstore", reason="obstore is in the extra team")
    words = ["--url", "s3://bucket/team", "--endpoint", "http://127.0.0.1:9", "--json"]
    run.env |= {"AWS_ACCESS_KEY_ID": "AKIAEXAMPLE", "AWS_SECRET_ACCESS_KEY": "secret-of-the-test"}
    done = run("doctor", *words, code=3)
    (fault,) = [
        line for line in map(json.loads, done.stdout.splitlines()) if line["level"] == "fault"
    ]
    assert fault["what"] == "store: The bucket does not answer."
    assert "secret-of-the-test" not in done.stdout + done.stderr
