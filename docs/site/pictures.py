# SPDX-License-Identifier: Apache-2.0
"""Makes the pictures of the documentation from what Berth's programs print.

  pictures.py BERTH           write docs/pictures/*.svg; BERTH is the program, and berth-replay is beside it
  pictures.py BERTH --check   fail where one of them is not what would be written

demo.svg, idle.svg: docs/pictures/demo.txt, the output of `berth-replay demo` without the line of times and what follows it.
lab.yaml: a cluster to ask about; README.md has the answer, which --check compares.
links.svg: `berth-replay topology show docs/pictures/dgx1.txt --json`.
curves.svg: docs/pictures/curves.json, `allocated_pct` from 80 to 130 % arrived in report.json of the demo.
gang.svg: what `berth serve` says of a gang while its pods are filtered and bound.
pod.svg: the calls of one pod, as INTERNALS.md has them.
results-*.svg: tables of bench/RESULTS.md and bench/SPEED.md.
architecture.svg: who tells whom what, as ARCHITECTURE.md and README.md have it.
page-light.webp, page-dark.webp: the live page in a browser, by test/page/pictures; page.sources says of which page.
"""

import hashlib
import json
import math
import pathlib
import re
import subprocess
import sys
from xml.sax.saxutils import escape

import programs

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
        # It begins with its end, for who shows a first frame alone.
        style += f".l{i} {{ animation: l{i} {seconds}s -{0.95 * seconds:g}s infinite }}\n"
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
    shown = subprocess.run([pathlib.Path(berth).parent / "berth-replay", "topology", "show", FOLDER / "dgx1.txt", "--json"], check=True, capture_output=True)
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
        body.append(text(min(x[source], end) + 6, y - 9, words, 'class="over"'))
    over = ".over { paint-order: stroke; stroke: #ffffff; stroke-width: 5px }\n@media (prefers-color-scheme: dark) { .over { stroke: #111827 } }"
    return svg(760, bottom + 16, "The life of a pod", "\n".join(body), over)


COLOURS = {"expected-waste": "#4f46e5", "fragmentation-gradient": "#b45309", "kube-scheduler": "#6b7280", "most-allocated": "#9ca3af"}


def curves(measured):
    """GPUs that are held as pods arrive, a line per policy."""
    first, low, high = 80, 76, 98
    x = lambda arrived: 60 + 520 * (arrived - first) / 50
    y = lambda held: 30 + 300 * (high - held) / (high - low)
    body = []
    for held in range(80, 99, 4):
        body.append(f'<line class="line" stroke-opacity=".25" x1="60" x2="580" y1="{y(held):.1f}" y2="{y(held):.1f}"/>')
        body.append(text(50, round(y(held) + 4, 1), f"{held} %", 'text-anchor="end" class="soft"'))
    for arrived in range(first, 131, 10):
        body.append(text(x(arrived), 350, f"{arrived} %", 'text-anchor="middle" class="soft"'))
    taken = []  # heights of labels, so that they stay apart
    for policy, held in sorted(measured.items(), key=lambda item: -item[1][-1]):
        points = " ".join(f"{x(first + i):.1f},{y(value):.1f}" for i, value in enumerate(held))
        body.append(f'<polyline points="{points}" fill="none" stroke="{COLOURS[policy]}" stroke-width="2"/>')
        at = max(y(held[-1]) + 4, taken[-1] + 17 if taken else 0)
        taken.append(at)
        body.append(f'<text x="588" y="{at:.1f}" style="fill: {COLOURS[policy]}">{escape(policy)} {held[-1]:.1f} %</text>')
    body.append(text(60, 18, "GPUs held, % of the cluster", 'class="soft"'))
    body.append(text(320, 372, "GPUs that the pods so far asked for, % of the cluster", 'text-anchor="middle" class="soft"'))
    return svg(860, 384, "GPUs held as pods arrive", "\n".join(body))


