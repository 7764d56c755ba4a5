"""Mask the secrets in URLs, so that they may be shown and kept.

A capability URL (W3C, "Good Practices for Capability URLs") holds a random part that nobody can
guess: share links, document IDs, invitations. Random letters and digits change their kind far more
often than words and numbers do.
"""

import re
from itertools import pairwise
from urllib.parse import unquote, unquote_plus

_UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)
_RUN = re.compile(r"[A-Za-z0-9]+")
_HASHES = re.compile(r"[0-9a-fA-F]+(?:\.{2,3}[0-9a-fA-F]+)?")
_EXTENSION = re.compile(r"\.[A-Za-z][A-Za-z0-9]{0,5}\Z")
# Names of a public hash of content, such as a commit, ...
_PUBLIC = frozenset({"blob", "blobs", "commit", "commits", "compare", "raw", "tree"})
# ... and before what only those know who were given the link.
_SHARED = frozenset(
    """
    accept activate confirm folders invitation invitations invite invites join magic private reset
    reset-password s secret share shared sharing token unsubscribe verify
    """.split()  # noqa: SIM905 -- twenty quoted words are no easier to read
)
_WORD_ENDS = re.compile(r"[\W_]+|(?<=[a-z]{2})(?=[A-Z][a-z]{2})")  # also inProgress
_MAX_WORDS = 80
_MAX_CHARS = 1_024  # a longer segment is judged by its beginning

_MASK = "***"
_MAX_DEPTH = 2  # URLs inside URLs are parsed to this depth; deeper ones are masked whole
# Names of parameters that carry a credential: those of OAuth (RFC 5849, 6749, 6750, 8628, 9126)
# and OpenID Connect, of SAML and WS-Federation, of the signed URLs of AWS, Google Cloud, Azure,
# Alibaba Cloud, Akamai and Dropbox, and the plain words. Compared without case, dashes and
# underscores.
_SECRET_NAMES = frozenset(
    """
    accesskey accesskeyid accesstoken apikey appkey appsecret aspsessionid assertion auth authkey
    authorization authreqid authtoken awsaccesskeyid bearer clientassertion clientsecret code
    codeverifier credential credentials csrf csrftoken devicecode googleaccessid hdnea hdntl hdnts
    hmac idtoken idtokenhint jsessionid jwt key keypairid magic magiclink nonce oauthnonce
    oauthverifier otp pass passcode passphrase passwd password phpsessid pin privatekey
    privatetoken pw pwd refreshtoken requesturi resettoken rlkey saml samlart samlrequest
    samlresponse sas secret secretkey secrettoken securitytoken sess session sessionid
    sessionstate sessiontoken sid sig sign signature signedurl sso ssotoken subscriptionkey ticket
    token usercode userpass verification verificationcode webhook wresult xamzcredential
    xamzsecuritytoken xamzsignature xapikey xgoogcredential xgoogsignature xossaccesskeyid
    xosssecuritytoken xosssignature xsrf
    """.split()  # noqa: SIM905 -- ninety quoted words are no easier to read
)
# What binds an answer to a login: a secret (RFC 6749, section 10.12) beside the other parameters
# of one, or unless it is words. Issues are open and addresses in California, too.
_STATE_NAMES = frozenset({"state", "relaystate", "wctx"})
_LOGIN_NAMES = frozenset(
    """
    accesstoken clientid codechallenge idtoken redirecturi responsemode responsetype samlrequest
    samlresponse sessionstate tokentype wresult wtrealm
    """.split()  # noqa: SIM905 -- as above
)
_SECRET_ENDING = re.compile(
    r"(?:token|secret|signature|password|passwd|apikey|accesskey|privatekey|credential)s?\Z"
)
# Secrets by their shape, anywhere in a URL: JWTs and keys with a service's prefix. Each pattern
# starts only at the beginning of a run of such characters, so that matching stays linear.
_SECRET_SHAPE = re.compile(
    r"""(?<![\w-]) (?:
        eyJ[\w-]{8,}\.[\w-]{8,}(?:\.[\w-]*)?    # JSON Web Token, RFC 7519
      | [spr]k[-_][\w-]{18,}                    # OpenAI, Anthropic, Stripe
      | gh[pousr]_\w{20,} | github_pat_\w{20,} | glpat-[\w-]{16,} | hf_\w{20,} | npm_\w{20,}
      | pypi-[\w-]{20,} | xox[abeprs]-[\w-]{10,} | A[KS]IA[0-9A-Z]{16}\b | AIza[\w-]{30,}
      | ya29\.[\w-]{20,} | SG\.[\w-]{16,}\.[\w-]{16,}
      | (?<=/)bot\d{6,}:[\w-]{20,}              # Telegram
      | (?<=/services/)T\w{6,}/B\w{6,}/\w{16,}  # Slack's incoming webhooks
      | (?<=/webhooks/)\d{10,}/[\w-]{30,}       # Discord's webhooks
    )""",
    re.VERBOSE,
)
# A long run of mixed letters and digits without words is most likely a key.
_OPAQUE = re.compile(r"(?=[^0-9]*[0-9])(?=[^A-Za-z]*[A-Za-z])[A-Za-z0-9+/_=-]{32,}\Z")
_SCHEME_AND_HOST = re.compile(r"[A-Za-z][A-Za-z0-9+.\-]*:[/\\]{2,}[^/\\?#]*")
_PATH_PARAMETER = re.compile(r";[^/;?#]*")  # RFC 3986, section 3.3
_PASSWORD = re.compile(r"\A([A-Za-z][A-Za-z0-9+.\-]*:[/\\]{2,})[^/\\?#:]*:[^/\\?#]*@")
_USERINFO = re.compile(r"\A([A-Za-z][A-Za-z0-9+.\-]*:[/\\]{2,})[^/\\?#]*@")


