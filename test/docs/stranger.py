# SPDX-License-Identifier: Apache-2.0
"""Does what the pages of the documentation say, as a reader would: command by command, as they stand.

  stranger.py --pages                    fail where a page has commands and no reader reads it
  stranger.py READER --berth HOST:PORT   read the pages of READER.toml; KUBECONFIG is of a cluster with Berth, whose
                                         debug routes are at HOST:PORT, and berth and kubectl are in PATH

READER.toml says which pages, what the reader puts in place of names (NODE, POD), and which commands are not executed,
with the reason. A page's manifests are checked by the API server and its configurations by `berth config check`.
"""

import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
import urllib.request

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import pages  # noqa: E402
import relay  # noqa: E402

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
READERS = ("laptop", "platform", "researcher", "oncall", "contributor")

# Programs that a test can have only in part. Each stands for the one of its name.
STANDS_FOR = {
    # No kubelet: the port leads to Berth already. That there is what the page names is looked at.
    "kubectl": """#!/usr/bin/env bash
if [[ " $* " == *" port-forward "* ]]; then
  before=() target=
  for word; do
    if [[ $word == port-forward ]]; then target=next
    elif [[ $target == next ]]; then exec {kubectl} "${{before[@]}}" get "$word" -o name
    else before+=("$word"); fi
  done
fi
exec {kubectl} "$@"
""",
    "make": """#!/bin/sh
exec /usr/bin/make --dry-run --directory={root} "$@"
""",
    "xdg-open": """#!/bin/sh
exec curl --silent --fail --output /dev/null "$1"
""",
    "nvidia-smi": """#!/bin/sh
if [ "$1" = topo ]; then exec cat {root}/docs/pictures/dgx1.txt; fi
for i in 1 2 3 4 5 6 7 8; do echo "GPU-0000000$i-0000-0000-0000-000000000000"; done
""",
}


def reader_of(name):
    with open(HERE / f"{name}.toml", "rb") as file:
        reader = tomllib.load(file)
    with open(HERE / "common.toml", "rb") as file:
        common = tomllib.load(file)
    reader["names"] = common["names"] | reader.get("names", {})
    for key in ("not", "long"):
        reader[key] = reader.get(key, []) + common.get(key, [])
    return reader