STATES = {"gathering": "other", "waiting": "other", "planned": "soft-box", "bind held": "box-full", "bound": "own"}


def gang(steps):
    """The members of a gang, a row each, and what becomes of them."""
    style = ".soft-box { fill: #c7d2fe } .box-full { fill: #a5b4fc } .cell { fill: #111827 } .full { fill: #ffffff }"
    body = [text(120 + 108 * i + 52, 24, happened, 'text-anchor="middle" class="soft"') for i, (happened, _) in enumerate(steps)]
    members = list(steps[-1][1])
    for row, member in enumerate(members):
        y = 36 + 40 * row
        body.append(text(14, y + 22, member))
        for i, (_, states) in enumerate(steps):
            if member not in states:
                continue
            state = states[member]
            body.append(f'<rect class="{STATES[state]}" x="{120 + 108 * i}" y="{y}" width="104" height="32" rx="3"/>')
            body.append(text(172 + 108 * i, y + 21, state, f'text-anchor="middle" class="{"full" if state == "bound" else "cell"}"'))
    body.append(text(120, 216, "Planned GPUs are kept for the gang. Its binds wait for each other.", 'class="soft"'))
    return svg(136 + 108 * len(steps), 230, "A gang of four pods", "\n".join(body), style)


BOXES = {  # x, y, width, what it is
    "kube-scheduler": (20, 40, 190, "asks about each GPU pod"),
    "Berth": (300, 40, 190, "the leader; standbys wait"),
    "API server": (300, 190, 190, "nodes, pods, claims, groups"),
    "node": (20, 330, 470, "kubelet, device plugin or DRA driver, berth-node"),
    "people": (580, 10, 200, "live page, kubectl berth"),
    "Prometheus": (580, 84, 200, "metrics, alerts, dashboards"),
}
ARROWS = [  # from, to, words, where the words stand
    ((210, 60), (300, 60), "filter, bind", (255, 54)),
    ((395, 94), (395, 190), "writes Bindings with berth.dev/devices, and Events", (405, 164)),
    ((375, 190), (375, 94), "watch", (336, 140)),
    ((115, 190), (115, 94), "watch", (125, 160)),
    ((395, 244), (395, 330), "kubelets watch pods; agents write facts of GPUs", (405, 292)),
    ((580, 37), (490, 58), "", (0, 0)),
    ((580, 111), (490, 78), "", (0, 0)),
]


def architecture():
    """The programs around Berth, and who tells whom what."""
    body = []
    for name, (x, y, width, what) in BOXES.items():
        body.append(f'<rect class="box" x="{x}" y="{y}" width="{width}" height="54" rx="6"/>')
        body.append(text(x + width / 2, y + 23, name, 'text-anchor="middle" font-weight="600"'))
        body.append(text(x + width / 2, y + 42, what, 'text-anchor="middle" class="soft" style="font-size: 11px"'))
    body.append('<path class="line" d="M115 190 V217 H300"/>')
    for (x, y), (u, v), words, at in ARROWS:
        size = math.hypot(u - x, v - y)
        dx, dy = 7 * (u - x) / size, 7 * (v - y) / size
        body.append(f'<path class="line" d="M{x} {y} L{u} {v} M{u - dx - dy / 2:.1f} {v - dy + dx / 2:.1f} L{u} {v} L{u - dx + dy / 2:.1f} {v - dy - dx / 2:.1f}"/>')
        centred = 'text-anchor="middle" ' if y == v else ""
        body.append("" if not words else text(at[0], at[1], words, centred + 'class="soft" style="font-size: 11px"'))
    return svg(800, 400, "Berth and what is around it", "\n".join(body))


