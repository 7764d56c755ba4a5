"""The files of deploy/ name what exists, and keep what they promise."""

import ipaddress
import json
import math
import re
import shlex
from collections.abc import Iterator
from itertools import combinations
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
import yaml

from fetchstash.cli import main
from fetchstash.config import KEYS, HttpLimits, Settings, load
from fetchstash.service._serve import check_tenants
from fetchstash.store import bucket_url

ROOT = Path(__file__).parents[1]
DEPLOY = ROOT / "deploy"
DOCS = "".join(page.read_text(encoding="utf-8") for page in (ROOT / "docs").glob("*.md"))
ROWS = re.findall(r"^\| `(\w+)` \| (counter|gauge|histogram|info) \| (.*?) \|", DOCS, re.MULTILINE)
LABELS = {name: set(re.findall(r"`(\w+)`", labels)) for name, _, labels in ROWS}
HISTOGRAMS = {name for name, kind, _ in ROWS if kind == "histogram"}
OTHERS = {"up"}  # of Prometheus itself
# Added by Prometheus, or by the query.
ANYWHERE = {"job", "instance", "le"}


def dashboard() -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads((DEPLOY / "grafana.json").read_text(encoding="utf-8"))
    return loaded


def panels() -> list[dict[str, Any]]:
    listed: list[dict[str, Any]] = dashboard()["panels"]
    return listed


def queries() -> Iterator[str]:
    for panel in panels():
        yield from (target["expr"] for target in panel.get("targets", ()))
    for variable in dashboard()["templating"]["list"]:
        if variable["type"] == "query":
            selector = re.fullmatch(r"label_values\((.+), (\w+)\)", variable["definition"])
            assert selector
            yield selector[1]
    rules = yaml.safe_load((DEPLOY / "alerts.yaml").read_text(encoding="utf-8"))
    yield from (rule["expr"] for group in rules["groups"] for rule in group["rules"])


@pytest.mark.parametrize("query", list(queries()))
def test_queries_name_metrics_and_labels_that_are_documented(query: str) -> None:
    ungrouped = re.sub(r"by \([^)]*\)", "", query)
    names = re.findall(r"\b((?:http|mcp|fetchstash|target|process|up)(?:_\w+)?)[{)\s\[]", ungrouped)
    assert names
    known = ANYWHERE.copy()
    for name in names:
        base = re.sub(r"_(bucket|count|sum)$", "", name)
        assert (base in HISTOGRAMS) == (base != name), f"{name} is no series of ours"
        assert base in LABELS or name in OTHERS, name
        known |= LABELS.get(base, set())
    matched = re.findall(r"[{,]\s*(\w+)\s*(?:=~|!=|!~|=)", query)
    grouped = [
        label for labels in re.findall(r"by \(([^)]*)\)", query) for label in labels.split(",")
    ]
    assert {*matched, *map(str.strip, grouped)} <= known


def test_the_dashboard_has_what_grafana_needs() -> None:
    board = dashboard()
    assert set(board) >= {"uid", "title", "schemaVersion", "panels", "templating", "time"}
    assert re.fullmatch(r"[A-Za-z0-9_-]{1,40}", board["uid"])
    ids = [panel["id"] for panel in panels()]
    assert len(set(ids)) == len(ids)
    for panel in panels():
        place = panel["gridPos"]
        assert 0 <= place["x"] < place["x"] + place["w"] <= 24
        if panel["type"] == "row":
            continue
        assert panel["type"] in ("timeseries", "stat")
        assert panel["datasource"] == {"type": "prometheus", "uid": "${datasource}"}
        refs = [target["refId"] for target in panel["targets"]]
        assert refs == sorted(set(refs))
    for one, other in combinations([panel["gridPos"] for panel in panels()], 2):
        apart = (
            one["x"] + one["w"] <= other["x"]
            or other["x"] + other["w"] <= one["x"]
            or one["y"] + one["h"] <= other["y"]
            or other["y"] + other["h"] <= one["y"]
        )
        assert apart
    variables = {variable["name"] for variable in board["templating"]["list"]}
    used = set(re.findall(r"\$\{?(\w+)", json.dumps(board["panels"])))
    assert used - {"__rate_interval"} <= variables