class Stranger:
    def __init__(self, name, berth, folder):
        self.reader, self.relay = reader_of(name), relay.Relay(berth)
        self.folder, self.page = folder, ""
        self.problems, self.done, self.left_out = [], 0, {}
        self.set = []  # NAME=value, of this page
        self.prepare()

    def prepare(self):
        programs = self.folder / "programs"
        programs.mkdir()
        for name, text in STANDS_FOR.items():
            real = shutil.which("kubectl") or "kubectl"
            (programs / name).write_text(text.format(kubectl=real, root=ROOT), encoding="utf-8")
            (programs / name).chmod(0o755)
        self.home, self.work = self.folder / "home", self.folder / "work"
        (self.home / ".local/bin").mkdir(parents=True)
        self.work.mkdir()
        shutil.copytree(ROOT / "manifests", self.work / "manifests")
        (self.work / "docs").symlink_to(ROOT / "docs")
        for file in (HERE / "files").iterdir():
            shutil.copy(file, self.work)
        self.environment = os.environ | {"HOME": str(self.home), "PATH": f"{programs}:{self.home}/.local/bin:{os.environ['PATH']}"}
        (self.home / ".local/bin/kubectl-berth").symlink_to(shutil.which("berth") or "berth")

    def named(self, text):
        """With the reader's own names."""
        names = self.reader["names"] | self.reader.get("on", {}).get(self.page, {})
        for name in sorted(names, key=len, reverse=True):
            bounded = rf"(?<![A-Za-z_]){re.escape(name)}(?![A-Za-z_])" if re.fullmatch(r"[A-Z_/]+", name) else re.escape(name)
            text = re.sub(bounded, lambda _, value=names[name]: value, text)
        return text

    def shell(self, command, limit=60, given=None):
        whole = "\n".join([*self.set, command])
        try:
            run = subprocess.run(
                ["bash", "-c", whole],
                cwd=self.work,
                env=self.environment,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                timeout=limit,
                input=given or "",
            )
            return run.returncode, run.stdout
        except subprocess.TimeoutExpired:
            return 124, f"does not end within {limit} s"

    def patiently(self, command, seconds=15, given=None):
        """A stranger tries again for a while: what the page says takes a moment to be so."""
        end = time.monotonic() + seconds
        while True:
            code, output = self.shell(command, given=given)
            if code == 0 or time.monotonic() > end:
                return code, output
            time.sleep(0.5)

    def leave_out(self, command, why):
        self.left_out.setdefault(why, []).append(f"{self.page}: {command.splitlines()[0]}")

    def wrong(self, command, output):
        self.problems.append(f"{self.page}: {command.splitlines()[0]}\n    " + output.strip().replace("\n", "\n    "))

    def form(self, command):
        """What a command may have: each option is in the help."""
        program, *words = command.split("#")[0].split()
        subcommands = []
        for word in words:
            if not re.fullmatch(r"[a-z][a-z|-]*", word):
                break
            subcommands.append(word.split("|"))
        helps = ""
        for first in subcommands[0] if subcommands else [""]:
            rest = [one[0] for one in subcommands[1:]]
            code, output = self.shell(" ".join([program, first, *rest, "--help"]))
            if code != 0:
                return self.wrong(command, output)
            helps += output
        missing = [option for option in re.findall(r"--[a-z][a-z-]+", command.split("#")[0]) if option not in helps]
        if missing:
            return self.wrong(command, f"--help has no {', '.join(missing)}")
        self.done += 1

    def serve(self, command):
        """Berth serves: until it is ready."""
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        with self.relay.away():
            process = subprocess.Popen(["bash", "-c", "exec " + command.split("#")[0]], cwd=self.work, env=self.environment, **quiet)
            try:
                for _ in range(100):
                    try:
                        urllib.request.urlopen("http://127.0.0.1:8888/readyz", timeout=5).close()
                        self.done += 1
                        return
                    except OSError:
                        time.sleep(0.1)
                self.wrong(command, "is not ready after 10 s")
            finally:
                process.terminate()
                process.wait()

    def command(self, text):
        command = self.named(text)
        for entry in self.reader["not"]:
            if re.search(entry["command"], text):
                return self.leave_out(text, entry["why"])
        if pages.is_form(text) or any(re.search(long, text) for long in self.reader["long"]):
            return self.form(text)
        if re.match(r"berth serve ", command):
            return self.serve(command)
        code, output = self.patiently(command)
        if code != 0:
            return self.wrong(command, output)
        if re.match(r"[A-Z]+=\S*$", command):
            self.set.append(command)
        self.done += 1

    def example(self, text):
        """A manifest or a configuration."""
        text = self.named(text)
        file = re.match(r"# ([a-z0-9-]+\.yaml)\n", text)
        if file:
            (self.work / file.group(1)).write_text(text, encoding="utf-8")
        if re.search(r"^kind: BerthConfiguration$", text, re.MULTILINE):
            code, output = self.shell("berth config check -", given=text)
        elif re.search(r"^kind: Kustomization$", text, re.MULTILINE):
            (self.work / "overlay").mkdir(exist_ok=True)
            (self.work / "overlay/kustomization.yaml").write_text(text, encoding="utf-8")
            code, output = self.shell("kubectl kustomize overlay")
        else:
            code, output = self.shell("kubectl apply --dry-run=server -f -", given=text)
            kind = re.search(r'no matches for kind "(\w+)"', output)
            if kind:
                return self.leave_out(f"kind: {kind.group(1)}", "its definition is of a project that is not here; TestBehindControllersTheManifestsOfTheDocs has them")
        if code != 0:
            return self.wrong(text, output)
        self.done += 1

    def read(self):
        # What readers before have left.
        self.shell("kubectl delete pods --all --force --namespace default")
        code, output = self.shell("kubectl apply -f world.yaml")
        if code != 0:
            self.problems.append(output)
        with self.relay:
            for page in self.reader["pages"]:
                self.page, self.set = page, []
                for kind, text in pages.parts_of((ROOT / page).read_text(encoding="utf-8")):
                    self.command(text) if kind == "command" else self.example(text)


def unread():
    """Pages with commands that nobody reads."""
    read = {page for name in READERS for page in reader_of(name)["pages"]}
    found = [*sorted((ROOT / "docs").glob("*.md")), *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "manifests/README.md"))]
    names = [str(path.relative_to(ROOT)) for path in found if pages.parts_of(path.read_text(encoding="utf-8"))]
    gone = [page for page in read if not (ROOT / page).exists()]
    return [name for name in names if name not in read] + gone


def main():
    pages.check_itself()
    if sys.argv[1] == "--pages":
        missing = unread()
        print("\n".join(f"{page}: no reader of test/docs reads it" for page in missing) or "every page with commands has a reader")
        return 1 if missing else 0
    name, berth = sys.argv[1], sys.argv[sys.argv.index("--berth") + 1]
    with tempfile.TemporaryDirectory() as folder:
        stranger = Stranger(name, berth, pathlib.Path(folder))
        stranger.read()
    for why, commands in stranger.left_out.items():
        print(f"not executed: {why}")
        print("\n".join(f"  {command}" for command in commands))
    for problem in stranger.problems:
        print(f"FAILED {problem}")
    left = sum(map(len, stranger.left_out.values()))
    print(f"{name}: {stranger.done} commands and examples hold, {left} not executed, {len(stranger.problems)} failed")
    return 1 if stranger.problems else 0


if __name__ == "__main__":
    sys.exit(main())
