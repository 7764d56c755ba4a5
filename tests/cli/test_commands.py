"""The command in a process of its own: its stdout, its stderr and its exit code."""

import json
import os
import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest

from fetchstash.config import KEYS, PROFILES
from fetchstash.text.facts import PAGE_VERDICTS
from tests.cli.terminal import Terminal, plain
from tests.loopback import Site

pytestmark = pytest.mark.slow

SHELL = PAGE_VERDICTS["empty_shell"]
EXAMPLES = Path(__file__).parents[2] / "examples"


TEXT = "".join(f"line {n}\n" for n in range(1, 10_001))


def test_json_is_one_object_a_line(run: Terminal, site: Site) -> None:
    ref = run.ref(site.put("/long.txt", TEXT, "text/plain"))
    lines = [(hit["line"], hit["match"]) for hit in run.data("grep", "^line 77$", ref, "-C", "2")]
    assert lines == [(75, False), (76, False), (77, True), (78, False), (79, False)]
    [part] = run.data("slice", ref, "--start", "7", "--end", "7")
    assert part["text"] == "line 7\n"
    assert [facts["artifact_ref"] for facts in run.data("ls")] == [ref]
    assert [facts["outline"] for facts in run.data("info", ref)] == [[]]
    assert [setting["key"] for setting in run.data("config")] == list(KEYS)


def test_a_url_that_fails_is_an_object_in_its_place(run: Terminal, site: Site) -> None:
    urls = [site.url("/none"), site.put("/a.txt", "words", "text/plain")]
    failed, came = run.data("fetch", *urls, code=3)
    assert failed["source_url"] == urls[0]
    assert (failed["error"]["code"], failed["error"]["status"]) == ("http_error", 404)
    assert came["extracted_chars"] == 5
    alone = run("fetch", urls[0], "--json", code=3)
    assert json.loads(alone.stdout) == failed
    assert alone.stderr.startswith("[http_error] ")


@pytest.mark.parametrize("words", ["fetch", "get", "grep x", "slice", "info", "search x --in"])
def test_a_source_that_fails_is_an_error_object_of_every_command_that_prints_data(
    words: str, run: Terminal
) -> None:
    done = run(*words.split(), "@9", "--json", code=3)
    line = "[unknown_ref] There is no @9: nothing is kept yet. `fetchstash ls` lists them."
    error = {"code": "unknown_ref", "line": line}
    assert [json.loads(printed) for printed in done.stdout.splitlines()] == [
        {"source_url": "@9", "error": error}
    ]
    assert done.stderr == f"{line}\n"


@pytest.mark.parametrize(
    "words",
    [
        "ls --max-artifacts=x",
        "gc --max-artifacts=x",
        "stats --max-artifacts=x",
        "config --max-artifacts=x",
        "doctor --max-artifacts=x",
        "token list --max-artifacts=x",
        "token create --tenant A --name x",
        "fetch nothing.txt",
    ],
)
def test_a_command_that_fails_as_a_whole_prints_one_error_object(words: str, run: Terminal) -> None:
    done = run(*words.split(), "--json", code=2)
    (printed,) = map(json.loads, done.stdout.splitlines())
    assert set(printed) == {"error"}
    assert printed["error"]["line"] == done.stderr.strip()
    assert printed["error"]["line"].startswith(f"[{printed['error']['code']}] ")


def test_matches_stand_beside_the_error_of_a_source_that_fails(run: Terminal, site: Site) -> None:
    good, bad = site.put("/a.txt", "words", "text/plain"), site.url("/none?token=abc")
    found, failed = run.data("grep", "w", good, bad, code=3)
    assert (found["text"], failed["error"]["status"]) == ("words", 404)
    assert failed["source_url"].endswith("/none?token=***")


@pytest.mark.long
def test_from_another_folder_it_is_said_what_is_kept_for_others_and_what_lists_it(
    run: Terminal, site: Site
) -> None:
    for number in range(2):
        run("fetch", site.put(f"/{number}", f"text {number}", "text/plain"))
    store, run.folder = run.folder, run.folder / "elsewhere"
    run.folder.mkdir()
    here = f"othing is kept for this folder, {run.folder}; for others 2 artifacts."
    line = f"{here} `fetchstash ls --all-runs` lists all.\n"
    for words in (["ls"], ["ls", "--json"]):
        done = run(*words)
        assert (done.stdout, done.stderr) == ("", f"N{line}")
    assert run("stats").stderr == f"N{line}"
    assert run("search", "text", code=1).stderr == f"N{line}"
    for words in (["get", "@1"], ["info", "@2"], ["rm", "@1"], ["open", "@1"]):
        assert run(*words, code=3).stderr == f"[unknown_ref] There is no {words[1]}: n{line}"
    assert " ".join(plain(run.on_terminal("ls")).split()) == f"N{line}".strip()
    assert len(run("ls", "--all-runs").stdout.splitlines()) == 2
    assert "kept for the run 'x'; for others 2 artifacts" in run("ls", "--run", "x").stderr
    run.folder = store
    assert run("ls").stderr == ""


