"""npm's oidc-provider on loopback, and how a program without a browser gets a token there."""

import base64
import contextlib
import hashlib
import json
import os
import secrets
from collections.abc import Generator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

import httpx2
import jwt
from cryptography.hazmat.primitives.asymmetric import rsa

from scripts.drive.person import log_in
from scripts.drive.service import running
from scripts.drive.tools import ROOT

_SCRIPT = ROOT / "scripts" / "drive" / "provider.mjs"
_CALLBACK = "http://127.0.0.1:1/callback"


@dataclass(frozen=True, slots=True)
class Provider:
    """oidc-provider in ``folder``, run by ``node``, for the service at ``audience``."""

    node: Path
    folder: Path
    work: Path
    port: int
    audience: str

    @property
    def issuer(self) -> str:
        """Its identifier."""
        return f"http://127.0.0.1:{self.port}"

    @contextlib.contextmanager
    def serving(self, key: str) -> Generator[None]:
        """Serve with one key of this name. It knows nothing of an earlier run."""
        private = rsa.generate_private_key(65537, 2048)
        data = jwt.get_algorithm_by_name("RS256").to_jwk(private, as_dict=True)
        jwk = {**data, "kid": key, "use": "sig", "alg": "RS256", "key_ops": ["sign"]}
        keys, script = self.work / "keys.json", self.folder / "provider.mjs"
        keys.write_text(json.dumps({"keys": [jwk]}))
        script.write_bytes(_SCRIPT.read_bytes())  # beside the package, which node looks for there
        words = [str(self.node / "node"), str(script), str(self.port), self.audience, str(keys)]
        with running(words, "ready", {"PATH": os.defpath}, self.work / "provider.log"):
            yield

    def token(self, account: str, scope: str, resource: str) -> str:
        """Register a client, log in, and return an access token for a resource (RFC 8707)."""
        verifier = secrets.token_urlsafe(48)
        digest = hashlib.sha256(verifier.encode()).digest()
        with httpx2.Client(base_url=self.issuer, trust_env=False, timeout=30) as http:
            registration = {"redirect_uris": [_CALLBACK], "token_endpoint_auth_method": "none"}
            registered = http.post("/reg", json={**registration, "application_type": "native"})
            client: dict[str, Any] = registered.raise_for_status().json()
            asked = {
                "client_id": client["client_id"],
                "response_type": "code",
                "redirect_uri": _CALLBACK,
                "scope": scope,
                "resource": resource,
                "code_challenge": base64.urlsafe_b64encode(digest).decode().rstrip("="),
                "code_challenge_method": "S256",
            }
            callback = log_in(f"{self.issuer}/auth?{urlencode(asked)}", account)
            (code,) = parse_qs(urlsplit(callback).query)["code"]
            form = {
                "grant_type": "authorization_code",
                "code": code,
                "code_verifier": verifier,
                "redirect_uri": _CALLBACK,
                "client_id": client["client_id"],
                "resource": resource,
            }
            return str(http.post("/token", data=form).raise_for_status().json()["access_token"])
