"""Archives and compressed files: lists of members, each a document of its own."""

from enum import unique

from fetchstash.errors import OutOfRange
from fetchstash.handlers._contract import Format, family, variant
from fetchstash.handlers._reasons import FETCH_AGAIN, KEPT, ReasonTable


@unique
class ArchiveReason(ReasonTable):
    """Why an archive, or a member of it, is not read."""

    DAMAGED_ARCHIVE = "the archive is damaged or cut short", FETCH_AGAIN
    UNLISTED_ARCHIVE = "the members of this kind of archive are not listed", KEPT
    OVERLAP = "its members overlap, as in a zip bomb: none of them is read", KEPT
    LARGE_ARCHIVE = (
        "the archive unpacks to more than {limit:,} bytes: what follows is not listed",
        KEPT,
    )
    MANY_STREAMS = "the file holds more than {limit:,} compressed streams", KEPT
    LARGE_MEMBER = "the member is larger than {limit:,} bytes", KEPT
    UNREAD_MEMBER = "{name} is not read: {why}.", KEPT
    NO_MEMBER = (
        "There is no member {name}.",
        'The archive\'s text lists them all; of an archive inside, write "inner.zip!/name".',
        OutOfRange,
    )
    LEADS_OUT = "its name leads out of the archive", KEPT
    IS_LINK = "it is a link", KEPT
    IS_FOLDER = "it is a folder", KEPT
    IS_DEVICE = "it is a device", KEPT
    IS_ENCRYPTED = "it is encrypted", KEPT
    ENCRYPTED_NAMES = "the names of its members are encrypted", KEPT
    OTHER_PACKING = "it is packed in a way that is not read", KEPT


_HERE = "fetchstash.handlers._archive._members:"
_APK, _JAR = "application/vnd.android.package-archive", ("META-INF/MANIFEST.MF",)
_ARCHIVE = Format(
    kind="archive",
    word="archive",
    handler=_HERE + "ArchiveHandler",
    media_types=(),
    signed=True,
    paths=("*",),
)


FORMATS = (
    _ARCHIVE,
    *family(
        _ARCHIVE,
        ("ZIP", "application/zip application/x-zip-compressed", "zip whl"),
        ("gzip archive", "application/gzip application/x-gzip", "gz tgz", b"\x1f\x8b\x08"),
        ("bzip2 archive", "application/x-bzip2", "bz2", b"BZh"),
        ("xz archive", "application/x-xz", "xz", b"\xfd7zXZ\0"),
        ("Zstandard archive", "application/zstd", "zst", b"\x28\xb5\x2f\xfd"),
        ("7z archive", "application/x-7z-compressed", "7z", b"7z\xbc\xaf\x27\x1c"),
        ("RAR", "application/vnd.rar application/x-rar-compressed", "rar", b"Rar!\x1a\x07"),
        ("Debian package", "application/vnd.debian.binary-package", "", b"!<arch>\ndebian-binary"),
        ("archive", "application/vnd.ms-cab-compressed", "", b"MSCF\0\0\0\0"),
        ("archive", "application/x-archive", "", b"!<arch>\n"),
        ("archive", "application/x-rpm", "", b"\xed\xab\xee\xdb"),
        ("archive", "application/x-xar", "", b"xar!"),
        ("archive", "application/x-lz4", "", b"\x04\x22\x4d\x18"),
        ("archive", "application/x-lzip", "", b"LZIP\1"),
        ("archive", "application/x-compress", "", b"\x1f\x9d"),
        ("archive", "application/x-cpio", "", b"070701", b"070707"),
    ),
    variant(_ARCHIVE, "TAR", "application/x-tar", "tar", b"ustar", at=257),
    variant(_ARCHIVE, "archive", "application/x-iso9660-image", "", b"CD001", at=32_769),
    variant(_ARCHIVE, "APK", _APK, "", zip_members=("AndroidManifest.xml",)),
    variant(_ARCHIVE, "JAR", "application/java-archive", "jar", zip_members=_JAR),
    variant(_ARCHIVE, "archive", "application/vnd.google-earth.kmz", "", zip_members=("doc.kml",)),
)
