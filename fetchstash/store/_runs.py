"""Runs: what a list, a search and a look-up by URL go through. A reference is valid in each."""

import hashlib
import os
import secrets
from dataclasses import replace
from pathlib import Path

from fetchstash.store._limits import ALL_RUNS, AUTO_RUN, DEFAULT_RUN, StoreLimits

_OF_THIS_PROCESS = f"process-{secrets.token_hex(6)}"


_projects: dict[str, str] = {}
"""The folders whose runs this process asked for. A run is a hash: no folder can be read from it."""


def folder_run(folder: Path) -> str:
    """Return the run of a folder: a hash of its path, links resolved."""
    path = os.path.realpath(folder)
    digest = hashlib.sha256(os.fsencode(os.path.normcase(path))).hexdigest()
    run = f"project-{digest[:12]}"
    _projects[run] = path
    return run


def project_of(run: str) -> str:
    """Return the folder of a run, "" if this process never asked for it."""
    return _projects.get(run, "")


def project_run(folder: Path) -> str:
    """Return the run of a project's folder; the process's own for what is no project.

    Hosts without a project start servers in / or in the home folder.
    """
    path = Path(os.path.realpath(folder))
    if path == path.parent or path == Path(os.path.realpath(Path.home())):
        return _OF_THIS_PROCESS
    return folder_run(path)


def own_run(limits: StoreLimits) -> str:
    """Return the run of a store. An ephemeral one without a name gets a private run.

    It deletes its run when it closes, and must not delete shared artifacts.
    """
    private = limits.ephemeral and limits.run in (AUTO_RUN, DEFAULT_RUN, ALL_RUNS)
    return f"ephemeral-{secrets.token_hex(8)}" if private else limits.run


def run_of_put(run: str) -> str:
    """Return the run that a new artifact belongs to in a store of this run."""
    return DEFAULT_RUN if run == ALL_RUNS else run


def with_run(limits: StoreLimits) -> StoreLimits:
    """Return the limits with the run of the working folder in place of "auto".

    An ephemeral store is left alone: it has a private run, unless one is named.
    """
    if limits.run != AUTO_RUN or limits.ephemeral:
        return limits
    return replace(limits, run=project_run(Path.cwd()))