ADVICE = "A browser could show more: `fetchstash register --browser` adds one"


@pytest.mark.long
@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ("", "it is empty: the server answered 200 OK and sent no content"),
        ("<html><body></body></html>", "the page has no text of its own"),
        (
            "<title>App</title><div id=root></div><script src=a.js></script><script>x()</script>",
            f"{SHELL[:1].lower()}{SHELL[1:]} {ADVICE}",
        ),
    ],
    ids=["empty", "blank", "shell"],
)
def test_a_page_without_text_is_one_line_that_says_why_and_what_to_do(
    body: str, reason: str, run: Terminal, site: Site
) -> None:
    ref = run.ref(site.put("/app.html", body))[4:11]
    why = f"{ref} has no text: {reason}."
    line = f"{why} Try `fetchstash open {ref}` or `fetchstash get {ref} -o app.html --raw`.\n"
    assert run("fetch", ref).stderr == line
    assert run("get", ref, code=3).stderr == f"[no_text] {line}"
    assert run("grep", "x", ref, code=3).stderr == f"[no_text] {line}"
    assert f"\nIt has no text: {reason}.\n" in run("info", ref).stdout
    assert plain(run.on_terminal("fetch", ref)).count(f"{ref} has no text") == 1


def test_the_whole_text_or_the_bytes_go_to_a_file(run: Terminal, site: Site) -> None:
    url = site.put("/a.html", "<h1>Title</h1><p>words</p>")
    run("fetch", url, "-o", "a.md")
    assert (run.folder / "a.md").read_text() == "# Title\n\nwords\n"
    run("get", url, "-o", "a.html", "--raw")
    assert (run.folder / "a.html").read_text() == "<h1>Title</h1><p>words</p>"
    assert "cannot be written" in run("get", url, "-o", "none/a", code=2).stderr


def test_exit_codes_say_what_happened(run: Terminal, site: Site) -> None:
    url = site.put("/a.txt", "words", "text/plain")
    run("fetch", url)
    assert run("grep", "nothing", url, code=1).stdout == ""
    run("search", "nothing", code=1)
    assert run("grep", code=2).stdout == ""
    for wrong in ("5", "many"):
        told = run("get", url, "--max-chars", wrong, code=2).stderr
        assert (
            f"{wrong} is no whole number, 200 or more. Write one such as --max-chars 200." in told
        )
    assert "[refused] " in run("fetch", "http://127.0.0.2/", code=3).stderr
    assert "[unknown_ref] " in run("get", "art_" + "a" * 26, code=3).stderr
    assert "[http_error] " in (told := run("fetch", site.url("/none"), code=3).stderr)
    assert told.splitlines()[1:] == ["The answer begins: not here"]
    assert "No such command" in run("fetsh", code=2).stderr


def test_a_wrong_setting_is_reported_before_any_work(run: Terminal) -> None:
    run.env["FETCHSTASH_FETCH_PORT"] = "1"
    done = run("ls", code=2)
    assert done.stderr == (
        "[bad_argument] The environment variable FETCHSTASH_FETCH_PORT is no setting. Did you "
        "mean FETCHSTASH_FETCH_PORTS?\n"
    )
    assert done.stdout == ""


@pytest.mark.long
def test_pin_rm_and_gc_say_what_they_do(run: Terminal, site: Site) -> None:
    refs = [run.ref(site.put(f"/{n}", f"text {n}", "text/plain")) for n in (1, 2)]
    run("pin", refs[0])
    removed = run.data("gc", "--dry-run", "--max-artifacts", "1")
    assert run("gc", "--dry-run").stdout == ""
    assert refs[0] not in [item["artifact_ref"] for item in removed]
    run("rm", refs[1])
    assert "[unknown_ref] " in run("info", refs[1], code=3).stderr
    run("info", refs[0])


def test_config_says_where_each_value_came_from_and_prints_an_example(run: Terminal) -> None:
    (run.folder / "fetchstash").mkdir()
    (run.folder / "fetchstash" / "fetchstash.toml").write_text("[views]\npreview_chars = 500\n")
    shown = run("config", "--profile", "codex").stdout
    assert "views.max_chars_ceiling" in shown
    assert "views.max_chars_ceiling\t38000\tprofile codex\n" in shown
    assert 'fetch.browser\t["auto"]\tdefault\n' in shown
    assert "views.structured\tfalse\tdefault\n" in shown
    assert f"\t500\tfile {run.folder / 'fetchstash' / 'fetchstash.toml'}\n" in shown
    assert "\tenvironment variable FETCHSTASH_STORE_FOLDER\n" in shown
    example = run("config", "--example").stdout
    assert tomllib.loads(example) == {key.section: {} for key in KEYS.values()}
    lines = (
        line.removeprefix("# ") if " = " in line or line.startswith("# [") else line
        for line in example.splitlines()
    )
    told = tomllib.loads("\n".join(lines))
    assert set(told["context"].pop("truncation")) == {"default", "sql_query", "log_search"}
    assert told["fetch"].pop("headers")
    assert told.pop("tenants")
    assert {f"{section}.{name}" for section, values in told.items() for name in values} == set(KEYS)


