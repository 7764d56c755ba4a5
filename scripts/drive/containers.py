"""Containers: docker where its daemon answers, else podman, with a base made by debootstrap."""

import resource
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from scripts.drive.tools import CACHE

BASE = "python:3.13-slim-bookworm"
"""What the Dockerfile names, from docker's own registry."""
MADE = "localhost/fetchstash-base"
PACKAGES = "python3,python3-venv,python-is-python3,ca-certificates"
# A machine behind a proxy of its own has what pip needs in these.
OF_THE_SYSTEM = ("/etc/ssl/certs", "/etc/pip.conf")


@dataclass(frozen=True, slots=True)
class Engine:
    """The program that builds and runs, and the flags that it needs here."""

    program: str
    build_flags: tuple[str, ...] = ()
    run_flags: tuple[str, ...] = ()

    @classmethod
    def find(cls) -> Self | None:
        """Return the engine of this machine, None if there is none."""
        if shutil.which("docker") and _succeeds("docker", "version"):
            return cls("docker")
        if not shutil.which("podman") or not shutil.which("runc"):
            return None
        mounts = [f"--volume={path}:{path}:ro" for path in OF_THE_SYSTEM if Path(path).exists()]
        # In a sandbox limits cannot be raised.
        limits = [
            f"--ulimit={name}={soft}:{soft}"
            for name, number in (
                ("nofile", resource.RLIMIT_NOFILE),
                ("nproc", resource.RLIMIT_NPROC),
            )
            for soft in [min(4_096, *(limit for limit in resource.getrlimit(number) if limit > 0))]
        ]
        return cls("podman", ("--isolation=chroot", *mounts), ("--runtime=runc", *limits))

    def build(self, folder: Path, tag: str, base: str) -> list[str]:
        """Return the command line that builds an image."""
        flags = ["--network=host", f"--build-arg=BASE={base}", *self.build_flags]
        return [self.program, "build", *flags, "-t", tag, str(folder)]

    def run(self, tag: str, volume: Path, *arguments: str) -> list[str]:
        """Return the command line that runs an image on the network of this machine."""
        runtime = [flag for flag in self.run_flags if flag.startswith("--runtime")]
        limits = [flag for flag in self.run_flags if flag not in runtime]
        flags = ["-i", "--rm", "--read-only", "--network=host", *limits, "-v", f"{volume}:/data"]
        return [self.program, *runtime, "run", *flags, tag, *arguments]


def base_image(engine: Engine) -> str:
    """Return the image to build on. Raises RuntimeError if there is none."""
    if engine.program == "docker" or _succeeds(engine.program, "image", "exists", BASE):
        return BASE
    if _succeeds(engine.program, "image", "exists", MADE):
        return MADE
    archive = CACHE / "base.tar"
    if not archive.exists():
        if not shutil.which("debootstrap"):
            raise RuntimeError("debootstrap is not installed")
        archive.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory() as folder:
            made = ["debootstrap", "--variant=minbase", f"--include={PACKAGES}", "bookworm", folder]
            if not _succeeds(*made):
                raise RuntimeError("debootstrap failed")
            subprocess.run(["tar", "-C", folder, "-cf", archive, "."], check=True)
    if not _succeeds(engine.program, "import", str(archive), MADE):
        raise RuntimeError(f"{engine.program} import failed")
    return MADE


def _succeeds(*command: str) -> bool:
    done = subprocess.run(command, capture_output=True, check=False, stdin=subprocess.DEVNULL)
    return done.returncode == 0
