"""Start the real components on loopback: Ceph's RGW, Azurite and nginx.

Each runs in a folder of its own, as processes that the caller's context ends.
"""

import base64
import hmac
import os
import shutil
import subprocess
import uuid
from collections.abc import Generator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import format_datetime
from pathlib import Path
from urllib.request import Request, urlopen

from scripts.drive.service import free_port, running

START_SECONDS = 180
"""Within which each component must answer."""

BUCKET = "stash"
ACCESS_KEY, SECRET_KEY = "rig-access-key", "rig-secret-key"
REGION = "us-east-1"

# The account and the key that Azurite's documentation publishes: every emulator has them.
AZURITE_ACCOUNT = "devstoreaccount1"
AZURITE_KEY = (
    "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
)


@dataclass(frozen=True)
class Bucket:
    """A bucket of a real service: its URL, its endpoint, and the environment with its keys."""

    name: str
    url: str
    endpoint: str
    environment: Mapping[str, str]
    pid: int
    """Of the process that listens at the endpoint."""


@contextmanager
def ceph(folder: Path) -> Generator[Bucket]:
    """Run one monitor, one OSD in memory and one RGW; give a bucket of it.

    Without cephx: whoever reaches loopback may use it while it runs.
    """
    folder.mkdir(parents=True)
    mon, rgw = free_port(), free_port()
    settings = folder / "ceph.conf"
    fsid = str(uuid.uuid4())
    template = Path(__file__).with_name("ceph.conf").read_text()
    settings.write_text(template.format(fsid=fsid, mon=mon, rgw=rgw, folder=folder))
    for name in ("mon", "osd", "rgw"):
        (folder / name).mkdir()

    def call(program: str, *arguments: str) -> None:
        with (folder / "setup.log").open("ab") as log:
            command = [program, "-c", str(settings), *arguments]
            subprocess.run(command, check=True, stdout=log, stderr=log, timeout=START_SECONDS)

    monitors = str(folder / "monmap")
    address = f"[v2:127.0.0.1:{mon}]"
    call("monmaptool", "--create", "--fsid", fsid, "--addv", "a", address, monitors)
    call("ceph-mon", "--mkfs", "-i", "a", "--monmap", monitors)
    with ExitStack() as stack:

        def start(ready: str | int, *command: str) -> subprocess.Popen[bytes]:
            log = folder / f"{command[0]}.out"
            words = [*command, "-c", str(settings), "-f"]
            return stack.enter_context(running(words, ready, os.environ, log))

        start(mon, "ceph-mon", "-i", "a")
        osd = str(uuid.uuid4())
        call("ceph", "osd", "new", osd)
        call("ceph-osd", "-i", "0", "--mkfs", "--osd-uuid", osd)
        start("", "ceph-osd", "-i", "0")
        user = ("--uid=rig", "--display-name=rig")
        keys = (f"--access-key={ACCESS_KEY}", f"--secret-key={SECRET_KEY}")
        call("radosgw-admin", "user", "create", *user, *keys)
        gateway = start(rgw, "radosgw", "-n", "client.rgw")
        endpoint = f"http://127.0.0.1:{rgw}"
        make_s3_bucket(endpoint, BUCKET)
        environment = {
            "AWS_ACCESS_KEY_ID": ACCESS_KEY,
            "AWS_SECRET_ACCESS_KEY": SECRET_KEY,
            "AWS_REGION": REGION,
        }
        yield Bucket("Ceph RGW", f"s3://{BUCKET}", endpoint, environment, gateway.pid)


@contextmanager
def azurite(folder: Path, program: str) -> Generator[Bucket]:
    """Run Azurite's blob service; give a container of it."""
    folder.mkdir(parents=True)
    port = free_port()
    options = ("--silent", "--disableTelemetry", "--skipApiVersionCheck", "--inMemoryPersistence")
    command = [program, "--blobHost", "127.0.0.1", "--blobPort", str(port), *options]
    with running(command, port, os.environ, folder / "azurite.out") as process:
        endpoint = f"http://127.0.0.1:{port}"
        make_azure_container(endpoint, BUCKET)
        environment = {
            "AZURE_STORAGE_ACCOUNT_NAME": AZURITE_ACCOUNT,
            "AZURE_STORAGE_ACCOUNT_KEY": AZURITE_KEY,
        }
        account = f"{endpoint}/{AZURITE_ACCOUNT}"
        yield Bucket("Azurite", f"az://{BUCKET}", account, environment, process.pid)


@contextmanager
def nginx(folder: Path, ports: Sequence[int]) -> Generator[int]:
    """Run nginx in front of servers on loopback; give its port."""
    folder.mkdir(parents=True)
    port = free_port()
    servers = "\n".join(f"server 127.0.0.1:{n} max_fails=1 fail_timeout=1s;" for n in ports)
    text = Path(__file__).with_name("nginx.conf").read_text()
    text = text.replace("{port}", str(port)).replace("{servers}", servers)
    (folder / "nginx.conf").write_text(text)
    program = shutil.which("nginx", path=f"{os.environ['PATH']}:/usr/sbin") or "nginx"
    command = [program, "-p", str(folder), "-c", str(folder / "nginx.conf"), "-g", "daemon off;"]
    with running(command, port, os.environ, folder / "nginx.out"):
        yield port


def make_s3_bucket(endpoint: str, bucket: str) -> None:
    """Make a bucket: a PUT that curl signs as AWS Signature Version 4 asks."""
    signed = ["--aws-sigv4", f"aws:amz:{REGION}:s3", "--user", f"{ACCESS_KEY}:{SECRET_KEY}"]
    unsigned = ["-H", "x-amz-content-sha256: UNSIGNED-PAYLOAD"]  # the body, which is empty
    put = ["curl", "-fsS", "-X", "PUT", *signed, *unsigned, f"{endpoint}/{bucket}"]
    subprocess.run(put, check=True, timeout=START_SECONDS)


def make_azure_container(endpoint: str, container: str) -> None:
    """Make a container: a PUT signed as Azure's Shared Key asks."""
    date = format_datetime(datetime.now(UTC), usegmt=True)
    headers = {"x-ms-date": date, "x-ms-version": "2021-08-06"}
    lines = "".join(f"{name}:{value}\n" for name, value in headers.items())
    kind = "application/octet-stream"
    # The account stands twice: once as Azure's resource, once in the emulator's path.
    resource = f"/{AZURITE_ACCOUNT}/{AZURITE_ACCOUNT}/{container}\nrestype:container"
    to_sign = f"PUT\n\n\n\n\n{kind}\n\n\n\n\n\n\n{lines}{resource}"
    digest = hmac.digest(base64.b64decode(AZURITE_KEY), to_sign.encode(), "sha256")
    signature = f"SharedKey {AZURITE_ACCOUNT}:{base64.b64encode(digest).decode()}"
    headers |= {"authorization": signature, "content-type": kind}
    url = f"{endpoint}/{AZURITE_ACCOUNT}/{container}?restype=container"
    with urlopen(Request(url, method="PUT", headers=headers, data=b""), timeout=START_SECONDS):
        pass
