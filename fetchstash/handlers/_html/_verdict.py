"""Recognise pages without content, such as login pages, and where they lead to."""

import re

from fetchstash.handlers import _leads
from fetchstash.handlers._html._tree import Page

MOST_CHARS = 3_000
"""Of content; a page that has more is what it seems to be."""
FEW_CHARS = 1_500
"""Of content; a page that has more is no wall."""
NOT_FOUND_CHARS = 800
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


_PAYWALL = re.compile(
    r"subscri(?:be|ption)[^.]{0,40}\b(?:continue|keep|read|unlock|access)|"
    r"already (?:a )?subscribe[rd]|"
    r"(?:for|to|available to) (?:our |paying )?(?:subscribers|members)(?: only)?\b|"
    r"(?:members|subscribers)[- ]only|become a (?:member|subscriber) to|"
    r"nur für abonnenten|réservé aux abonnés|para suscriptores|per gli abbonati|voor abonnees",
    re.IGNORECASE,
)
_NOT_FREE = re.compile(r"\"isAccessibleForFree\"\s*:\s*\"?false", re.IGNORECASE)
_NOT_FOUND = re.compile(
    r"\b(?:(?:page|file|article|document|product|site|url|content|resource)s?(?: you[^.]{0,40})? "
    r"(?:was |were |is |are |has |have |could |can)?(?:been )?"
    r"(?:not (?:be )?(?:found|available)|n[o']t (?:be )?found|no longer (?:available|exists?)|"
    r"removed|"
    r"does(?:n.t| not) exist)|not found|404|seite nicht gefunden|page (?:introuvable|non trouvée)|"
    r"página no encontrada|pagina non trovata|pagina niet gevonden)\b",
    re.IGNORECASE,
)


def verdict(content: str, whole: str, page: Page) -> str:
    """Return a key of PAGE_VERDICTS for what a page is instead of content, "" if it has some.

    ``content`` is the text that was chosen, ``whole`` all text of the page.
    """
    if len(content) > MOST_CHARS:
        return ""
    if _is_paywall(content, whole, page):
        return "paywall"
    if len(content) > FEW_CHARS:
        return ""
    if _CHALLENGE.search(whole) and len(whole) < FEW_CHARS:
        return "human_check"
    few = len(content) <= NEXT_TO_NOTHING
    around = whole if few else content
    if len(_CONSENT.findall(around)) > 1 and len(whole) < 2 * FEW_CHARS:
        return "consent_wall"
    login = f"{page.title} {around}" if few else around
    if page.asks_password and _LOGIN.search(login) and (few or len(whole) <= FEW_CHARS):
        return "login"
    if len(content) <= NOT_FOUND_CHARS and any(map(_NOT_FOUND.search, (page.title, content[:100]))):
        return "soft_404"
    if few and leads_to(page):
        return "leads_on"
    is_shell = len(whole) <= NEXT_TO_NOTHING or _NEEDS_SCRIPTS.search(whole)
    if few and page.scripts and is_shell:
        return "empty_shell"
    return "" if whole else "no_text"


def _is_paywall(content: str, whole: str, page: Page) -> bool:
    if any(_NOT_FREE.search(source) for source in page.json_ld):
        return True
    return len(content) <= FEW_CHARS and len(_PAYWALL.findall(whole)) > 1


def leads_to(page: Page) -> str:
    """Return the address that a page without text sends a browser to, "" if none."""
    return _leads.leads_to(page.meta, page.frames, [text for _, text in page.script_texts])