def table(page, section, first):
    """The rows of the table of that page of bench/, under that heading, whose first heading cell begins with `first`."""
    text = (FOLDER.parent.parent / "bench" / page).read_text(encoding="utf-8")
    part = re.split(rf"^#+ {re.escape(section)}$", text, maxsplit=1, flags=re.MULTILINE)[1]
    part = re.split(r"^#", part, maxsplit=1, flags=re.MULTILINE)[0]
    lines = part.split("\n")
    cell = lambda line: line.split("|")[1].strip()
    begins = lambda line: cell(line).startswith(first) if first else not cell(line)
    at = next(i for i, line in enumerate(lines) if line.startswith("|") and set(line) - set("|- ") and begins(line))
    rows = []
    for line in lines[at:]:
        if not line.startswith("|"):
            break
        cells = [cell.strip().replace("**", "") for cell in line.strip("|").split("|")]
        if not set("".join(cells)) <= set("-"):
            rows.append(cells)
    return rows


# Names of series that are Berth's own.
OWN = ("expected-waste", "waste", "berth", "Berth", "power-saving", "classes", "with")


def bars(title, groups, low, high, unit):
    """groups: [(name, [(series, value)])]; the series of Berth is drawn in its own colour."""
    body, y = [text(14, 24, title, 'class="soft"')], 44
    for name, values in groups:
        body.append(text(14, y + 9 * len(values) + 4, name))
        for series, value in values:
            width = 430 * (value - low) / (high - low)
            body.append(f'<rect class="{"own" if series.startswith(OWN) else "other"}" x="170" y="{y}" width="{width:.1f}" height="14" rx="2"/>')
            body.append(text(round(178 + width, 1), y + 11, f"{value:g}{unit} {series}", 'class="soft" style="font-size: 11px"'))
            y += 18
        y += 8
    return svg(840, y + 6, title, "\n".join(body))


def steps(title, across, lines, low, high, unit):
    """lines: [(series, [value])], on logarithmic scales, a place for each of `across`."""
    x = lambda i: 90 + 480 * i / (len(across) - 1)
    y = lambda value: 40 + 270 * (math.log10(high) - math.log10(value)) / (math.log10(high) - math.log10(low))
    body, taken = [text(90, 22, title, 'class="soft"')], []
    for power in range(math.ceil(math.log10(low)), math.floor(math.log10(high)) + 1):
        body.append(f'<line class="line" stroke-opacity=".25" x1="90" x2="570" y1="{y(10**power):.1f}" y2="{y(10**power):.1f}"/>')
        body.append(text(82, round(y(10**power) + 4, 1), f"{10.0**power:g}{unit}", 'text-anchor="end" class="soft"'))
    for i, name in enumerate(across):
        body.append(text(x(i), 332, name, 'text-anchor="middle" class="soft"'))
    for series, values in sorted(lines, key=lambda line: -line[1][-1]):
        points = " ".join(f"{x(i):.1f},{y(value):.1f}" for i, value in enumerate(values) if value is not None)
        kind = 'style="stroke: #4f46e5"' if series.startswith(OWN) else 'style="stroke: #9ca3af"'
        body.append(f'<polyline points="{points}" fill="none" {kind} stroke-width="2"/>')
        at = max(y(values[-1]) + 4, taken[-1] + 16 if taken else 0)
        taken.append(at)
        body.append(text(578, round(at, 1), f"{series} {values[-1]:g}{unit}", 'style="font-size: 11px"'))
    return svg(840, 346, title, "\n".join(body))


def number(cell):
    """The first number of a cell; none where nothing was measured."""
    found = re.search(r"[+-]?[\d,]*\.?\d+", cell)
    return float(found.group(0).replace(",", "")) if found else None


def grouped(rows, names, label=lambda name: name):
    """A group of bars per row, those columns whose heading is in `names`."""
    at = [rows[0].index(name) for name in names]
    return [(label(row[0]), [(rows[0][i], number(row[i])) for i in at]) for row in rows[1:]]


