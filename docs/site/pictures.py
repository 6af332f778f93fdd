# SPDX-License-Identifier: Apache-2.0
"""Makes the pictures of the documentation from what Berth's programs print.

  pictures.py BERTH           write docs/pictures/*.svg; BERTH is the program
  pictures.py BERTH --check   fail where one of them is not what would be written

demo.svg, idle.svg: docs/pictures/demo.txt, the output of `make demo` without the line of times and what follows it.
links.svg: `berth topology show docs/pictures/dgx1.txt --json`.
pod.svg: the calls of one pod, as docs/internals.md has them.
"""

import json
import math
import pathlib
import re
import subprocess
import sys
from xml.sax.saxutils import escape

FOLDER = pathlib.Path(__file__).resolve().parent.parent / "pictures"
STYLE = """<style>
text { font: 13px ui-monospace, Menlo, Consolas, monospace; fill: #1f2937 }
.soft { fill: #6b7280 } .line { stroke: #6b7280; fill: none } .box { fill: #eef2ff; stroke: #4f46e5 }
.own { fill: #4f46e5 } .other { fill: #9ca3af } .paper { fill: #ffffff }
@media (prefers-color-scheme: dark) {
  text { fill: #e5e7eb } .soft { fill: #9ca3af } .box { fill: #1e1b4b; stroke: #818cf8 }
  .own { fill: #818cf8 } .other { fill: #6b7280 } .paper { fill: #111827 }
}
%s</style>"""


def svg(width, height, title, body, style=""):
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img" aria-label="{escape(title)}">\n'
        f"<title>{escape(title)}</title>\n{STYLE % style}\n"
        f'<rect class="paper" width="{width}" height="{height}" rx="6"/>\n{body}\n</svg>\n'
    )


def text(x, y, words, more=""):
    return f'<text x="{x:g}" y="{y:g}" xml:space="preserve" {more}>{escape(words)}</text>'


def demo(output):
    """The lines of the run, one after the other, again and again."""
    lines = ["$ make demo"] + output.rstrip("\n").split("\n")
    seconds, step = 12, 0.5
    style, body = "", []
    for i, line in enumerate(lines):
        shown = 100 * min(0.9, (step * i) / seconds)
        style += f"@keyframes l{i} {{ 0%, {shown:.1f}% {{ opacity: 0 }} {shown + 0.1:.1f}%, 100% {{ opacity: 1 }} }}\n"
        style += f".l{i} {{ animation: l{i} {seconds}s infinite }}\n"
        body.append(text(14, 26 + 19 * i, line, f'class="l{i}"'))
    style += "@media (prefers-reduced-motion: reduce) { text { animation: none !important } }\n"
    width = 28 + round(7.9 * max(map(len, lines)))
    return svg(width, 24 + 19 * len(lines), "make demo", "\n".join(body), style)


def idle(output):
    """GPUs that stay idle, a bar per policy."""
    rows = re.findall(r"^([a-z-]+)  +(.*?)  +[\d,]+ +[\d,]+ +([\d,]+)  #+$", output, re.MULTILINE)
    most = max(int(count.replace(",", "")) for _, _, count in rows)
    body = [text(14, 26, output.split("\n")[0].split(": ")[1], 'class="soft"')]
    for i, (policy, meaning, count) in enumerate(rows):
        y, width = 44 + 44 * i, 330 * int(count.replace(",", "")) / most
        body += [
            text(14, y + 14, policy),
            text(14, y + 30, meaning, 'class="soft"'),
            f'<rect class="{"own" if policy == "expected-waste" else "other"}" x="250" y="{y}" width="{width:.1f}" height="28" rx="3"/>',
            text(258 + width, y + 19, f"{count} idle"),
        ]
    return svg(700, 52 + 44 * len(rows), "Idle GPUs by policy", "\n".join(body))


def links(berth):
    """The NVLinks of a node, GPUs in a circle; a thick line is two links."""
    shown = subprocess.run([berth, "topology", "show", FOLDER / "dgx1.txt", "--json"], check=True, capture_output=True)
    node = json.loads(shown.stdout)
    gpus = node["gpus"]
    at = [(190 + 130 * math.sin(2 * math.pi * i / len(gpus)), 185 - 130 * math.cos(2 * math.pi * i / len(gpus))) for i in range(len(gpus))]
    body = []
    for a in range(len(gpus)):
        for b in range(a):
            kind = node["links"][a][b]
            if kind.startswith("NV"):
                (x, y), (u, v) = at[a], at[b]
                body.append(f'<line class="line" x1="{x:.1f}" y1="{y:.1f}" x2="{u:.1f}" y2="{v:.1f}" stroke-width="{2 * int(kind[2:])}"/>')
    for (x, y), gpu in zip(at, gpus):
        body.append(f'<circle class="box" cx="{x:.1f}" cy="{y:.1f}" r="26"/>')
        body.append(text(round(x, 1), round(y + 5, 1), gpu, 'text-anchor="middle"'))
    body.append(text(190, 365, "NVLinks of a DGX-1V: thick lines are two links", 'text-anchor="middle" class="soft"'))
    return svg(380, 380, "NVLinks of a node", "\n".join(body))


CALLS = [
    (0, 1, "pod is created, kube-scheduler sees it"),
    (1, 2, "filter: which nodes can take it?"),
    (2, 1, "the best nodes, a reason for each other one"),
    (1, 2, "prioritize: how good is each?"),
    (2, 1, "0 to 10 per node"),
    (1, 2, "bind it to this node"),
    (2, 0, "Binding with berth.dev/devices"),
    (0, 3, "kubelet starts it; berth-node gives it the GPUs of the plan"),
]


def pod():
    """Who calls whom, from top to bottom."""
    who, body, top = ["API server", "kube-scheduler", "Berth", "node"], [], 66
    x = [90 + 190 * i for i in range(len(who))]
    bottom = top + 44 * len(CALLS)
    for name, at in zip(who, x):
        body.append(f'<line class="line" x1="{at}" x2="{at}" y1="50" y2="{bottom}" stroke-dasharray="3 4"/>')
        body.append(f'<rect class="box" x="{at - 70}" y="16" width="140" height="34" rx="6"/>')
        body.append(text(at, 38, name, 'text-anchor="middle"'))
    for i, (source, target, words) in enumerate(CALLS):
        y, end, back = top + 44 * i + 26, x[target], 7 if target < source else -7
        body.append(f'<path class="line" d="M{x[source]} {y} H{end} m{back} -4 L{end} {y} l{back} 4"/>')
        body.append(text(min(x[source], end) + 6, y - 7, words))
    return svg(760, bottom + 16, "The life of a pod", "\n".join(body))


def main():
    berth = sys.argv[1]
    output = (FOLDER / "demo.txt").read_text(encoding="utf-8")
    stale = []
    for name, picture in {"demo": demo(output), "idle": idle(output), "links": links(berth), "pod": pod()}.items():
        path = FOLDER / f"{name}.svg"
        if "--check" not in sys.argv:
            path.write_text(picture, encoding="utf-8")
        elif not path.exists() or path.read_text(encoding="utf-8") != picture:
            stale.append(f"{path} is not what docs/site/pictures.py writes")
    print("\n".join(stale), end="\n" if stale else "")
    return 1 if stale else 0


if __name__ == "__main__":
    sys.exit(main())
