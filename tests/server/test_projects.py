"""Runs by project, through the real server over stdio in both eras, and through the command."""

import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest
from mcp import Client
from mcp_types import ListRootsResult, Root

from tests.cli.forks import Forks
from tests.loopback import Site
from tests.server.test_stdio import flags, started
from tests.server.test_tools import ERAS, call, fail, ref_in

pytestmark = [pytest.mark.anyio, pytest.mark.slow, pytest.mark.long]


@pytest.fixture
def folders(tmp_path: Path) -> list[Path]:
    """Two project folders, and a home folder."""
    made = [tmp_path / name for name in ("one", "other", "home")]
    for folder in made:
        folder.mkdir()
    return made


def root(folder: Path) -> Root:
    return Root.model_validate({"uri": folder.as_uri()})


async def listed(client: Client) -> str:
    return await call(client, "artifact_info")


_forks = Forks()


def ls(tmp_path: Path, folder: Path, *more: str) -> set[str]:
    """Return what the command lists in a folder. A server takes ten times as long to start."""
    words = ["ls", "--json", "--folder", str(tmp_path / "store"), *more]
    done = _forks.run(words, dict(os.environ), folder, b"")
    assert done.returncode == 0, done.stderr
    return {json.loads(line)["artifact_ref"] for line in done.stdout.splitlines()}


@pytest.mark.parametrize("mode", ERAS)
async def test_servers_of_two_folders_share_a_store_and_mix_nothing_but_references(
    mode: str, site: Site, tmp_path: Path, folders: list[Path]
) -> None:
    url = site.put("/a.txt", "some rare words", "text/plain")
    arguments = flags(site, tmp_path)
    async with started(arguments, folders[0], mode=mode) as client:
        ref = ref_in(await call(client, "fetch_content", url=url))
        assert ref in await listed(client)
    async with started(arguments, folders[1], mode=mode) as client:
        assert "no artifacts yet" in await listed(client)
        assert ref not in await call(client, "artifact_search", query="rare words")
        line = await fail(client, "get_search_content", artifact_ref=url)
        assert line.startswith("[unknown_ref]")
        assert "rare words" in await call(client, "get_search_content", artifact_ref=ref)
    async with started(arguments, folders[0], mode=mode) as client:
        assert ref in await listed(client)
        assert "rare words" in await call(client, "get_search_content", artifact_ref=url)


@pytest.mark.parametrize("mode", ERAS)
async def test_a_client_that_declares_roots_is_asked_for_its_project(
    mode: str, site: Site, tmp_path: Path, folders: list[Path]
) -> None:
    asked: list[str] = []

    async def roots(_: Any) -> ListRootsResult:
        asked.append("roots")
        first = root(folders[0])
        return ListRootsResult(roots=[first, root(Path("/elsewhere"))])

    url = site.put("/a.txt", "some words", "text/plain")
    arguments = flags(site, tmp_path)
    more: dict[str, Any] = {"mode": mode, "list_roots_callback": roots}
    async with started(arguments, folders[1], **more) as client:
        ref = ref_in(await call(client, "fetch_content", url=url))
        assert ref in await listed(client)
    assert asked == ["roots"]
    assert (ls(tmp_path, folders[0]), ls(tmp_path, folders[1])) == ({ref}, set())


@pytest.mark.parametrize("mode", ERAS)
async def test_a_client_without_roots_to_list_gets_the_working_folders_run(
    mode: str, site: Site, tmp_path: Path, folders: list[Path]
) -> None:
    async def roots(_: Any) -> ListRootsResult:
        return ListRootsResult(roots=[])

    url = site.put("/a.txt", "some words", "text/plain")
    arguments = flags(site, tmp_path)
    async with started(arguments, folders[0], mode=mode, list_roots_callback=roots) as client:
        ref = ref_in(await call(client, "fetch_content", url=url))
        await listed(client)
    assert ls(tmp_path, folders[0]) == {ref}


async def test_roots_that_change_change_the_run(
    site: Site, tmp_path: Path, folders: list[Path]
) -> None:
    now = [folders[0]]

    async def roots(_: Any) -> ListRootsResult:
        return ListRootsResult(roots=[root(now[0])])

    url = site.put("/a.txt", "some words", "text/plain")
    more: dict[str, Any] = {"mode": "legacy", "list_roots_callback": roots}
    async with started(flags(site, tmp_path), tmp_path, **more) as client:
        ref = ref_in(await call(client, "fetch_content", url=url))
        now[0] = folders[1]
        with pytest.warns(match="roots"):
            await client.session.send_roots_list_changed()  # pyright: ignore[reportDeprecated]
        assert ref not in await listed(client)
        now[0] = folders[0]
        with pytest.warns(match="roots"):
            await client.session.send_roots_list_changed()  # pyright: ignore[reportDeprecated]
        assert ref in await listed(client)


@pytest.mark.parametrize(("mode", "place"), list(zip(ERAS, ["/", "home"], strict=True)))
async def test_each_process_without_a_project_has_a_run_of_its_own(
    mode: str, place: str, site: Site, tmp_path: Path, folders: list[Path]
) -> None:
    cwd = folders[2] if place == "home" else Path(place)
    env = {"HOME": str(folders[2])}
    url = site.put("/a.txt", "some words", "text/plain")
    arguments = flags(site, tmp_path)
    async with started(arguments, cwd, mode=mode, env=env) as client:
        ref = ref_in(await call(client, "fetch_content", url=url))
        assert ref in await listed(client)
    async with started(arguments, cwd, mode=mode, env=env) as client:
        assert "no artifacts yet" in await listed(client)
        assert "some words" in await call(client, "get_search_content", artifact_ref=ref)


async def test_the_command_sees_what_a_server_of_its_folder_fetched_and_with_a_flag_all(
    site: Site, tmp_path: Path, folders: list[Path]
) -> None:
    urls = [site.put(f"/{n}.txt", f"words {n}", "text/plain") for n in range(2)]
    refs: list[str] = []
    for folder, url in zip(folders[:2], urls, strict=True):
        async with started(flags(site, tmp_path), folder) as client:
            refs.append(ref_in(await call(client, "fetch_content", url=url)))

    assert ls(tmp_path, folders[0]) == {refs[0]}
    assert ls(tmp_path, folders[1]) == {refs[1]}
    assert ls(tmp_path, folders[2]) == set()
    assert ls(tmp_path, folders[2], "--all-runs") == set(refs)
    assert ls(tmp_path, folders[0], "--run", "mine") == set()


@pytest.mark.skipif(sys.platform == "win32", reason="Windows asks for a right to make links")
async def test_a_folder_and_a_link_to_it_are_one_project(
    site: Site, tmp_path: Path, folders: list[Path]
) -> None:
    link = tmp_path / "link"
    link.symlink_to(folders[0])
    arguments = flags(site, tmp_path)
    url = site.put("/a.txt", "some words", "text/plain")
    async with started(arguments, link) as client:
        ref = ref_in(await call(client, "fetch_content", url=url))
    assert ls(tmp_path, folders[0]) == ls(tmp_path, link) == {ref}
