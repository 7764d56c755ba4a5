"""Recognise pages without content, such as login pages. Pure functions over texts."""

import re

FEW_CHARS = 1_500
"""Of content; a page that has more is no wall."""
NEXT_TO_NOTHING = 200

_CHALLENGE = re.compile(
    r"verif(?:y|ying) (?:that )?you are (?:a )?human|checking your browser|are you a robot|"
    r"not a robot|captcha|ray id|enable javascript and cookies to continue|unusual traffic|"
    r"press (?:and|&) hold|access denied",
    re.IGNORECASE,
)
_CONSENT = re.compile(
    r"before you continue|accept (?:all|cookies)|reject all|"
    r"manage (?:cookies|preferences|options|settings)|cookie (?:policy|settings|preferences)|"
    r"we (?:and our (?:\d+ )?partners )?use cookies|your (?:privacy choices|consent)|consent to|"
    r"we value your privacy|alle akzeptieren|tout accepter|aceptar todo|"
    r"accetta tutto|alles accepteren",
    re.IGNORECASE,
)
_LOGIN = re.compile(
    r"(?:log|sign) ?in\b|forgot(?:ten)? (?:your )?password|create (?:an )?account|single sign-on|"
    r"anmelden|se connecter|iniciar sesión|accedi|inloggen",
    re.IGNORECASE,
)
_NEEDS_SCRIPTS = re.compile(
    r"(?:enable|requires?|without|activate|turn on|need)[^.]{0,60}javascript|"
    r"javascript[^.]{0,60}(?:required|enabled|disabled)",
    re.IGNORECASE,
)


def notice(content: str, whole: str, *, asks_password: bool, scripts: int) -> str:
    """Return what a page without content is, "" for a page with content.

    ``content`` is the chosen text, ``whole`` all text of the page, ``scripts`` the number of
    script elements.
    """
    if len(content) > FEW_CHARS:
        return ""
    if _CHALLENGE.search(whole) and len(whole) < FEW_CHARS:
        return "check that the visitor is human, with no content"
    if len(_CONSENT.findall(whole)) > 1 and len(whole) < 2 * FEW_CHARS:
        return "consent wall, with no content"
    if asks_password and _LOGIN.search(whole):
        return "login page, with no content"
    if (
        len(content) <= NEXT_TO_NOTHING
        and scripts
        and (len(whole) <= NEXT_TO_NOTHING or _NEEDS_SCRIPTS.search(whole))
    ):
        return "empty shell that scripts fill in a browser, with no content"
    return "" if whole else "page with no text"
