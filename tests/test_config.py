"""Settings: where a value comes from, and what a wrong one gets."""

from pathlib import Path
from typing import Any

import pytest

from fetchstash.config import KEYS, PROFILES, load
from fetchstash.errors import BadArgument
from fetchstash.store import StoreLimits, store_of_tenant
from fetchstash.text import Truncation

pytestmark = pytest.mark.whole


def settings_file(folder: Path, text: str) -> Path:
    path = folder / "fetchstash.toml"
    path.write_text(text)
    return path


@pytest.fixture(autouse=True)
def no_user_file(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "none"))
    monkeypatch.setenv("HOME", str(tmp_path / "none"))


def test_an_argument_wins_over_the_environment_the_file_the_profile_and_the_default(
    tmp_path: Path,
) -> None:
    file = settings_file(
        tmp_path,
        "[views]\nmax_chars_ceiling = 3000\npreview_chars = 300\nprofile = 'codex'\n"
        "inline_threshold = 900\n",
    )
    environment = {
        "FETCHSTASH_VIEWS_MAX_CHARS_CEILING": "2000",
        "FETCHSTASH_VIEWS_PREVIEW_CHARS": "200",
    }
    settings = load({"views.max_chars_ceiling": "1000"}, environment, file)
    assert settings.views.max_chars_ceiling == 1_000
    assert settings.views.preview_chars == 200
    assert settings.views.inline_threshold == 900
    assert settings.views.default_max_chars == 30_000
    assert settings.origins["views.max_chars_ceiling"] == "argument"
    assert (
        settings.origins["views.preview_chars"]
        == "environment variable FETCHSTASH_VIEWS_PREVIEW_CHARS"
    )
    assert settings.origins["views.inline_threshold"] == f"file {file}"
    assert settings.origins["views.default_max_chars"] == "default"


@pytest.mark.parametrize("profile", PROFILES)
def test_a_profile_sets_the_limits_of_its_host(profile: str) -> None:
    views = load(environment={"FETCHSTASH_VIEWS_PROFILE": profile}).views
    ceilings = {"vscode": 6_800, "copilot": 6_800, "codex": 38_000, "gemini": 38_000}
    assert views.max_chars_ceiling == ceilings.get(profile, 100_000)
    assert views.count_bytes is (profile in {"vscode", "copilot", "codex"})


def test_lists_are_parted_by_commas_in_the_environment() -> None:
    settings = load(
        environment={
            "FETCHSTASH_FETCH_PORTS": "80, 9000",
            "FETCHSTASH_FETCH_ALLOW_HOSTS": "[::1]:8080,intra",
        }
    )
    assert settings.fetch.ports == (80, 9_000)
    assert settings.fetch.allow_hosts == ("[::1]:8080", "intra")


