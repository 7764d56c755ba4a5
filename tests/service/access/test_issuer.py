"""The provider's documents come over TLS, from whom its certificate names, and from nobody else."""

import json
from collections.abc import Generator
from pathlib import Path

import pytest
import trustme

from fetchstash.errors import FetchFailed
from fetchstash.fetch import FetchLimits
from fetchstash.service.access._issuer import Issuer
from tests.loopback import Quiet
from tests.service.access.provider import jwk, private_key
from tests.tls import serving_tls

pytestmark = pytest.mark.anyio


@pytest.fixture
def provider() -> Generator[tuple[int, trustme.CA]]:
    """Serve a provider over TLS on loopback, with a certificate that nobody knows."""
    public = jwk(private_key("ES256"), "ES256", "k")

    class Handler(Quiet):
        def do_GET(self) -> None:
            issuer = f"https://{self.headers['Host']}"
            metadata = {"issuer": issuer, "jwks_uri": f"{issuer}/keys"}
            document = {"keys": [public]} if self.path == "/keys" else metadata
            self.send_response(200)
            self.end_headers()
            self.wfile.write(json.dumps(document).encode())

    with serving_tls(Handler) as served:
        yield served


@pytest.fixture
def trusted_port(
    provider: tuple[int, trustme.CA], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> int:
    """Let everybody know the provider's certificate."""
    port, authority = provider
    authority.cert_pem.write_to_path(str(tmp_path / "ca.pem"))
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "ca.pem"))
    return port


async def test_keys_are_taken_from_a_provider_whose_certificate_is_known(trusted_port: int) -> None:
    assert await Issuer(f"https://localhost:{trusted_port}").count() == 1
    with pytest.raises(FetchFailed, match=r"cannot be reached: .*certificate"):
        await Issuer(f"https://127.0.0.1:{trusted_port}").count()  # the name of another


async def test_a_certificate_that_nobody_vouches_for_is_not_believed(
    provider: tuple[int, trustme.CA],
) -> None:
    with pytest.raises(FetchFailed, match=r"cannot be reached: .*certificate verify failed"):
        await Issuer(f"https://localhost:{provider[0]}").count()


async def test_a_provider_that_is_not_there_is_an_error_and_soon() -> None:
    with pytest.raises(FetchFailed, match="cannot be reached: "):
        await Issuer("http://127.0.0.1:9").count()


async def test_a_proxy_of_the_environment_is_not_used(
    trusted_port: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HTTPS_PROXY", "http://127.0.0.1:9")
    assert await Issuer(f"https://localhost:{trusted_port}").count() == 1
    by_proxy = FetchLimits(proxy="http://127.0.0.1:9")
    with pytest.raises(FetchFailed, match="cannot be reached: "):
        await Issuer(f"https://localhost:{trusted_port}", fetch=by_proxy).count()
