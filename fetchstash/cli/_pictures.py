"""Save a picture to a file, in the format that the file's name says."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from fetchstash.stash import Picture

FORMATS = {".png": "PNG", ".jpg": "JPEG", ".jpeg": "JPEG", ".webp": "WEBP"}


def save_picture(picture: "Picture", target: Path) -> None:
    """Write a picture, converted where the name asks for it. Raises BadArgument."""
    from io import BytesIO  # noqa: PLC0415 - only where it is needed

    from PIL import Image  # noqa: PLC0415 - heavy

    from fetchstash.stash import replacing  # noqa: PLC0415 - heavy

    wanted = FORMATS[target.suffix.lower()]
    data = picture.data
    if picture.media_type != f"image/{wanted.lower()}":
        written = BytesIO()
        with Image.open(BytesIO(data), formats=tuple(FORMATS.values())) as image:
            flat = image if wanted != "JPEG" else image.convert("RGB")
            flat.save(written, wanted)
        data = written.getvalue()
    with replacing(target) as file:
        file.write(data)


def check_name(target: Path) -> None:
    """Raise click.UsageError for a name that says no format of pictures."""
    if target.suffix.lower() not in FORMATS:
        raise click.UsageError(f"--render writes {', '.join(FORMATS)}: end the file's name so.")