def test_each_alert_has_a_heading_that_says_what_to_do() -> None:
    rules = yaml.safe_load((DEPLOY / "alerts.yaml").read_text(encoding="utf-8"))
    alerts = {rule["alert"] for group in rules["groups"] for rule in group["rules"]}
    assert set(re.findall(r"^\| `(Fetchstash\w+)` \|", DOCS, re.MULTILINE)) == alerts


def unit() -> dict[str, list[str]]:
    """Return the directives of the systemd unit; one may stand more than once."""
    directives: dict[str, list[str]] = {}
    for line in (DEPLOY / "fetchstash.service").read_text(encoding="utf-8").splitlines():
        name, equals, value = line.partition("=")
        if equals and not line.startswith(("#", ";")):
            directives.setdefault(name, []).append(value)
    return directives


def test_the_unit_takes_away_what_the_service_does_not_need_and_leaves_what_workers_need() -> None:
    directives = unit()
    switched_on = {name for name, values in directives.items() if values == ["yes"]}
    assert switched_on >= {
        "NoNewPrivileges",
        "ProtectHome",
        "PrivateTmp",
        "PrivateDevices",
        "PrivateUsers",
        "ProtectKernelTunables",
        "ProtectKernelModules",
        "ProtectKernelLogs",
        "ProtectClock",
        "ProtectControlGroups",
        "ProtectHostname",
        "RestrictNamespaces",
        "RestrictRealtime",
        "RestrictSUIDSGID",
        "LockPersonality",
        "MemoryDenyWriteExecute",
    }
    assert directives["ProtectSystem"] == ["strict"]
    assert directives["CapabilityBoundingSet"] == [""]
    assert directives["User"] == ["fetchstash"]
    allowed = " ".join(directives["SystemCallFilter"]).split()
    confinement = {
        "landlock_create_ruleset",
        "landlock_add_rule",
        "landlock_restrict_self",
        "seccomp",
        "setpriority",
    }
    assert confinement <= set(allowed)
    assert int(directives["TimeoutStopSec"][0]) > HttpLimits().grace_seconds


def test_the_unit_and_the_containers_start_the_service_with_arguments_that_exist() -> None:
    command = shlex.split(unit()["ExecStart"][0])
    compose = service_of_compose()["command"]
    pod = container()["args"]
    team = compose_of_team()["services"]
    for arguments in (
        *(command[1:], compose, pod),
        *(team[name]["command"] for name in ("fetchstash", "first-token")),
    ):
        with pytest.raises(SystemExit) as ended:
            main([*arguments, "--help"])
        assert not ended.value.code


def test_the_settings_file_is_valid_and_writes_only_where_the_unit_lets_it() -> None:
    settings = load({}, {}, DEPLOY / "fetchstash.toml")
    directives = unit()
    assert str(settings.store.folder).startswith(f"/var/lib/{directives['StateDirectory'][0]}/")
    assert settings.http.audit_log.startswith(f"/var/log/{directives['LogsDirectory'][0]}/")
    assert settings.http.metrics.startswith("127.0.0.1:")
    rotated = (DEPLOY / "logrotate").read_text(encoding="utf-8")
    assert f"\n{settings.http.audit_log} {{" in rotated


def service_of_compose() -> dict[str, Any]:
    loaded: dict[str, Any] = yaml.safe_load((DEPLOY / "compose.yaml").read_text(encoding="utf-8"))
    service: dict[str, Any] = loaded["services"]["fetchstash"]
    return service


def test_the_settings_of_a_replica_name_the_database_that_the_page_makes() -> None:
    settings = load({}, {}, DEPLOY / "team.toml")
    check_tenants(settings)
    assert bucket_url(settings.store.url)
    made = (ROOT / "docs" / "operations.md").read_text(encoding="utf-8").partition("```sql\n")[2]
    role = re.search(r"CREATE ROLE (\w+)", made)
    database = re.search(r"CREATE DATABASE (\w+) OWNER (\w+)", made)
    assert role
    assert database
    address = urlsplit(settings.store.catalog)
    assert address.username == role[1] == database[2]
    assert address.path == f"/{database[1]}"
    assert "sslmode=verify-full" in address.query


def test_the_compose_file_runs_without_root_and_capabilities_on_a_root_that_is_read_only() -> None:
    service = service_of_compose()
    assert service["read_only"] is True
    assert service["user"] == "10001:10001"
    assert service["cap_drop"] == ["ALL"]
    assert service["security_opt"] == ["no-new-privileges:true"]
    assert all(port.startswith("127.0.0.1:") for port in service["ports"])
    assert service["mem_limit"]
    assert service["pids_limit"]
    variables = {key.variable for key in KEYS.values()}
    assert set(service["environment"]) <= variables
    assert int(service["stop_grace_period"].removesuffix("s")) > HttpLimits().grace_seconds


