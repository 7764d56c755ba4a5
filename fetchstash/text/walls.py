"""One table of walls: what keeps a document from its reader, how it shows, and what to do next.

Both an error answer and a page with status 200 are asked by it: the room that fetches knows status
and header fields, the one that reads pages knows their text. Add a wall by adding a row.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

SOURCE_CHARS = 16 * 1024
"""Characters at the beginning of a body that are searched for marks."""
_WORDED = frozenset((401, 403, 405, 406, 429, 503))
"""The statuses of walls: of another status the words of its page say nothing of the cause."""

_ELSEWHERE = "Look for the same content elsewhere: asking again will not help."
_OTHER_SOURCE = "Look for a public source of it."


@dataclass(frozen=True, slots=True)
class Wall:
    """One kind of wall.

    ``name`` is its code in errors and facts. ``what`` is half a sentence on an error answer, and
    ``page`` the sentence on a page with status 200 ("": there is no such page); ``next_step`` is
    what to do after an error.

    It shows by ``statuses``, by header ``fields`` (each with a pattern of its value), by ``marks``
    in the source and ``words`` in the text (regular expressions). ``error_marks`` tell of errors
    alone: pages that show their content have them, too. ``page_words`` tell of pages alone.
    """

    name: str
    what: str
    next_step: str
    page: str = ""
    statuses: frozenset[int] = frozenset()
    fields: tuple[tuple[str, str], ...] = ()
    marks: str = ""
    error_marks: str = ""
    words: str = ""
    page_words: str = ""


def _human(what: str, *fields: tuple[str, str], marks: str = "", error_marks: str = "") -> Wall:
    what = f"{what} wants a human visitor"
    return Wall(
        "human_check", what, _ELSEWHERE, fields=fields, marks=marks, error_marks=error_marks
    )


def _blocked(what: str, marks: str = "", error_marks: str = "", status: int = 0) -> Wall:
    statuses = frozenset((status,)) if status else frozenset[int]()
    return Wall(
        "blocked", what, _ELSEWHERE, marks=marks, error_marks=error_marks, statuses=statuses
    )


WALLS = (
    Wall(
        "expired_link",
        "the link has expired",
        "Get a new link from the page that gave it.",
        error_marks=r"Request has expired|<Code>(?:ExpiredToken|RequestExpired)\b|"
        r"Signature not valid in the specified time frame|Signed expiry time",
    ),
    Wall(
        "bad_link",
        "the link's signature does not fit",
        "Give the link whole and unchanged.",
        error_marks=r"<Code>SignatureDoesNotMatch\b",
    ),
    Wall(
        "not_found",
        "there is no such object",
        "Check the URL.",
        error_marks=r"<Code>(?:NoSuch(?:Key|Bucket)|(?:Blob|Container|Resource)NotFound)\b",
    ),
    Wall(
        "login",
        "the object is not public",
        _OTHER_SOURCE,
        error_marks=r"<Code>(?:AccessDenied|AllAccessDisabled|AuthenticationFailed|"
        r"PublicAccessNotPermitted)\b",
    ),
    Wall(
        "rate_limit",
        "Cloudflare slows this address down (1015)",
        "Wait some minutes.",
        error_marks=r"error(?: code)?:?\s{0,3}1015\b",
    ),
    _blocked(
        "Cloudflare refuses this visitor",
        marks=r"Attention Required! \| Cloudflare|Sorry, you have been blocked",
        error_marks=r"error(?: code)?:?\s{0,3}10(?:06|09|10|12|20)\b",
    ),
    _human(
        "Cloudflare",
        ("cf-mitigated", "challenge"),
        marks="_cf_chl_opt",
        error_marks=r"challenges\.cloudflare\.com",
    ),
    _human("DataDome", ("x-datadome", ""), marks=r"captcha-delivery\.com"),
    _human("PerimeterX", marks="px-captcha", error_marks=r"_pxAppId|px-c(?:loud|dn)\.net"),
    _human(
        "Anubis",
        marks=r"anubis_challenge|/\.within\.website/|Making sure you(?:.|&#39;)re not a bot",
    ),
    _human(
        "AWS WAF",
        ("x-amzn-waf-action", "captcha|challenge"),
        marks="awsWafCookieDomainList|gokuProps",
        error_marks=r"\.awswaf\.com/",
    ),
    _human("Kasada", ("x-kpsdk-ct", "")),
    _human("Alibaba Cloud", marks=r"acw_sc__v\d|aliyun_waf_|/_____tmd_____/"),
    _human("Tencent EdgeOne", marks="EO_Bot_Ssid"),
    _human(
        "DDoS-Guard",
        marks=r"/\.well-known/ddos-guard/(?:js-challenge|ddg-captcha)|<title>DDoS-Guard</title>",
    ),
    _human("Sucuri", marks="sucuri_cloudproxy_js"),
    _human("SiteGround", marks=r"/\.well-known/sgcaptcha/"),
    _human("Radware", marks=r"validate\.perfdrive\.com/"),
    _human(
        "F5",
        marks=r"Please enable JavaScript to view the page content\.\s{0,9}(?:<br ?/?>)?"
        r"\s{0,9}Your support ID is",
    ),
    _human("a module of nginx", marks=r"slowAES\.decrypt\("),
    _human("Qrator", error_marks="/__qrator/|qauth_handle_validate"),
    Wall(
        "human_check",
        "Vercel wants a human",
        _ELSEWHERE,
        fields=(("x-vercel-mitigated", "challenge"),),
        marks="<title>Vercel Security Checkpoint",
    ),
    _blocked("CloudFront refuses this visitor", marks="Generated by cloudfront"),
    _blocked("Sucuri refuses this visitor", marks="Sucuri WebSite Firewall"),
    _blocked(
        "a firewall (F5) refuses this request",
        marks=r"The requested URL was rejected\. Please consult with your administrator",
    ),
    _blocked(
        "Imperva refuses it",
        marks=r"Incapsula incident|<iframe[^>]{0,200}_Incapsula_Resource|"
        r"_Incapsula_Resource[^>]{0,300}>\s{0,9}</script>\s{0,9}(?:</head>\s{0,9})?"
        r"<body[^>]{0,200}>\s{0,9}</body>",
        error_marks="_Incapsula_Resource",
    ),
    _blocked(
        "Akamai refuses this visitor",
        marks=r"errors\.edgesuite\.net|"
        r"Reference(?:&#32;| )(?:&#35;|#)\d{1,3}(?:&#46;|\.)[0-9a-f]{6}",
    ),
    _blocked(
        "it refuses visitors without a login",
        marks=r"blocked (?:by network security|due to a network policy)",
    ),
    Wall(
        "login",
        "it is shown only to those who sign in",
        _OTHER_SOURCE,
        error_marks=r"Something went wrong, but don.t fret|"
        r"is a private (?:publication|Substack)",
    ),
    Wall(
        "paywall",
        "it is for paying subscribers",
        _OTHER_SOURCE,
        page="The page shows only the beginning of a text for subscribers. Look for another "
        "source.",
        error_marks=r"for (?:paid|paying) subscribers|Keep reading with a \d",
        words=r"subscri(?:be|ption)[^.]{0,40}\b(?:continue|keep|read|unlock|access)|"
        r"(?:members|subscribers)[- ]only|become a (?:member|subscriber) to",
        page_words=r"already (?:a )?subscribe[rd]|"
        r"(?:for|to|available to) (?:our |paying )?(?:subscribers|members)(?: only)?\b|"
        r"nur für abonnenten|réservé aux abonnés|para (?:suscriptores|assinantes)|"
        r"per gli abbonati|voor abonnees|для подписчиков|会员专享|订阅后|会員限定|有料会員|"
        r"구독자 전용",
    ),
    Wall("paywall", "it asks for a payment", _OTHER_SOURCE, statuses=frozenset((402,))),
    # RFC 9457: problem types that IANA has registered.
    _blocked(
        "it finds this use abnormal",
        error_marks=r"http-problem-types#abnormal-usage-detected",
    ),
    Wall(
        "",
        "its capacity is reduced for now",
        "Try again later.",
        error_marks=r"http-problem-types#temporary-reduced-capacity",
    ),
    Wall(
        "human_check",
        "it wants a human visitor",
        _ELSEWHERE,
        page="The site checks that its visitor is human and shows no content. Look for another "
        "source: asking again will not help.",
        error_marks=r"g-recaptcha|h-captcha|hcaptcha\.com|cf-turnstile|unusual traffic from your",
        words=r"verif(?:y|ying) (?:that )?you are (?:a )?human|checking your browser|"
        r"are you a robot|not a robot|enable javascript and cookies to continue|unusual traffic|"
        r"press (?:and|&) hold|kein roboter|pas un robot|no (?:eres|soy) un robot|"
        r"não (?:é|sou) um robô|вы не робот|人机验证|安全验证|ロボットではありません|"
        r"로봇이 아닙니다",
        page_words="captcha|ray id|access denied",
    ),
    Wall(
        "rate_limit",
        "its rate limit is used up",
        "Wait before you ask this site again.",
        error_marks=r"(?:API|secondary) rate limit|rate limit exceeded|UsageCapExceeded|"
        r"types#quota-exceeded",
    ),
    Wall(
        "login",
        "it asks for a login",
        _OTHER_SOURCE,
        page="The page is a login form. What is behind it cannot be fetched: look for a public "
        "source.",
        statuses=frozenset((401,)),
        fields=(("www-authenticate", ""),),
        error_marks='"Bad credentials"',
        words=r"(?:must|need to|have to|please) (?:be )?(?:log(?:ged)?|sign(?:ed)?)[ -]?in\b",
        page_words=r"(?:log|sign) ?in\b|forgot(?:ten)? (?:your )?password|"
        r"create (?:an )?account|single sign-on|anmelden|se connecter|iniciar ses(?:ión|são)|"
        r"accedi|inloggen|zaloguj|войти|登录|登入|ログイン|로그인",
    ),
    Wall(
        "consent_wall",
        "it asks for consent first",
        "Look for another source.",
        page="The page asks for consent and shows no content. Look for another source.",
        page_words=r"before you continue|accept (?:all|cookies)|reject all|"
        r"manage (?:cookies|preferences|options|settings)|"
        r"cookie (?:policy|settings|preferences)|"
        r"we (?:and our (?:\d+ )?partners )?use cookies|your (?:privacy choices|consent)|"
        r"consent to|we value your privacy|alle (?:akzeptieren|ablehnen)|"
        r"tout (?:accepter|refuser)|(?:aceptar|rechazar) todo|(?:accetta|rifiuta) tutto|"
        r"alles (?:accepteren|weigeren)|(?:aceitar|rejeitar) tud|(?:принять|отклонить) вс|"
        r"全部(?:接受|拒绝)|(?:接受|拒绝)所有|すべて(?:同意|許可|拒否)|모두 (?:동의|허용|거부)",
    ),
    Wall(
        "legal",
        "the page is withheld for legal reasons",
        "Look for it elsewhere.",
        statuses=frozenset((451,)),
    ),
    Wall(
        "blocked",
        "the site refuses programs",
        _ELSEWHERE,
        page="The site refuses this visitor and shows no content. Look for another source: asking "
        "again will not help.",
        statuses=frozenset((999,)),
    ),
)
PAGES = {wall.name: wall.page for wall in WALLS if wall.page}
"""What a page with status 200 is instead of content, by name."""

_UNSEEN = re.compile(
    r"<!--.*?(?:-->|\Z)|<(script|style|head|nav|footer)\b[^>]{0,999}>.*?(?:</\1\s*>|\Z)|<[^>]*>",
    re.IGNORECASE | re.DOTALL,
)


def of_error(status: int, headers: Mapping[str, str], source: str) -> Wall | None:
    """Return the wall that an error answer shows: by a header field, a mark, words, its status.

    ``source`` is the beginning of the body. The first row that fits counts.
    """
    if wall := of_headers(headers):
        return wall
    source = source[:SOURCE_CHARS]
    for wall in WALLS:
        if (marks := _either(wall.marks, wall.error_marks)) and _found(marks, source):
            return wall
    if status in _WORDED:
        text = " ".join(_UNSEEN.sub(" ", source).split())
        for wall in WALLS:
            if wall.words and _found(wall.words, text):
                return wall
    return next((wall for wall in WALLS if status in wall.statuses), None)


def of_headers(headers: Mapping[str, str]) -> Wall | None:
    """Return the wall that a header field shows."""
    for wall in WALLS:
        if any(n in headers and _found(value, headers[n]) for n, value in wall.fields):
            return wall
    return None


def of_page(source: str) -> Wall | None:
    """Return the wall whose marks stand in the source of a page with almost no text."""
    beginning = source[:SOURCE_CHARS]
    return next((w for w in WALLS if w.marks and _found(w.marks, beginning)), None)


def words(name: str) -> re.Pattern[str]:
    """Return the pattern of the words by which the text of a page shows a wall of this name."""
    both = [_either(wall.words, wall.page_words) for wall in WALLS if wall.name == name]
    return _compiled(_either(*both))


def _either(*patterns: str) -> str:
    return "|".join(filter(None, patterns))


def _found(pattern: str, text: str) -> bool:
    return _compiled(pattern).search(text) is not None


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.IGNORECASE)
