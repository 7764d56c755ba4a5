"""Flags that several commands share."""

from pathlib import Path

import click

UNITS = ("lines", "chars", "bytes", "pages", "rows")

max_chars_flag = click.option(
    "--max-chars",
    type=click.IntRange(min=200),
    metavar="N",
    help="Characters to show at the most, 200 or more.",
)
model_max_chars_flag = click.option(
    "--max-chars",
    type=click.IntRange(min=200),
    metavar="N",
    help="With --as-model: the characters that it is shown at the most.",
)
as_model_flag = click.option(
    "--as-model", "model", is_flag=True, help="Show exactly what a model is shown."
)
refresh_flag = click.option(
    "--refresh", is_flag=True, help="Ask the server even where a kept copy is still fresh."
)
output_flag = click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path, dir_okay=False, allow_dash=True),
    help="Write the whole text there, - being stdout.",
)
raw_flag = click.option("--raw", is_flag=True, help="The bytes as they came, in place of the text.")
