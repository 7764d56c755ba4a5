"""Examine versions, settings, store, worker, plugins and vocabulary."""

import os
import platform
import sys
import tempfile
from dataclasses import dataclass, replace
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from typing import Literal

from fetchstash.cli._run import each_store
from fetchstash.cli._words import as_command
from fetchstash.config import PROFILES, Settings, load
from fetchstash.errors import Call, FetchstashError, worded
from fetchstash.text import counted

Level = Literal["ok", "note", "warning", "fault"]

_LIBRARIES = ("mcp", "httpx2", "pypdfium2", "selectolax", "google-re2", "tiktoken")


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """The state of one thing, and what to do about it ("" if it works)."""

    level: Level
    what: str
    next_step: str = ""


async def examine(settings: Settings, *, repair: bool) -> list[Diagnosis]:
    """Examine everything in turn; with ``repair`` the store is mended where it can be."""
    return [
        _versions(),
        *_network(settings),
        *_profiles(settings),
        *await _store(settings, repair=repair),
        *([await _provider(settings)] if settings.oauth.issuer else []),
        *await _worker(settings),
        _ocr(settings),
        await _browser(settings),
        _vocabulary(),
    ]


def conclusion(diagnoses: list[Diagnosis]) -> str:
    """Return the last line: that all is well, or the first thing to do."""
    for level in ("fault", "warning"):
        for diagnosis in diagnoses:
            if diagnosis.level == level:
                what = diagnosis.what.removesuffix(".")
                step = diagnosis.next_step or "Mend that, then run this again."
                return f"To do first: {what}. {step}"
    return "All is well."


def _versions() -> Diagnosis:
    names: list[str] = []
    for name in ("fetchstash", *_LIBRARIES):
        try:
            names.append(f"{name} {version(name)}")
        except PackageNotFoundError:
            return Diagnosis("fault", f"{name} is not installed.", "Install fetchstash again.")
    python = f"Python {platform.python_version()} on {platform.system()}"
    return Diagnosis("ok", f"{python}; {', '.join(names)}")


def _network(settings: Settings) -> list[Diagnosis]:
    """Return the faults of certificates and proxy, and the rules that the proxy has to enforce."""
    from fetchstash.fetch import certificate_fault, unused_proxy  # noqa: PLC0415 - rooms are heavy

    limits = settings.fetch
    if fault := certificate_fault(limits.ca_file):
        step = "Correct or unset it: nothing is fetched."
        return [Diagnosis("fault", f"certificates: {fault}", step)]
    found = [Diagnosis("ok", "certificates: readable")]
    variable, proxy = unused_proxy(limits)
    if variable:
        step = f"{variable} is set here and not used: set fetch.proxy to {proxy}."
        found.append(Diagnosis("note", "proxy: none is used", step))
    if limits.proxy_resolves:
        what = "proxy: it looks names up, so no address behind a name is vetted here"
        step = "Make the proxy refuse private addresses and the cloud's metadata service."
        found.append(Diagnosis("note", what, step))
    return found


def _profiles(settings: Settings) -> list[Diagnosis]:
    """Return how much text each profile shows, the one in force first."""
    others = [profile for profile in PROFILES if profile != settings.profile]
    return [
        Diagnosis("ok", f"profile {settings.profile}, in force: {_texts_shown(settings)}"),
        *(
            Diagnosis("ok", f"profile {name}: {_texts_shown(load({'views.profile': name}))}")
            for name in others
        ),
    ]


def _texts_shown(settings: Settings) -> str:
    views, most = settings.views, settings.views.max_chars_ceiling
    whole = min(views.inline_threshold, most)
    unit = "bytes" if views.count_bytes else "characters"
    more = f"{most:,} at the most" if most > whole else "no more if asked"
    return f"texts up to {whole:,} {unit} come whole, {more}"