def results():
    """Plots of the tables of bench/RESULTS.md."""
    of = lambda section, first: table("RESULTS.md", section, first)
    left = lambda held: round(6212 * (100 - float(held)) / 100)
    fgd = [(row[0], [("expected-waste", left(row[2])), ("FGD", left(row[1]))]) for row in of("Expected waste against FGD", "trace")[1:]]
    served = of("With departures", "trace")
    names = served[0][1:6]
    order = lambda row: sorted(((names[i], float(row[1 + i])) for i in range(5)), key=lambda one: -one[1])
    row_of = lambda name: next(row for row in served if row[0] == name)
    kept = [row for row in of("Room that is kept for pods that wait", "trace, seed")[1:] if row[1] == "longest wait"]
    waits = [(row[0], [("before", number(row[2])), ("with kept room", number(row[4])), ("run times said", number(row[5]))]) for row in kept]
    shares = grouped(of("Shares in two dimensions", "mix"), ["Berth", "hami-binpack", "gpushare", "volcano", "koordinator", "fluid"])
    classes = [row for row in of("Workload classes", "load") if row[0] in ("load", "1.0")]
    kinds = [(kind, [(row[1], number(row[classes[0].index(kind)])) for row in classes[1:]]) for kind in ("training", "batch")]
    power = of("Power", "policy")
    shown = [row for row in power[1:] if row[0].split(" ")[0] in ("fragmentation-gradient", "pwr-fgd", "expected-waste", "power-saving")]
    at = [power[0].index(f"{load} %") for load in (30, 50, 70, 90)]
    wires = grouped(of("Links", "machine"), ["first-fit", "NVIDIA best-effort", "HAMi", "berth"], label=lambda name: name.strip("`").split(" ")[0].split("`")[0][:19])
    mig = of("MIG", "the policy picks the device")
    devices = [(mig[0][i], [(row[0].strip("`").split("`")[0], number(row[i])) for row in mig[1:] if row[0].strip("`") in ("first-fit", "hami", "mfi", "src-drain", "berth")]) for i in range(1, 5)]
    gangs, rules = of("Gangs under Berth's plan and under rules like those of others", "workload"), []
    for name, rule, placed, *_ in gangs[1:]:
        if name:
            rules.append((name, []))
        rules[-1][1].append((rule, 100 * float(placed) / float(re.search(r"\d+", rules[-1][0]).group(0))))
    rules = [(name, [(rule, round(value, 1)) for rule, value in values]) for name, values in rules]
    stream = of("The chosen GPU is the used GPU", '`ARGS="-pretended -pods 200 -nodes 2 stream"`')
    planned = [("of 200 pods", [(stream[0][i].replace("with berth-node", "berth-node"), number(stream[1][i])) for i in (1, 2, 3)])]
    return {
        "idle": bars("GPUs that stay idle when pods for 130 % of 6,212 have come, by trace", fgd, 0, 900, ""),
        "served": bars("GPU-hours served at load 1.0, % of the demand (bars begin at 50 %)", [("mean of 11 traces", order(row_of("mean"))), ("multigpu50", order(row_of("multigpu50")))], 50, 100, " %"),
        "waits": bars("Longest wait of a pod of eight GPUs that started, minutes, by trace and seed", waits, 0, 400, " min"),
        "shares": bars("GPU-hours served where pods share GPUs, % of the demand, by mix (bars begin at 70 %)", shares, 70, 100, " %"),
        "classes": bars("GPU-hours served at load 1.0, % of what the class asks for (bars begin at 60 %)", kinds, 60, 100, " %"),
        "power": bars("Estimated power of 1,213 nodes, kW", [(power[0][i] + " held", [(row[0].split(" ")[0], float(row[i])) for row in shown]) for i in at], 0, 1800, " kW"),
        "links": bars("Ring bandwidth of the GPUs of a job, part of the best set (bars begin at .5)", wires, 0.5, 1, ""),
        "mig": bars("Memory of MIG devices accepted, % of what is asked for, by mix (bars begin at 80 %)", devices, 80, 94, " %"),
        "rules": bars("Gangs placed in 24 hours at load 0.9, % (bars begin at 40 %)", rules, 40, 100, " %"),
        "node": bars("Pods that get the GPUs that Berth planned", planned, 0, 200, ""),
    }


