"""Fetch where every address answers: what is refused gets no packet, what is allowed comes."""

import json
import os
from pathlib import Path
from urllib.parse import quote

import pytest

from tests.fetch.lab import FOLLOWED, WAYS, Row, is_safe, leaks, run_lab, why_no_lab

NO_LAB = why_no_lab()
pytestmark = [
    pytest.mark.skipif(bool(NO_LAB), reason=f"no network namespace here: {NO_LAB}"),
    pytest.mark.long,
]

BLOCKED = [
    "http://10.0.0.1/",
    "http://127.0.0.1/",
    "http://169.254.169.254/latest/meta-data/",
    "http://168.63.129.16/",
    "http://[::1]/",
    "http://[::ffff:10.0.0.1]/",
    "http://[64:ff9b::a00:1]/",
    "http://[2002:7f00:1::]/",
    "http://[fe80::1]/",
    "http://0.0.0.0/",
    "http://0x7f000001/",
    "http://127.1/",
    "http://①②⑦.⓪.⓪.①/",
    "http://example.com:22/",
    "http://example.com:2375/",
    "http://localhost/",
    "http://ip6-localhost/",
    "http://metadata.google.internal/",
    "http://kubernetes.default.svc/",
    "http://10.0.0.1.nip.io/",
    "https://127.0.0.1.sslip.io/",
    "http://x.mixed.test/",
    "http://user@10.0.0.1/",
    "http://twisted.test/",
]
ALLOWED = [
    "http://example.com/",
    "https://example.com/",
    "https://example.com:8443/",
    "http://8.8.8.8/",
    "https://8.8.4.4/",
    "http://[2606:4700:4700::1111]/",
    "https://[2606:4700:4700::1111]/",
    "http://dual.test/",
    "https://bücher.example/",
    "https://example.com./",
    "http://8.8.8.8.nip.io/",
    "http://six.test/",
]
NAMES = {"twisted.test": ["::ffff:169.254.169.254"], "six.test": ["2606:4700::1111"]}


def row(url: str, expected: str, **more: object) -> Row:
    return {"id": url, "url": url, "expected": expected, "dns": NAMES, **more}


def test_no_packet_goes_to_a_forbidden_address_and_every_good_url_is_fetched() -> None:
    rows = [row(url, "block") for url in BLOCKED] + [row(url, "allow") for url in ALLOWED]
    rows += [
        row(url, "block", via="redirect")
        for url in ("http://10.0.0.1/", "//[::1]/", "http://localhost/", "gopher://127.0.0.1/")
    ]
    rows += [row(url, "allow", via="redirect") for url in ("https://public2.test/", "/relative")]
    results = run_lab(rows)
    assert [
        (row["id"], result)
        for row, result in zip(rows, results, strict=True)
        if not is_safe(row, result)
    ] == []


@pytest.mark.skipif("SSRF_VECTORS" not in os.environ, reason="SSRF_VECTORS names no corpus")
@pytest.mark.parametrize("way", ["", *WAYS])
def test_no_url_of_a_corpus_leads_inside(way: str) -> None:
    lines = Path(os.environ["SSRF_VECTORS"]).read_text(encoding="utf-8").splitlines()
    rows = [json.loads(line) for line in lines]
    rows = [{**row, "via": way} for row in rows if row.get("via") != "redirect"] if way else rows
    results = list(zip(rows, run_lab(rows), strict=True))
    # What is a choice of policy may be fetched or not; inside it must not lead.
    choice = ("policy_choice", True)
    assert [
        (row["id"], result)
        for row, result in results
        if leaks(result) or not (choice in row.items() or is_safe(row, result))
    ] == []


def test_no_way_to_name_an_address_leads_inside() -> None:
    inside = ("http://10.0.0.1/", "http://[::1]/", "http://127.1/x", "http://x.mixed.test/a")
    rows = [row(url, "block", via=way) for way in WAYS for url in inside]
    rows += [row("http://public2.test/there", "allow", via=way) for way in WAYS]
    results = list(zip(rows, run_lab(rows), strict=True))
    assert [(row["via"], result) for row, result in results if not is_safe(row, result)] == []
    assert {row["via"] for row, result in results if result["fetched"]} == FOLLOWED


def test_a_name_that_turns_inside_after_its_first_answer_never_leads_inside() -> None:
    rows = [
        row(
            f"http://r{number}{robots}.{zone}/".lower(),
            "block",
            category="rebinding",
            limits={"respect_robots": robots},
        )
        for number in range(10)
        for zone in ("rebind.test", "rebindmeta.test")
        for robots in (True, False)
    ]
    results = run_lab(rows)
    assert [result for result in results if leaks(result)] == []
    assert any(result["fetched"] for result in results)


def test_the_lab_sees_a_guard_that_lets_everything_through() -> None:
    (result,) = run_lab([row("http://10.0.0.1/", "block", limits={"allow_nets": ["0.0.0.0/0"]})])
    assert result["fetched"] == "10.0.0.1 80"
    assert leaks(result) == ["10.0.0.1 80"]


def test_the_machine_s_own_addresses_and_neighbours_are_refused_however_public_they_are() -> None:
    rows = [
        row("http://44.1.2.3/", "block", own=["44.1.2.3/24", "2606:4700:44::3/64"]),
        row("http://44.1.2.99/", "block"),
        row("http://[2606:4700:44::3]/", "block"),
        row("http://[2606:4700:44::99]/", "block"),
        row("http://44.1.3.1/", "allow"),
        row("http://[2606:4700:45::1]/", "allow"),
    ]
    results = run_lab(rows)
    for fact in ("dialled", "fetched"):
        assert [bool(result[fact]) for result in results] == [False] * 4 + [True] * 2


def test_a_proxy_is_asked_for_the_vetted_address_and_for_nothing_else() -> None:
    proxy = {"proxy": "http://joe:s3cret@10.9.9.9:3128"}
    good, inside = run_lab(
        [
            row("http://example.com/", "allow", limits=proxy),
            row("http://10.0.0.1.nip.io/", "block", limits=proxy),
        ]
    )
    assert good["dialled"] == ["10.9.9.9 3128"]
    assert good["tunnels"] == ["CONNECT 93.184.216.34:80 HTTP/1.1"]
    assert inside["dialled"] == []
    assert "s3cret" not in str([good, inside])


def test_twenty_names_without_an_answer_delay_no_other_fetch() -> None:
    stuck = [f"http://n{number}.blackhole.test/" for number in range(20)]
    (result,) = run_lab([row("http://example.com/", "allow", beside=stuck)])
    # Without a thread of its own it would wait for the name server, and miss its deadline.
    assert result["fetched"]


def test_the_lab_redirects_to_the_url_unchanged() -> None:
    (result,) = run_lab([row("/a?b=" + quote("ü"), "allow", via="redirect")])
    assert result["final_url"] == "http://public.test/a?b=%C3%BC"