def compose_of_team() -> dict[str, Any]:
    text = (DEPLOY / "compose-team.yaml").read_text(encoding="utf-8")
    loaded: dict[str, Any] = yaml.safe_load(text)
    return loaded


def test_the_compose_file_of_a_team_starts_three_replicas_once_what_they_need_is_there() -> None:
    loaded = compose_of_team()
    services = loaded["services"]
    replica, token = services["fetchstash"], services["first-token"]
    assert replica["deploy"]["replicas"] == 3
    assert set(token["depends_on"]) == {"database", "bucket"}
    assert set(replica["depends_on"]) == {"first-token"}
    ports = [port for service in services.values() for port in service.get("ports", ())]
    assert ports == ["127.0.0.1:8080:80"]
    ours = {name for name in replica["environment"] if name.startswith("FETCHSTASH_")}
    assert ours <= {key.variable for key in KEYS.values()}
    settings = load({}, {name: str(replica["environment"][name]) for name in ours})
    assert settings.store.catalog.startswith("postgresql://")
    assert str(bucket_url(settings.store.url)) == "s3://fetchstash/team"
    assert set(loaded["volumes"]) == {"database", "bucket"}
    assert set(loaded["configs"]) == {services["front"]["configs"][0]["source"]}


def test_the_kustomization_names_what_is_there_and_the_autoscaler_what_it_scales() -> None:
    kustomization = yaml.safe_load((DEPLOY / "kustomization.yaml").read_text(encoding="utf-8"))
    assert all((DEPLOY / name).is_file() for name in kustomization["resources"])
    image, tag = container()["image"].rsplit(":", 1)
    assert kustomization["images"] == [{"name": image, "newTag": tag}]
    scaler = yaml.safe_load((DEPLOY / "autoscaler.yaml").read_text(encoding="utf-8"))["spec"]
    deployment = manifests()["Deployment"]
    assert scaler["scaleTargetRef"]["name"] == deployment["metadata"]["name"]
    assert scaler["minReplicas"] == deployment["spec"]["replicas"]
    assert "cpu" in container()["resources"]["requests"]  # what a utilisation is a part of


def manifests() -> dict[str, dict[str, Any]]:
    """Return the documents of the Kubernetes manifest by their kind."""
    text = (DEPLOY / "kubernetes.yaml").read_text(encoding="utf-8")
    documents: list[dict[str, Any]] = list(yaml.safe_load_all(text))
    return {document["kind"]: document for document in documents}


def container() -> dict[str, Any]:
    containers: list[dict[str, Any]]
    containers = manifests()["Deployment"]["spec"]["template"]["spec"]["containers"]
    return containers[0]


def test_the_pods_run_without_root_and_capabilities_on_a_root_that_is_read_only() -> None:
    pod = manifests()["Deployment"]["spec"]["template"]["spec"]
    assert pod["automountServiceAccountToken"] is False
    assert pod["securityContext"]["runAsNonRoot"] is True
    assert pod["securityContext"]["runAsUser"] == 10001
    assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    own = container()
    assert own["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    assert {own[name]["httpGet"]["path"] for name in ("startupProbe", "livenessProbe")} == {
        "/healthz"
    }
    assert own["readinessProbe"]["httpGet"]["path"] == "/readyz"
    assert set(own["resources"]) == {"requests", "limits"}
    assert {volume["name"] for volume in pod["volumes"]} == {v["name"] for v in own["volumeMounts"]}
    pause = int(own["lifecycle"]["preStop"]["exec"]["command"][1])
    assert pod["terminationGracePeriodSeconds"] > pause + HttpLimits().grace_seconds


def test_the_pods_settings_are_valid(tmp_path: Path) -> None:
    path = tmp_path / "fetchstash.toml"
    path.write_text(manifests()["ConfigMap"]["data"]["fetchstash.toml"], encoding="utf-8")
    settings = load({}, {}, path)
    assert settings.store.url == "s3://fetchstash-artifacts/team"
    ports = {port["name"]: port["containerPort"] for port in container()["ports"]}
    assert settings.http.metrics == f"0.0.0.0:{ports['metrics']}"
    assert container()["args"][-1] == f"0.0.0.0:{ports['http']}"