def speed():
    """Plots of the tables of bench/SPEED.md."""
    of = lambda section, first: table("SPEED.md", section, first)
    http = of("Filter and prioritize over HTTP", "")[1:]
    nodes = of("By number of nodes", "nodes")
    line = lambda name: [number(row[nodes[0].index(name)]) for row in nodes[1:]]
    throughput = of("In a real cluster", "5 rounds")[1:]
    gangs = of("Gangs of any size, as controllers make them", "members")
    late = [[number(cell) for cell in row[1].split("/")] for row in gangs[1:]]
    return {
        "http": bars("One call over HTTP, 5,000 names, median in microseconds", [("filter", [(row[0], number(row[1])) for row in http]), ("prioritize", [(row[0], number(row[2])) for row in http])], 0, 1600, " us"),
        "nodes": steps("Filter and prioritize of one pod, median, by number of nodes", [row[0] for row in nodes[1:]], [("berth", line("sum")), ("bare Beast", line("bare Beast, sum"))], 100, 30000, " us"),
        "throughput": bars("Pods a second through kube-scheduler, 1,000 nodes", [("in front of it", [(row[0], number(row[1])) for row in throughput])], 0, 140, ""),
        "gangs": steps("Time in which a gang is bound in part, worst of 30, by members", [row[0] for row in gangs[1:]], [(f"with Bindings of {name}", [row[i] for row in late]) for i, name in ((0, "0 ms"), (2, "100 ms"), (3, "300 ms"))], 0.03, 30, " s"),
    }


def page_sources():
    """A fingerprint of the live page's files."""
    files = sorted((FOLDER.parent.parent / "server/ui/page").iterdir())
    return hashlib.sha256(b"".join(file.name.encode() + file.read_bytes() for file in files)).hexdigest() + "\n"


def quotes_berth(berth):
    """Whether README.md shows what `berth explain` says of docs/pictures/lab.yaml today."""
    root = FOLDER.parent.parent
    command, shown = re.search(r"```console\n\$ berth (.*?)\n(.*?)```", (root / "README.md").read_text(encoding="utf-8"), re.DOTALL).groups()
    said = subprocess.run([berth, *command.split()], cwd=root, check=True, capture_output=True, text=True).stdout
    return " ".join(shown.split()) in " ".join(said.split())


def lines_of(measured):
    """As JSON, a line per policy."""
    return "{\n" + ",\n".join(f" {json.dumps(policy)}: {json.dumps(held)}" for policy, held in measured.items()) + "\n}\n"


def main():
    berth = pathlib.Path(sys.argv[1]).resolve()
    check, stale = "--check" in sys.argv, []
    output, measured = programs.demo(berth.parent / "berth-replay")
    written = {"demo.txt": output, "curves.json": lines_of(measured), "page.sources": page_sources()}
    drawn = {"demo": demo(output), "idle": idle(output), "links": links(berth), "pod": pod(), "curves": curves(measured)}
    drawn |= {"gang": gang(programs.gang(berth)), "architecture": architecture()}
    drawn |= {f"results-{name}": picture for name, picture in (results() | speed()).items()}
    written |= {f"{name}.svg": picture for name, picture in drawn.items()}
    if check and not quotes_berth(berth):
        stale.append("README.md shows another answer of `berth explain` than this Berth gives")
    for name, content in written.items():
        path = FOLDER / name
        if not check:  # make pictures has just taken those of the page
            path.write_text(content, encoding="utf-8")
        elif not path.exists() or path.read_text(encoding="utf-8") != content:
            stale.append(f"{path} is not of this Berth: make pictures")
    print("\n".join(stale) or f"{len(written)} files of docs/pictures are of this Berth")
    return 1 if stale else 0


if __name__ == "__main__":
    sys.exit(main())