async def _store(settings: Settings, *, repair: bool) -> list[Diagnosis]:
    """Examine each store of the settings: their own, and those of the tenants beside it."""
    from fetchstash.store import bucket_url, store_folder  # noqa: PLC0415 - heavy

    store = settings.store
    if store.url == "memory:":
        return [Diagnosis("ok", "store memory: it keeps nothing")]
    folder = store_folder(store) or store.folder
    if not bucket_url(store.url) and not store.catalog and not folder.exists():
        return [_no_store_yet(folder)]
    try:
        stores = await each_store(settings)
    except FetchstashError as error:
        return [Diagnosis("fault", f"store: {error.what}", error.advice(as_command))]
    # A service's own folder has tokens and the like, and need not be a store.
    rows = await _one_store(settings, repair=repair, keeps="" in stores)
    for own in [own for tenant, own in stores.items() if tenant]:
        more = await _one_store(own, repair=repair, keeps=True)
        # What is to be known of this machine's SQLite stands above.
        rows += [row for row in more if row.level != "note" or ": SQLite " not in row.what]
    return rows


async def _one_store(settings: Settings, *, repair: bool, keeps: bool) -> list[Diagnosis]:
    """Examine one store; ``keeps`` is False for one that only has tenants' stores beside it."""
    from fetchstash.store import bucket_url, check_store, store_folder  # noqa: PLC0415 - heavy

    store = settings.store
    label = f"store of the tenant {store.tenant}" if store.tenant else "store"
    findings = await check_store(store, repair=repair)
    rows: list[Diagnosis] = []
    if not any(finding.level != "note" for finding in findings):
        state = "every row has its bytes" if store.catalog else "every file is as it was put"
        if not keeps:
            state = "it keeps nothing but what a service has beside its tenants"
        place = bucket_url(store.url) or store_folder(store) or store.folder
        rows.append(Diagnosis("ok", f"{label} {place}: {state}"))
    for finding in findings:
        if finding.mended:
            rows.append(Diagnosis("ok", f"{label}: mended: {finding.what}"))
        elif keeps or finding.level != "note" or "SQLite" in finding.what:
            hint = f" To mend that, {as_command(Call('repair'))}." if finding.mendable else ""
            step = worded(finding.next_step, finding.calls, as_command)
            rows.append(Diagnosis(finding.level, f"{label}: {finding.what}", f"{step}{hint}"))
    return rows


def _no_store_yet(folder: Path) -> Diagnosis:
    """Say whether the first fetch could make the store's folder."""
    nearest = next(above for above in folder.absolute().parents if above.exists())
    if nearest.is_dir() and os.access(nearest, os.W_OK | os.X_OK):
        return Diagnosis("ok", f"store {folder}: nothing kept yet")
    step = "Give this user the rights to it, or add --folder FOLDER (store.folder)."
    return Diagnosis("fault", f"store {folder}: nothing can be made in {nearest}", step)


async def _provider(settings: Settings) -> Diagnosis:
    """Say whether tokens of the identity provider could be verified now."""
    from fetchstash.service.access import count_keys  # noqa: PLC0415 - heavy

    try:
        count = await count_keys(settings)
    except FetchstashError as error:
        return Diagnosis("fault", f"tokens: {error.what}", error.next_step)
    what = f"tokens: {settings.oauth.issuer} has {counted(count, 'key')}"
    return Diagnosis("ok" if count else "fault", what)