def test_the_network_policy_lets_out_to_public_addresses_and_the_ports_that_are_fetched() -> None:
    *_, public = manifests()["NetworkPolicy"]["spec"]["egress"]
    refused = [ipaddress.ip_network(cidr) for cidr in public["to"][0]["ipBlock"]["except"]]
    for address in (
        "10.1.2.3",
        "172.16.0.1",
        "192.168.1.1",
        "169.254.169.254",
        "100.64.0.1",
        "127.0.0.1",
    ):
        assert any(ipaddress.ip_address(address) in network for network in refused)
    assert not any(ipaddress.ip_address("8.8.8.8") in network for network in refused)
    assert tuple(port["port"] for port in public["ports"]) == load({}, {}).fetch.ports


def test_selectors_match_the_pods() -> None:
    found = manifests()
    labels = found["Deployment"]["spec"]["template"]["metadata"]["labels"]
    assert found["Deployment"]["spec"]["selector"]["matchLabels"] == labels
    assert found["Service"]["spec"]["selector"] == labels
    assert found["PodDisruptionBudget"]["spec"]["selector"]["matchLabels"] == labels
    assert found["NetworkPolicy"]["spec"]["podSelector"]["matchLabels"] == labels


# A fetch keeps the body and its text: 36 kB and some 20 on the average page of our corpus, and PDFs
# are larger. The day's work falls into eight hours, its busiest minute three times the average.
PEOPLE, FETCHES, DAYS, BYTES = 200, 500, 7, 125_000
HOURS, PEAK, CALLS = 8, 3, 4


def settings_of_a_team(tmp_path: Path) -> Iterator[Settings]:
    tables = yaml.safe_load_all((DEPLOY / "kubernetes.yaml").read_text(encoding="utf-8"))
    [text] = [t["data"]["fetchstash.toml"] for t in tables if t and t["kind"] == "ConfigMap"]
    pod = tmp_path / "pod.toml"
    pod.write_text(text)
    for file in (DEPLOY / "fetchstash.toml", pod):
        yield load(file=file)


def test_what_a_team_is_given_lasts_200_people_a_week(tmp_path: Path) -> None:
    artifacts = PEOPLE * FETCHES * DAYS
    for settings in settings_of_a_team(tmp_path):
        check_tenants(settings)
        quota, store = settings.quota, settings.store
        assert store.max_age_days <= DAYS
        assert artifacts <= quota.artifacts <= store.max_artifacts
        assert artifacts * BYTES <= quota.stored_bytes <= store.max_total_bytes
        assert quota.fetched_bytes_per_day >= PEOPLE * FETCHES * BYTES * PEAK
        minutes = HOURS * 60
        assert PEOPLE * FETCHES * CALLS / minutes * PEAK <= quota.requests_per_minute
        part = quota.person_part  # for one person of the 200, ten times as busy as the others
        assert quota.artifacts * part >= FETCHES * DAYS * 10
        assert quota.fetched_bytes_per_day * part >= FETCHES * BYTES * 10
        assert FETCHES * CALLS / minutes * 10 * PEAK <= quota.requests_per_minute * part


def test_the_page_of_sizes_reckons_as_it_says() -> None:
    page = (ROOT / "docs" / "sizing.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| ([\d,]+) \| (.+) \|$", page, re.MULTILINE)
    assert [int(people.replace(",", "")) for people, _ in rows] == [10, 200, 1_000, 10_000]
    for people, row in rows:
        fetches = int(people.replace(",", "")) * FETCHES
        a_second = fetches / HOURS / 3600 * PEAK
        cores = max(1, math.ceil(a_second * 0.25))
        replicas = max(math.ceil(cores / 4), 2 if cores > 1 else 1)
        statements = a_second * (19 + 3 * 1)
        database = math.ceil(statements / 2_000) if replicas > 1 else 0
        gigabytes = math.ceil(fetches * DAYS * BYTES / 1e9)
        requests = fetches * 30 * (2 * 5e-6 + 3 * 0.1 * 4e-7)
        bucket = requests + gigabytes * 0.023 if replicas > 1 else gigabytes * 0.1
        dollars = cores * 30 + database * 60 + bucket
        shown = [replicas, cores, database, gigabytes, round(statements), round(dollars)]
        assert [int(cell.replace(",", "")) for cell in row.split(" | ")] == shown, (people, shown)