def _mask_segments(path: str) -> str:
    """Return ``path`` with the keys in its segments replaced; words and extensions stay."""
    masked: list[str] = []
    before = ""
    for segment in path.split("/"):
        extension = _EXTENSION.search(segment)
        stem = segment[: extension.start()] if extension else segment
        masked.append(_masked(stem, before) + segment[len(stem) :])
        before = segment.lower()
    return "/".join(masked)


def _masked(segment: str, before: str) -> str:
    """Return a segment with its keys masked; all of it is masked unless the rest is words."""
    text = unquote(segment[:_MAX_CHARS])
    if before in _PUBLIC and _HASHES.fullmatch(text):
        return segment
    rest = _UUID.sub("", text)
    runs = _RUN.findall(rest)
    keys = {run for run in runs if _is_random(run, is_shared=before in _SHARED)}
    if rest == text and not keys:
        return _MASK if _is_scattered(runs) else segment
    if text == segment and all(run in keys or _is_word(run) for run in runs):
        parts = _UUID.sub(_MASK, segment)
        return _RUN.sub(lambda run: _MASK if run[0] in keys else run[0], parts)
    return _MASK


def _is_words(text: str) -> bool:
    """Return whether a parameter's value is words, a name or a short number, so no secret."""
    return len(text) <= _MAX_WORDS and all(
        len(run) <= (5 if run.isdigit() else 20) and (len(run) < 2 or _is_word(run))
        for run in _WORD_ENDS.split(text)
    )


def _is_word(run: str) -> bool:
    return run.isdigit() or (run.isalpha() and (run[1:].islower() or run.isupper()))


def _is_random(run: str, *, is_shared: bool) -> bool:
    """Return whether letters and digits look random: of one case, mixed, or hexadecimal."""
    size = len(run)
    if size < 8 or run.isalpha() or run.isdigit():
        return False
    changes = _changes(run)
    if is_shared:
        return changes >= 3
    if run.islower() or run.isupper():
        return size >= 20 and changes >= size / 6
    return size >= 16 and changes >= size / 3


def _is_scattered(runs: list[str]) -> bool:
    """Return whether short runs form one base64url key, whose "-" and "_" split it."""
    pieces = [run for run in runs if not _is_word(run)]
    changes = sum(_changes(piece) for piece in pieces)
    size = sum(map(len, pieces))
    return size >= 16 and changes >= 0.45 * size


def _changes(run: str) -> int:
    kinds = (0 if char.isdigit() else 1 if char.islower() else 2 for char in run)
    return sum(first != second for first, second in pairwise(kinds))


def mask_url(url: str) -> str:
    """Return ``url`` with its user name, password and secret values replaced by ``***``.

    Values are secret by their name or by their shape. Takes any text, and never raises.
    """
    return _mask(url, 0)


def _mask(url: str, depth: int) -> str:
    """Mask a URL inside ``depth`` others; there, a user name without a password is kept."""
    url = (_PASSWORD if depth else _USERINFO).sub(rf"\1{_MASK}@", url)
    head, hash_mark, fragment = url.partition("#")
    path, query_mark, query = head.partition("?")
    path = _PATH_PARAMETER.sub(lambda match: f";{_mask_pair(match[0][1:], depth)}", path)
    masked = _mask_path(path) + query_mark + _mask_pairs(query, depth) + hash_mark
    return masked + (_mask_pairs(fragment, depth) if "=" in fragment else _mask_path(fragment))


def _mask_path(path: str) -> str:
    """Mask the keys in a path, with or without scheme and host, which are left as they are."""
    host = _SCHEME_AND_HOST.match(path)
    begin = host.end() if host else 0
    return path[:begin] + _mask_segments(_SECRET_SHAPE.sub(_MASK, path[begin:]))


def _mask_pairs(query: str, depth: int) -> str:
    parts = re.split(r"([&;])", query)
    of_login = any(map(_is_of_login, parts))
    return "".join(_mask_pair(part, depth, of_login=of_login) for part in parts)


def _mask_pair(pair: str, depth: int, *, of_login: bool = False) -> str:
    name, equals, value = pair.partition("=")
    if not equals:
        return _MASK if _OPAQUE.match(pair) else _SECRET_SHAPE.sub(_MASK, pair)
    decoded = unquote_plus(value)
    is_state = _plain(name) in _STATE_NAMES and (of_login or not _is_words(decoded))
    is_secret = _plain(name) in _SECRET_NAMES or _SECRET_ENDING.search(_plain(name))
    if value and (is_state or is_secret or _OPAQUE.match(decoded)):
        return f"{name}={_MASK}"
    is_url = "://" in decoded  # redirect=https%3A…
    if is_url and (depth == _MAX_DEPTH or _mask(decoded, depth + 1) != decoded):
        return f"{name}={_MASK}"
    return name + equals + _SECRET_SHAPE.sub(_MASK, value)


def _is_of_login(pair: str) -> bool:
    name, _, value = pair.partition("=")
    plain = _plain(name)
    return plain in _LOGIN_NAMES or (plain == "code" and not _is_words(unquote_plus(value)))


def _plain(name: str) -> str:
    return re.sub(r"[^a-z0-9]", "", unquote_plus(name).lower())
