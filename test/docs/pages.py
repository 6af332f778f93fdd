# SPDX-License-Identifier: Apache-2.0
"""The commands and the examples of a page, in their order."""

import re

PROGRAMS = (
    "kubectl berth berth-replay berth-node make curl helm kind skopeo ctr docker openssl ln tar nvidia-smi xdg-open sha256sum "
    "cosign crane manifests/ test/ release/ export git"
).split()
STARTS = re.compile(r"(?:\$ )?(?:[A-Z]+=\S|(?:" + "|".join(re.escape(one) + ("" if one.endswith("/") else r"(?=\s)") for one in PROGRAMS) + "))")


def blocks_of(page):
    """(language, lines) of fenced and of indented code."""
    blocks, fence, indented = [], None, []
    for line in [*page.split("\n"), ""]:
        fenced = re.match(r"\s*```(\w*)", line)
        if fenced and fence is None:
            if indented:
                blocks.append(("", indented))
                indented = []
            fence = (fenced.group(1), [])
        elif fenced:
            blocks.append(fence)
            fence = None
        elif fence is not None:
            fence[1].append(line)
        elif line.startswith("    "):
            indented.append(line[4:])
        elif not line.strip() and indented:
            indented.append("")
        elif indented:
            blocks.append(("", indented))
            indented = []
    if indented:
        blocks.append(("", indented))
    return blocks


def quotes_of(command):
    """Single quotes, but for those of comments."""
    return re.sub(r"\s#.*", "", command).count("'")


def commands_of(lines):
    commands, i = [], 0
    while i < len(lines):
        # Below an item of a list a command stands further to the right.
        line = re.sub(r"^ {1,4}(?=kubectl |berth-replay )", "", lines[i])
        i += 1
        if not STARTS.match(line):
            continue
        command = line.removeprefix("$ ")
        here = re.search(r"<<'?([A-Z]+)'?", command)
        while i < len(lines) and (here or command.endswith("\\") or quotes_of(command) % 2):
            command += "\n" + lines[i]
            i += 1
            if here and lines[i - 1] == here.group(1):
                break
        if not re.match(r"kind: ", command):
            commands.append(command)
    return commands


def parts_of(page):
    """[("command" or "example", text)]"""
    parts = []
    for language, lines in blocks_of(page):
        text = "\n".join(lines).strip("\n") + "\n"
        whole = re.search(r"^apiVersion: ", text, re.MULTILINE) and re.search(r"^kind: ", text, re.MULTILINE)
        if language in ("", "yaml") and whole and not STARTS.match(re.sub(r"^kind: .*$", "", lines[0])):
            parts.append(("example", text))
        elif language in ("", "sh", "bash", "console"):
            parts += [("command", command) for command in commands_of(lines)]
    return parts


def is_form(command):
    """What a command may have, not one to type."""
    plain = re.sub(r"'[^']*'|\"[^\"]*\"|#.*", "", command)
    return bool(re.match(r"berth", plain) and re.search(r"\[(?:-|,|\w+=)|\.\.\.|\bFILE\b|\|-|[A-Z]\|-?-?[A-Z-]|FORMAT| \| |,\.\.\.", plain))


def check_itself():
    """What is a command is seen as one."""
    page = "Text\n\n    $ berth top      # what is idle\n    answer\n    kubectl patch node N \\\n      -p 'x'\n\n```yaml\napiVersion: v1\nkind: Pod\n```\n"
    assert parts_of(page) == [
        ("command", "berth top      # what is idle"),
        ("command", "kubectl patch node N \\\n  -p 'x'"),
        ("example", "apiVersion: v1\nkind: Pod\n"),
    ], parts_of(page)
    assert [text for _, text in parts_of("    make a  # Go's\n    make b\n")] == ["make a  # Go's", "make b"]
    here = "    kubectl create -f - <<'END'\n    {}\n    END\n    curl x\n"
    assert parts_of(here) == [("command", "kubectl create -f - <<'END'\n{}\nEND"), ("command", "curl x")], parts_of(here)
    assert is_form("berth top [--server URL] [--json]") and not is_form("berth plan --grow 3  # of [1, 2]")
