"""Hostile pages of HTML. Each has the word "gate" in its text, and what is long by repetition is so by ``large`` bytes."""

# ruff: noqa: E501 - a hostile page on one line reads better than in pieces

FILM = '{"@type": "VideoObject", "name": "gate", "url": "/#"}'
PROSE = f"<p>{'The gate opens at nine on every day of the year but one. ' * 3}</p>"


def pages(large: int) -> dict[str, bytes]:
    """Return pages by what is wrong with them."""

    def many(piece: str, most: int | None = None) -> str:
        """Repeat ``piece`` to about ``large`` bytes, at the most so many times."""
        return piece * min(large // len(piece), most or large)

    def numbered(piece: str, most: int) -> str:
        """Repeat ``piece`` with a number in it, as often as fits, at the most so many times."""
        return "".join(piece.replace("#", str(n)) for n in range(min(large // len(piece), most)))

    found = {
        # Much of one thing.
        "a table of 50,000 rows": f"<p>gate<table>{many('<tr><td>gate 1<td>gate 2<td>gate 3</tr>', 50_000)}</table>",
        "200,000 links": f"<p>gate{many('<a href=/a/b>gate</a> ', 200_000)}",
        "100,000 headings": many("<h2>gate</h2>", 100_000),
        "200,000 small divisions": many("<div>gate</div>", 200_000),
        "200,000 paragraphs without an end": many("<p>gate", 200_000),
        "200,000 list items": f"<ul>{many('<li>gate', 200_000)}</ul>",
        "200,000 line breaks": f"gate{many('<br>', 200_000)}gate",
        "200,000 hidden elements": f"<p>gate{many('<span hidden>no</span>', 200_000)}",
        "100,000 styled elements": f"<p>gate{many('<i style=display:none>no</i>', 100_000)}",
        "100,000 pieces of code": f"<pre>gate{many('<span class=k>gate</span> ', 100_000)}</pre>",
        "50,000 blocks of code": many("<pre><code>gate</code></pre>", 50_000),
        "100,000 pictures": f"<p>gate{many('<img src=a.png alt=gate>', 100_000)}",
        "50,000 pictures in figures": f"<p>gate{numbered('<figure><p><img src=/#.png alt=gate></p><figcaption>gate</figure>', 50_000)}",
        "50,000 pictures in one figure": f"<p>gate<figure>{numbered('<p><img src=/#.png></p>', 50_000)}<figcaption>gate</figure>",
        "50,000 films, and linked data on each": f"<p>gate{numbered('<video src=/#></video><script type=application/ld+json>' + FILM + '</script>', 50_000)}",
        "50,000 teasers": f"<meta property=og:type content=article>{PROSE * 6}{numbered('<div class=t><a href=/#>the gate is open</a></div>', 50_000)}",
        "50,000 texts in a state": f"<title>gate</title><script type=application/json>[{numbered(chr(34) + 'the gate # opens at nine every day of the year' + chr(34) + ',', 50_000)}1]</script>",
        "100,000 buttons and fields": f"<p>gate<form>{many('<input value=x><button>x</button>', 100_000)}</form>",
        "50,000 options of one select": f"<select>{many('<option>x', 50_000)}</select><p>gate",
        "100,000 scripts": f"<p>gate{many('<script>x()</script>', 100_000)}",
        "50,000 facts in the head": f"<head>{many('<meta name=a content=b>', 50_000)}</head><p>gate",
        "100,000 attributes of one tag": f"<p {numbered('a#=1 ', 100_000)}>gate</p>",
        "50,000 attributes without spaces": f"<p {numbered('a#=' + chr(34) * 2, 50_000)}>gate</p>",
        "100,000 attributes of the body": f"<body {numbered('a#=1 ', 100_000)}><p>gate</p>",
        "50,000 rules of a style sheet": f"<style>{numbered('.a.b#{display:none}', 50_000)}</style>{many('<p class=a>gate</p>', 500)}",
        "50,000 names that look hidden": f"<p>gate{numbered('<p class=c# id=i#>gate</p>', 50_000)}",
        # Long by itself.
        "one tag": f"gate{many('<b>', 10_000_000)}",
        "one closing tag": f"gate{many('</p>')}",
        "one closing tag of nothing": f"gate{many('</b>')}",
        "text without tags": many("gate and more "),
        "one word": f"gate{'x' * large}",
        "one paragraph": f"<p>{many('gate and more ')}</p>",
        "white space": f"<p>gate{' ' * large}gate</p>",
        "line feeds": f"<p>gate{chr(10) * large}gate</p>",
        "an attribute of 500 KB, many times": f"<p>gate{many(f'<p title={chr(34)}{chr(120) * min(large // 4, 500_000)}{chr(34)}>gate')}",
        "an address of 500 KB": f"<p>gate <a href='/{'x' * min(large, 500_000)}'>gate</a>",
        "a picture in its own address": f"<p>gate<img alt=gate src='data:image/png;base64,{'A' * large}'>",
        "a title of 1 MB": f"<title>{'gate ' * (large // 10)}</title><p>gate",
        "a heading of 1 MB": f"<h1>{'gate ' * (large // 10)}</h1><p>gate",
        "a script of megabytes": f"<p>gate<script>{'x = 1;' * (large // 6)}</script>",
        "a state of megabytes": f"<p>gate<script type=application/json>{'[' * (large // 2)}</script>",
        "linked data in brackets": f"<script type=application/ld+json>{'[' * (large // 2)}</script><p>gate",
        "a tag name without end": f"gate<{'x' * large}",
        "an attribute name without end": f"gate<p {'x' * large}>gate",
        "a base of 8,000 characters": f"<base href='https://e.org/{'x' * 8_000}/'>{many('<p><a href=y>gate</a>', 20_000)}",
        # Deep.
        "80,000 divisions deep": many("<div>", 80_000) + "gate",
        "100,000 tags deep": many("<b>", 100_000) + "gate",
        "100,000 spans deep": many("<span>", 100_000) + "gate",
        "lists in lists": many("<ul><li>gate", 50_000),
        "quotations in quotations": many("<blockquote>gate", 50_000),
        "tables in tables": many("<div><table><td></div>", 20_000) + "gate",
        "tables in cells": "gate" + many("<table><tr><td>gate", 20_000),
        "links in links": many("<a href=/>gate", 50_000),
        "forms in forms": many("<form><fieldset>gate", 50_000),
        "headings in headings": many("<h1><i>gate", 50_000),
        "templates in templates": f"gate{many('<template>', 50_000)}",
        "pictures of lines in each other": f"gate{many('<svg><g>', 50_000)}",
        "formulas in each other": f"gate{many('<math><mi>', 50_000)}",
        "rubies and definitions": f"gate{many('<dl><dt>gate<dd>', 50_000)}",
        # What copies itself.
        "formatting that copies itself": "".join(f"<font size={n}>" for n in range(1_000))
        + many("<p>gate", 10_000),
        "cells over a thousand columns": f"<table><tr>{many('<td colspan=1000 rowspan=1000>gate</td>', 4_000)}</tr><tr><td>x<td>y</table>",
        "cells over all rows": f"<table>{many('<tr><td rowspan=65534>gate', 5_000)}</table>",
        # What never ends.
        "tags that never end": f"gate{many('<a ')}",
        "comments that never end": f"gate{many('<!--')}",
        "sections that never end": f"gate{many('<![CDATA[')}",
        "instructions that never end": f"gate{many('<?x ')}",
        "types that never end": f"gate{many('<!DOCTYPE ')}",
        "scripts that never end": f"gate{many('<script>')}",
        "styles that never end": f"gate{many('<style>')}",
        "text areas that never end": f"gate{many('<textarea>')}",
        "quotes that never end": f"gate{many('<a href=' + chr(39))}",
        "angle brackets": f"gate{'<' * large}",
        "slashes": f"gate<p{'/' * large}>",
        # Characters.
        "entities": f"<p>gate{many('&amp;')}",
        "entities by number": f"<p>gate{many('&#x41;')}",
        "entities that are none": f"<p>gate{many('&nothing')}",
        "ampersands": f"<p>gate{'&' * large}",
        "zeros": f"<p>gate{chr(0) * (large // 64)}" + "gate <p>and more</p>" * (large // 20),
        "invisible characters": f"<p>gate{chr(0x200B) * (large // 3)}",
        "marks of Markdown": f"<p>gate{'*_`[' * (large // 4)}",
        "bars in cells": f"<table><tr><th>gate<td>{'|' * large}</table>",
        "fences in code": f"<pre>gate{'`' * (large // 2)}</pre>",
    }
    return {f"HTML: {name}": page.encode("utf-8", "replace") for name, page in found.items()}
