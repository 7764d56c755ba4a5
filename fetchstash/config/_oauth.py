"""The settings oauth.*: the identity provider whose tokens a team's service takes."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class OAuthLimits:
    """Whose access tokens are taken, for what, and what their claims are called.

    ``resource`` is the service's own URL where the provider calls the audience otherwise.
    """

    issuer: str = ""
    audience: str = ""
    resource: str = ""
    tenant_claim: str = "tenant"
    principal_claim: str = "sub"
    read_scope: str = "read"
    fetch_scope: str = "fetch"