@pytest.mark.long
def test_doctor_finds_an_altered_file_and_mends_what_can_be_mended(
    run: Terminal, site: Site
) -> None:
    (run.folder / "file").write_text("in the way")
    store = run.folder / "file" / "store"
    lines = run("doctor", "--folder", str(store), code=3).stdout.splitlines()
    (fault,) = [line for line in lines if line.startswith("fault")]
    assert fault.startswith(f"fault    store {store}: nothing can be made in {store.parent}. Give ")
    (facts,) = run.data("fetch", site.put("/a.txt", "words", "text/plain"))
    lines = run("doctor", "--profile", "codex").stdout.splitlines()
    assert all(not line.startswith(("fault", "warning")) for line in lines)
    assert lines[-1] == "All is well."
    assert sum("profile " in line for line in lines) == len(PROFILES)
    assert (
        "profile codex, in force: texts up to 30,000 bytes come whole, 38,000 at the most"
        in "\n".join(lines)
    )
    Path(facts["path"]).chmod(0o600)
    Path(facts["path"]).write_text("others")
    folder = str(Path(facts["path"]).parents[1])
    done = run("doctor", "--folder", folder, code=3)
    fault = next(line for line in done.stdout.splitlines() if line.startswith("fault "))
    assert fault.startswith("fault    store: ")
    assert f"To mend that, run `fetchstash doctor --repair --folder {folder}`." in fault
    assert done.stdout.splitlines()[-1] == f"To do first: {fault[9:]}"
    assert {row["level"] for row in run.data("doctor", code=3)} >= {"ok", "fault"}
    run("doctor", "--repair", code=0)
    run("doctor")


def test_doctor_lists_plugins(run: Terminal, install_plugin: Callable[[str, str], None]) -> None:
    install_plugin("fetchstash-po", (EXAMPLES / "po_handler" / "fetchstash_po.py").read_text())
    install_plugin("not-named", "")
    install_plugin("broken", "import no_such_library")
    run.env["PYTHONPATH"] = os.environ["PYTHONPATH"]
    run.env["FETCHSTASH_EXTRACT_PLUGINS"] = "fetchstash-po,broken"
    lines = run("doctor", code=3).stdout
    assert "plugin fetchstash-po: it reads translation\n" in lines
    assert "plugin not-named: installed, and not enabled" in lines
    assert "plugin broken: ModuleNotFoundError: No module named 'no_such_library'" in lines


def test_stats_sum_up_by_kind_and_host(run: Terminal, site: Site) -> None:
    run.env["FETCHSTASH_TELEMETRY_EVENT_LOG"] = str(run.folder / "events.jsonl")
    page = site.put("/b.html", "<h1>Title</h1><p>words</p>")
    run("fetch", site.put("/a.txt", TEXT, "text/plain"), page)
    out = run("stats").stdout
    assert all(name in out for name in ("text", "html", "127.0.0.1"))
    call = {"time": "2026-11-23T10:00:00+00:00", "run": "default", "tool": "artifact_grep"}
    calls = Path(run.env["FETCHSTASH_STORE_FOLDER"]) / "calls.jsonl"
    calls.write_text("".join(f"{json.dumps({**call, **more})}\n" for more in ({}, {"ms": 1_400.2})))
    assert "artifact_grep      2      0  1.4 s" in run("stats", "--all-runs").stdout
    rows = run.data("stats", "--all-runs")
    [tool] = [row for row in rows if row["group"] == "tool"]
    assert (tool["name"], tool["calls"], tool["ms"]) == ("artifact_grep", 2, 1_400.2)
    kinds = {row["name"]: row["artifacts"] for row in rows if row["group"] == "kind"}
    assert kinds == {"text": 1, "html": 1}
    assert rows[-1]["tokens"] > 20_000
    log = (run.folder / "events.jsonl").read_text()
    names = {json.loads(line)["name"] for line in log.splitlines()}
    assert names >= {"ingest.decision", "bytes_in", "extracted_chars", "cache"}
    assert "line 77" not in log


def test_trace_says_of_each_sentence_what_supports_it(
    run: Terminal, site: Site, tmp_path: Path
) -> None:
    url = site.put("/tower.txt", "The old tower was built in 1807.\n", "text/plain")
    run("fetch", url)
    answer = tmp_path / "answer.md"
    answer.write_text("The tower was built in 1807. The tower was built in 1907.\n")
    good, bad = run.data("trace", str(answer), code=1)
    assert (good["is_supported"], good["passage"]["url"]) == (True, url)
    assert (bad["is_supported"], bad["missing"]) == (False, ["1907"])
    shown = run("trace", str(answer), code=1).stdout
    assert "The nearest passage lacks: 1907" in shown
    assert "No call showed it." in shown