async def _worker(settings: Settings) -> list[Diagnosis]:
    """Check that a worker reads a text and recognises a binary."""
    from fetchstash.handlers import Hints, WorkerPool, route_file  # noqa: PLC0415 - the room is heavy

    limits = settings.extract
    pool = WorkerPool(replace(limits, confine="auto"))
    try:
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            text, binary = folder / "text", folder / "binary"
            text.write_text("a line\n", encoding="utf-8")
            binary.write_bytes(b"\xca\xfe\xd0\x0d" + bytes(range(256)))
            read = await pool.extract(text, route_file(text, {}, "a.txt"), Hints(), folder)
            named = await pool.extract(binary, route_file(binary, {}, "a"), Hints(), folder)
            plugins = await pool.plugins()
            unconfined = pool.unconfined
    finally:
        await pool.aclose()
    each = f"{limits.wall_seconds:g} s"
    if read.extraction_error or read.chars == 0:
        what = f"worker: a text could not be read: {read.extraction_error}"
        rows = [Diagnosis("fault", what, "Look at the memory and processes that you may use.")]
    elif sys.platform == "linux":
        held = f"{limits.memory_mb:,} MiB, {limits.cpu_seconds:g} s of CPU, {each}"
        rows = [Diagnosis("ok", f"worker: it reads, held to {held} for each document")]
    else:
        held = f"{each} for each document; this system does not limit its memory"
        rows = [Diagnosis("note", f"worker: it reads, held to {held}")]
    if not unconfined:
        rows.append(Diagnosis("ok", "worker: confined to its document"))
    level: Level = "warning"
    hint = "Run fetchstash in a container. serve --http reads nothing here by default."
    if limits.confine == "required":
        level, hint = "fault", "No document is read here while extract.confine is required."
    rows += [Diagnosis(level, f"worker: {lack}.", hint) for lack in unconfined]
    for plugin in plugins:
        level, state, hint = "note", "installed, and not enabled", "Name it in extract.plugins"
        hint += " to load its formats."
        if plugin.failure:
            level, state = "warning", plugin.failure
            hint = "Mend or remove it, or take it out of extract.plugins."
        elif plugin.words:
            level, state, hint = "ok", f"it reads {plugin.words}", ""
        rows.append(Diagnosis(level, f"plugin {plugin.package}: {state}", hint))
    level, state, hint = "ok", "it names unknown binaries", ""
    if find_spec("magic") is None:
        level, state = "note", "not installed, so unknown binaries have no name"
        hint = "Install fetchstash[magic] to name them."
    elif named.media_type in ("", "application/octet-stream"):
        level, state = "note", "installed, and its library was not found"
        hint = "Install libmagic for your system."
    return [*rows, Diagnosis(level, f"libmagic: {state}", hint)]


def _ocr(settings: Settings) -> Diagnosis:
    """Say whether pages without a text layer are read, without loading the models."""
    from fetchstash.handlers import ocr_is_installed, ocr_limits  # noqa: PLC0415 - as above

    if settings.extract.ocr == "off":
        return Diagnosis("note", "OCR: off", "Set extract.ocr to auto to have scans read.")
    if not ocr_is_installed():
        what = "OCR: not installed, so scanned pages and photos have no text"
        return Diagnosis("note", what, "Install fetchstash[ocr] to have them read.")
    held = f"{ocr_limits(settings.extract).memory_mb:,} MiB"
    version_of = f"rapidocr {version('rapidocr')}"
    return Diagnosis("ok", f"OCR: {version_of}, in a worker of its own, held to {held}")


async def _browser(settings: Settings) -> Diagnosis:
    """Say whether pages of scripts are rendered, by starting the browser once."""
    from fetchstash.fetch import browser_fault, missing  # noqa: PLC0415 - as above

    if "off" in settings.fetch.browser:
        next_step = "Set fetch.browser to auto, or to domains, to have pages of scripts rendered."
        return Diagnosis("note", "browser: off", next_step)
    if lack := missing():
        adding = f"{lack} `fetchstash register --browser` adds one: pages of scripts are read then."
        is_named = settings.fetch.browser != ("auto",)
        return Diagnosis("warning" if is_named else "note", "browser: none", adding)
    if fault := await browser_fault():
        return Diagnosis("warning", f"browser: {fault}", "Mend that, or set fetch.browser to off.")
    return Diagnosis("ok", "browser: it starts, in its own sandbox, behind the guard")


def _vocabulary() -> Diagnosis:
    from fetchstash.text import tokens  # noqa: PLC0415 - loads the vocabulary

    counted = tokens.count("a line of six short words")
    if not counted.exact:
        what = "tokens: the vocabulary cannot be loaded, so counts are estimates"
        return Diagnosis("warning", what, "Install fetchstash again.")
    return Diagnosis("ok", "tokens: counted with the o200k vocabulary, offline")
