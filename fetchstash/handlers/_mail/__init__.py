"""Mail: messages, mailboxes and Outlook's own format."""

from dataclasses import replace

from fetchstash.handlers._format import Format, family
from fetchstash.handlers._routing._structure import sniff_mail

_EML = Format(
    kind="email",
    word="email",
    handler="fetchstash.handlers._mail._eml:EmailHandler",
    media_types=(),
    is_markup=True,
    paths=("*",),
)

FORMATS = (
    *family(replace(_EML, sniff=sniff_mail), ("email", "message/rfc822 message/*", "eml")),
    *family(_EML, ("email", "application/mbox", "mbox")),
    replace(
        _EML,
        word="Outlook message",
        handler="fetchstash.handlers._mail._msg:MsgHandler",
        media_types=("application/vnd.ms-outlook",),
        extensions=("msg",),
        ole_members=("__properties_version1.0", "__nameid_version1.0"),
        is_markup=False,
        signed=True,
    ),
)
