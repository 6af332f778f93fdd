# SPDX-License-Identifier: Apache-2.0
"""Makes pages of documents outside of docs/, and links between all of them.

In the repository a link is relative to its file. A link to a page of the site becomes one on the site; a link to any
other file of the repository becomes its path as text, since the site does not have it.
"""

import os
import posixpath
import re

from mkdocs.structure.files import File

# Document of the repository -> page of the site. Those in docs/ are pages anyway.
PAGES = {
    "ARCHITECTURE.md": "project/architecture.md",
    "CHANGELOG.md": "project/changelog.md",
    "CONTRIBUTING.md": "project/contributing.md",
    "INTERNALS.md": "project/internals.md",
    "SECURITY.md": "project/security.md",
    "bench/LAB.md": "project/lab.md",
    "bench/RESULTS.md": "project/results.md",
    "bench/SPEED.md": "project/speed.md",
    "bench/lab/README.md": "project/experiments.md",
}

LINK = re.compile(r"(!?)\[((?:[^\[\]]|\[[^\]]*\])*)\]\(([^)\s]+)\)")


def on_files(files, config):
    root = os.path.dirname(config.config_file_path)
    for document, page in PAGES.items():
        with open(os.path.join(root, document), encoding="utf-8") as text:
            files.append(File.generated(config, page, content=text.read()))
    return files


def on_page_markdown(markdown, page, config, files):
    by_page = {site: document for document, site in PAGES.items()}
    source = by_page.get(page.file.src_uri, "docs/" + page.file.src_uri)

    def linked(match):
        picture, text, target = match.groups()
        path, hash_, anchor = target.partition("#")
        if "://" in target or target.startswith("mailto:") or not path:
            return match.group(0)
        document = posixpath.normpath(posixpath.join(posixpath.dirname(source), path))
        site = PAGES.get(document)
        if site is None and document.startswith("docs/"):
            site = document.removeprefix("docs/")
        if site is not None and files.get_file_from_path(site) is not None:
            here = posixpath.dirname(page.file.src_uri)
            return f"{picture}[{text}]({posixpath.relpath(site, here or '.')}{hash_}{anchor})"
        name = text.strip("`")
        return f"`{document}`" if name in (document, path) else f"{text} (`{document}`)"

    lines, fenced = [], False
    for line in markdown.split("\n"):
        fenced ^= line.lstrip().startswith("```")
        lines.append(line if fenced or line.startswith("    ") else LINK.sub(linked, line))
    return "\n".join(lines)
