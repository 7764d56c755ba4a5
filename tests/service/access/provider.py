"""An identity provider on loopback: its metadata and keys, and the tokens that it signs."""

import base64
import json
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import jwt
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa

from tests.loopback import Site

AUDIENCE = "https://fetch.example.org/mcp"
ALGORITHMS = ["RS256", "PS256", "ES256", "ES384", "ES512", "EdDSA"]


@cache
def private_key(algorithm: str, number: int = 0, bits: int = 2048) -> Any:
    """Return a key that fits an algorithm; ``number`` tells several apart."""
    match algorithm:
        case "ES256":
            return ec.generate_private_key(ec.SECP256R1())
        case "ES384":
            return ec.generate_private_key(ec.SECP384R1())
        case "ES512":
            return ec.generate_private_key(ec.SECP521R1())
        case "EdDSA":
            return ed25519.Ed25519PrivateKey.generate()
        case _:
            return rsa.generate_private_key(65537, bits)


def public_pem(key: Any) -> bytes:
    """Return the public half as PEM: what an attacker signs HS256 with."""
    form = serialization.PublicFormat.SubjectPublicKeyInfo
    return bytes(key.public_key().public_bytes(serialization.Encoding.PEM, form))


def jwk(key: Any, algorithm: str, key_id: str | None, **more: Any) -> dict[str, Any]:
    """Return the public half as a JWK."""
    instance = jwt.get_algorithm_by_name(algorithm)
    data: dict[str, Any] = instance.to_jwk(key.public_key(), as_dict=True)
    data.pop("key_ops", None)
    return data | ({"kid": key_id} if key_id else {}) | more


def part(data: Any) -> str:
    """Return a part of a JWT."""
    text = data if isinstance(data, bytes) else json.dumps(data).encode()
    return base64.urlsafe_b64encode(text).rstrip(b"=").decode()


@dataclass
class Provider:
    """Publishes on a site; its keys have names."""

    site: Site
    path: str = ""
    keys: dict[str, tuple[Any, str]] = field(default_factory=dict[str, tuple[Any, str]])

    def __post_init__(self) -> None:
        self.publish_metadata()
        self.add("first", "RS256")

    @property
    def issuer(self) -> str:
        """The issuer's identifier."""
        return self.site.url(self.path)

    def publish_metadata(self, **changes: Any) -> None:
        """Serve the metadata of RFC 8414."""
        document = {"issuer": self.issuer, "jwks_uri": self.site.url("/keys")} | changes
        place = f"/.well-known/oauth-authorization-server{self.path}"
        self.site.put(place, json.dumps(document), "application/json")

    def add(self, key_id: str, algorithm: str, number: int = 0) -> None:
        """Make a key and publish it."""
        self.keys[key_id] = private_key(algorithm, number), algorithm
        self.publish()

    def remove(self, key_id: str) -> None:
        """Publish a key no more; it still signs."""
        key, algorithm = self.keys[key_id]
        self.publish(without=key_id)
        self.keys[key_id] = key, algorithm

    def publish(self, without: str = "") -> None:
        """Serve the keys."""
        kept = {name: key for name, key in self.keys.items() if name != without}
        self.publish_keys([jwk(key, algorithm, name) for name, (key, algorithm) in kept.items()])

    def publish_keys(self, keys: list[Any]) -> None:
        """Serve exactly these JWKs."""
        self.site.put("/keys", json.dumps({"keys": keys}), "application/json")

    def claims(self, **changes: Any) -> dict[str, Any]:
        """Return the claims of a good token, changed; None leaves a claim out."""
        now = int(time.time())
        claims: dict[str, Any] = {
            "iss": self.issuer,
            "aud": AUDIENCE,
            "sub": "ada",
            "tenant": "team-a",
            "scope": "openid read fetch",
            "iat": now,
            "exp": now + 300,
        }
        changed = claims | changes
        return {name: value for name, value in changed.items() if value is not None}

    def token(
        self, key_id: str = "first", header: Mapping[str, Any] | None = None, **changes: Any
    ) -> str:
        """Return a good token, with changed claims and more in its header."""
        key, algorithm = self.keys[key_id]
        headers = {"kid": key_id, "typ": "at+jwt", **(header or {})}
        return jwt.encode(self.claims(**changes), key, algorithm, headers=headers)
