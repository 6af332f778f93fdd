# SPDX-License-Identifier: Apache-2.0
"""Fails where a page of the built site would load anything from another host: check.py FOLDER.

Links that a reader may follow are fine; scripts, styles, fonts, pictures and frames have to be the site's own.
"""

import pathlib
import re
import sys
from html.parser import HTMLParser

FOREIGN = re.compile(r"^(?:[a-z]+:)?//", re.IGNORECASE)
IN_STYLE = re.compile(r"""(?:url\(\s*["']?|@import\s+["'])((?:https?:)?//[^"')\s]+)""", re.IGNORECASE)


class Loads(HTMLParser):
    """The addresses that a browser asks for by itself."""

    def __init__(self):
        super().__init__()
        self.foreign = []

    def handle_starttag(self, tag, attributes):
        found = dict(attributes)
        names = {"link": ["href"], "image": ["href"], "use": ["href"], "object": ["data"]}.get(tag, ["src", "srcset", "poster"])
        if tag == "link" and found.get("rel") in ("canonical", "prev", "next"):
            return
        for name in names:
            value = found.get(name) or ""
            if FOREIGN.match(value):
                self.foreign.append(value)
        self.foreign += IN_STYLE.findall(found.get("style") or "")


def foreign_in(path):
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".css":
        return IN_STYLE.findall(text)
    loads = Loads()
    loads.feed(text)
    return loads.foreign + IN_STYLE.findall(text)


def check_itself():
    """The check finds what it is for."""
    loads = Loads()
    loads.feed(
        '<a href="https://a.example/"></a><script src="//b.example/x.js"></script><img src="own.svg">'
        '<link rel="stylesheet" href="https://c.example/y.css"><p style="background: url(https://d.example/z.png)">'
    )
    assert [f.split("//")[1][0] for f in loads.foreign] == ["b", "c", "d"], loads.foreign
    assert IN_STYLE.findall("@import 'https://e.example/f.css'; a {src: url(own.woff)}") == ["https://e.example/f.css"]


def main():
    check_itself()
    files = [p for p in sorted(pathlib.Path(sys.argv[1]).rglob("*")) if p.suffix in (".html", ".css")]
    problems = [f"{path}: loads {address}" for path in files for address in foreign_in(path)]
    print("\n".join(problems) or f"{len(files)} files load nothing from another host")
    return 1 if problems or len(files) < 20 else 0


if __name__ == "__main__":
    sys.exit(main())