def test_the_working_directory_is_never_searched(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings_file(tmp_path, "[fetch]\nallow_nets = ['0.0.0.0/0']\n")
    monkeypatch.chdir(tmp_path)
    assert load().fetch.allow_nets == ()


def test_the_file_of_the_users_configuration_folder_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import platformdirs

    def folder(*_: Any, **__: Any) -> Path:
        return tmp_path

    monkeypatch.setattr(platformdirs, "user_config_path", folder)
    settings_file(tmp_path, "[store]\nmax_age_days = 1.5\n")
    assert load().store.max_age_days == 1.5


WRONG = {
    "unknown variable": (
        {"FETCHSTASH_FETCH_PORT": "1"},
        "FETCHSTASH_FETCH_PORT is no setting. Did you mean FETCHSTASH_FETCH_PORTS?",
    ),
    "near none": (
        {"FETCHSTASH_FOO": "1"},
        "is no setting. Check its name in docs/configuration.md.",
    ),
    "no port": (
        {"FETCHSTASH_FETCH_PORTS": ""},
        "is empty (environment variable FETCHSTASH_FETCH_PORTS). Name one or more, such as 80, ",
    ),
    "not a number": (
        {"FETCHSTASH_FETCH_PORTS": "a"},
        "fetch.ports is ['a'] (environment variable FETCHSTASH_FETCH_PORTS).",
    ),
    "out of bounds": (
        {"FETCHSTASH_FETCH_PORTS": "70000"},
        "It must be a list, each item a whole number, 1 to 65,535.",
    ),
    "above the ceiling": (
        {"FETCHSTASH_VIEWS_MAX_CHARS_CEILING": "100001"},
        "It must be a whole number, 200 to 100,000.",
    ),
    "not a number at all": (
        {"FETCHSTASH_STORE_MAX_AGE_DAYS": "nan"},
        "It must be a number, 0 or more.",
    ),
    "no boolean": ({"FETCHSTASH_STORE_EPHEMERAL": "maybe"}, "It must be true or false."),
    "no choice": ({"FETCHSTASH_VIEWS_PROFILE": "vscod"}, "Did you mean vscode?"),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_variable_is_one_clear_line(name: str) -> None:
    environment, words = WRONG[name]
    with pytest.raises(BadArgument) as error:
        load(environment=environment)
    assert words in error.value.line()
    assert "\n" not in error.value.line()


WRONG_FILES = {
    "unknown key": ("[fetch]\nport = [80]\n", "There is no setting 'fetch.port'"),
    "unknown section": (
        "[fetsh]\nports = [80]\n",
        "has an unknown section 'fetsh'. Did you mean fetch?",
    ),
    "key outside a section": ("ports = [80]\n", "has an unknown section 'ports'"),
    "a section that is no table": ("fetch = 3\n", "'fetch' is a section, not a setting (file"),
    "no TOML": ("[fetch\n", "is not TOML"),
    "a string for a list": ("[fetch]\nports = '80'\n", "fetch.ports is '80' (file"),
    "a float for a whole number": (
        "[fetch]\nmax_redirects = 1.5\n",
        "It must be a whole number, 0 to 50.",
    ),
    "an unknown key of a profile": (
        "[context.truncation.a]\nlines = 1\n",
        "There is no setting 'context.truncation.a.lines'",
    ),
    "a profile that is no table": ("[context]\ntruncation = 3\n", "context.truncation is 3"),
    "a profile's text for a number": (
        "[context.truncation.a]\nthreshold = 'x'\n",
        "context.truncation.a.threshold is 'x'",
    ),
    "a tenant of no name": ("[tenants.A_1.quota]\n", "'tenants.A_1' is no name of a tenant"),
    "a tenant that is no table": ("[tenants]\nacme = 1\n", "tenants.acme is no table"),
    "tenants that are no tables": ("tenants = 1\n", "It must be tables: [tenants.NAME]."),
    "an unknown section of a tenant": (
        "[tenants.acme.quotas]\n",
        "There is no table [tenants.acme.quotas]",
    ),
    "an unknown setting of a tenant": (
        "[tenants.acme.quota]\nrequest_per_minute = 1\n",
        "There is no setting 'tenants.acme.quota.request_per_minute'",
    ),
    "a setting that no tenant has of its own": (
        "[tenants.acme.store]\nfolder = '/tmp'\n",
        "tenants.acme.store.folder cannot be set for one tenant",
    ),
    "a question of one tenant": (
        "[tenants.acme.fetch]\nask = true\n",
        "tenants.acme.fetch.ask cannot be set for one tenant",
    ),
    "a tenant's text for a number": (
        "[tenants.acme.quota]\nartifacts = 'x'\n",
        "tenants.acme.quota.artifacts is 'x'",
    ),
    "a tenant's header that is no text": (
        "[tenants.acme.fetch.headers.'https://a.example']\nx = 1\n",
        'tenants.acme: fetch.headers."https://a.example".x is no text',
    ),
    "a whole number for a boolean": ("[store]\nephemeral = 7\n", "It must be true or false."),
}


@pytest.mark.parametrize("name", WRONG_FILES)
def test_a_wrong_file_is_one_clear_line(name: str, tmp_path: Path) -> None:
    text, words = WRONG_FILES[name]
    with pytest.raises(BadArgument) as error:
        load(file=settings_file(tmp_path, text))
    assert words in error.value.line()


def test_the_profiles_of_context_result_come_from_the_file_alone(tmp_path: Path) -> None:
    text = "[context]\nmax_lines = 9\n[context.truncation]\n"
    text += "sql_query = {threshold = 1}\nmine = {max_preview_tokens = 7}\n"
    settings = load(file=settings_file(tmp_path, text))
    assert settings.context.max_lines == 9
    assert settings.truncation["sql_query"] == Truncation(1, 1_000, rows_head=30, rows_tail=10)
    assert settings.truncation["mine"] == Truncation(5_000, 7)
    assert settings.truncation["default"] == Truncation()


def test_the_clients_settings_make_its_policy() -> None:
    settings = load(
        environment={
            "FETCHSTASH_CLIENT_COMPACTION_MODE": "legacy",
            "FETCHSTASH_CLIENT_HISTORY_MAX_TOKENS": "9",
        }
    )
    assert settings.client.compaction_mode == "legacy"
    assert settings.client.oversized_fraction == 0.30
    assert settings.history.max_tokens == 9
    assert settings.history.target_tokens == 40_000


def test_a_file_in_another_encoding_is_said_to_be_that(tmp_path: Path) -> None:
    file = tmp_path / "fetchstash.toml"
    file.write_text("[views]\npreview_chars = 500\n", encoding="utf-16")
    with pytest.raises(BadArgument, match=r"toml is not UTF-8\. Save it in that encoding\.$"):
        load(file=file, environment={})


def test_a_byte_order_mark_of_an_editor_is_no_fault(tmp_path: Path) -> None:
    file = tmp_path / "fetchstash.toml"
    file.write_text("[views]\npreview_chars = 500\n", encoding="utf-8-sig")
    assert load(file=file, environment={}).views.preview_chars == 500


def test_a_section_handed_in_as_a_mapping_is_said_to_be_a_section() -> None:
    with pytest.raises(BadArgument, match=r"'fetch' is a section.* as 'fetch\.NAME'"):
        load({"fetch": {"allow_hosts": ["localhost"]}}, environment={})


def test_a_file_that_was_named_must_be_there(tmp_path: Path) -> None:
    with pytest.raises(BadArgument, match="There is no settings file"):
        load(environment={"FETCHSTASH_CONFIG": str(tmp_path / "none.toml")})


def test_every_setting_has_a_meaning_and_its_own_flag() -> None:
    flags = [key.flag for key in KEYS.values() if key.flag]
    assert len(flags) == len(set(flags))
    assert KEYS["fetch.ports"].flag == "fetch-port"
    assert KEYS["fetch.allow_hosts"].flag == "allow-host"
    assert KEYS["extract.memory_mb"].flag is None
    assert all(key.meaning for key in KEYS.values())


def test_a_stores_url_overrides_a_folder_of_a_weaker_source(tmp_path: Path) -> None:
    environment = {"FETCHSTASH_STORE_FOLDER": str(tmp_path)}
    assert load({"store.url": "memory:"}, environment).store.url == "memory:"
    other = {"FETCHSTASH_STORE_URL": "memory:"}
    assert load({"store.folder": str(tmp_path)}, other).store.url == ""
    with pytest.raises(BadArgument, match=r"Both .* are set"):
        load({}, environment | other)


def test_a_tenant_has_its_own_values_in_a_place_of_its_own(tmp_path: Path) -> None:
    text = """
        [fetch]
        deny_domains = ["bad.example"]
        allow_hosts = ["wiki.internal"]
        [fetch.headers."https://api.example"]
        authorization = "of all"
        [store]
        folder = "/srv/stash"
        [ingest]
        read_roots = ["/srv"]
        [telemetry]
        event_log = "/var/log/stash.jsonl"
        [tenants.acme.fetch]
        deny_domains = ["rival.example"]
        allow_hosts = ["crm.internal"]
        [tenants.acme.fetch.headers."https://api.example"]
        authorization = "env:ACME"
        [tenants.acme.quota]
        requests_per_minute = 7
    """
    settings = load(environment={"ACME": "of acme"}, file=settings_file(tmp_path, text))
    acme, other = settings.for_tenant("acme"), settings.for_tenant("other")
    assert set(acme.fetch.deny_domains) == {"bad.example", "rival.example"}
    assert other.fetch.deny_domains == ("bad.example",)
    assert (acme.fetch.allow_hosts, other.fetch.allow_hosts) == (
        ("crm.internal",),
        ("wiki.internal",),
    )
    origin = "https://api.example"
    assert acme.fetch.headers[origin] == {"authorization": "of acme"}
    assert other.fetch.headers[origin] == {"authorization": "of all"}
    assert (acme.quota.requests_per_minute, other.quota.requests_per_minute) == (7, 3_000)
    for name, of_tenant in (("acme", acme), ("other", other)):
        assert of_tenant.store.folder == Path(f"/srv/stash/tenants/{name}")
        assert of_tenant.telemetry.event_log == f"/var/log/tenants/{name}/stash.jsonl"
        assert not of_tenant.fetch.ask
        assert of_tenant.ingest.read_roots == ()
        assert of_tenant.store.run == "*"


@pytest.mark.parametrize(
    ("url", "of_tenant"),
    [
        ("memory:", "memory:"),
        ("s3://bucket/prefix/", "s3://bucket/prefix/tenants/acme"),
        ("gs://bucket", "gs://bucket/tenants/acme"),
    ],
)
def test_a_tenants_store_lies_under_the_store_of_all(url: str, of_tenant: str) -> None:
    assert store_of_tenant(StoreLimits(Path(), url), "acme").url == of_tenant


def test_no_header_of_a_tenant_is_shown(tmp_path: Path) -> None:
    text = "[tenants.acme.fetch.headers.'https://a.example']\nx = 'secret'\n"
    settings = load(file=settings_file(tmp_path, text))
    assert "secret" not in repr(settings.tenants)


def test_a_bucket_has_a_folder_for_its_cache(tmp_path: Path) -> None:
    environment = {"FETCHSTASH_STORE_FOLDER": str(tmp_path)}
    store = load({"store.url": "s3://bucket/prefix"}, environment).store
    assert (store.url, store.folder) == ("s3://bucket/prefix", tmp_path)
    assert "cache" in load({"store.url": "s3://bucket"}).store.folder.as_posix().lower()


@pytest.mark.parametrize(
    ("value", "header"),
    [
        ("env:TOKEN", "t0ken"),
        ("Bearer env:TOKEN", "Bearer t0ken"),
        ("sent as env:TOKEN", "sent as env:TOKEN"),
    ],
)
def test_a_header_may_name_its_scheme_before_the_variable_of_its_token(
    value: str, header: str, tmp_path: Path
) -> None:
    file = settings_file(
        tmp_path, f'[fetch.headers."https://a.example"]\nauthorization = "{value}"'
    )
    settings = load(environment={"TOKEN": "t0ken"}, file=file)
    assert settings.fetch.headers["https://a.example"] == {"authorization": header}
    if value != header:
        with pytest.raises(BadArgument, match="variable TOKEN, which is not set"):
            load(environment={}, file=file)
