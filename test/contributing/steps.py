# SPDX-License-Identifier: Apache-2.0
"""Does to the tree in the folder what CONTRIBUTING.md there says: files of their own, and lines in files that are there.

Prints the sources that are to be compiled, tests last.
"""

import pathlib
import re
import sys

root = pathlib.Path(sys.argv[1])
text = (root / "CONTRIBUTING.md").read_text(encoding="utf-8")
blocks = re.findall(r'^```(?:cpp|markdown) title="([^"]+)"\n(.*?)^```$', text, re.MULTILINE | re.DOTALL)
# What stands before the lines that are added, each once in its file.
PLACES = {
    "scoring/registry.cc: kScorers": "kScorers = std::to_array<ScorerEntry>({\n",
    "scoring/registry.cc: profiles": "static std::vector<ProfileSpec> profiles = {\n",
    "scoring/reason.h: reasons": "PodRequest::refusal is the text\n",
    "scoring/reason.cc: rows": 'set(kPodRefused, kNever, "pod_refused", "");\n',
    "scoring/filters/device_fit.cc: CheckHealth": "Reason CheckHealth(const Node& node, const RequestShape& shape) {\n",
    "docs/my-pod-waits.md: never": "## Never, as pod and node are\n\n| text | cause | cure |\n|---|---|---|\n",
    "server/wire/pod/pod_needs.cc: keys": 'constexpr std::string_view kMinMemoryKey = "berth.dev/min-gpu-memory-gib";\n',
    "server/wire/pod/pod_needs.cc: IsGpuNeedKey": "bool IsGpuNeedKey(std::string_view key) {",
    "server/wire/pod/pod_needs.cc: ReadGpuNeed": "Status ReadGpuNeed(std::string_view key, std::string_view value, RequestShape& shape) {\n",
    "server/dialects/berth/berth_dialect.cc: names": "kNames =\n",
    "docs/pods.md: annotations": "memory that each GPU has at least, or the part that stands for it |\n",
    "server/pages/cluster_metrics.cc: AddClusterMetrics": "void AddClusterMetrics(const Snapshot& snapshot, MetricsText& text) {\n",
    "server/dialects/registry.cc: AllDialects": "in_order.push_back(MakeIntel());\n",
}
# Files that a block in `registry` needs the header of.
INCLUDES = {
    "scoring/registry.cc: kScorers": "scoring/scorers/whole_gpus_left.h",
    "server/dialects/registry.cc: AllDialects": "server/dialects/slices/slices_dialect.h",
}
# A section of CONTRIBUTING.md has so many of them.
WANTED = {"Add a scorer": 5, "Add a reason": 5, "Add an annotation": 6, "Add a metric": 2, "Add an integration": 4}

sources, places = [], set()
for title, content in blocks:
    path = title.partition(": ")[0]
    if path == title:
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(content, encoding="utf-8")
    else:
        file = (root / path).read_text(encoding="utf-8")
        assert file.count(PLACES[title]) == 1, f"{path} has no place for {title}"
        file = file.replace(PLACES[title], PLACES[title] + content)
        if title in INCLUDES:
            file = file.replace("\n\n#include", f'\n\n#include "{INCLUDES[title]}"\n#include', 1)
        (root / path).write_text(file, encoding="utf-8")
        places.add(title)
    if path.endswith(".cc") and path not in sources:
        sources.append(path)
assert places == set(PLACES), f"CONTRIBUTING.md says nothing of {set(PLACES) - places}"
for section, wanted in WANTED.items():
    part = re.search(rf"^## {section}.*?(?=^## )", text, re.MULTILINE | re.DOTALL).group(0)
    assert part.count(' title="') == wanted, f"{section}: want {wanted} blocks, got {part.count(' title=')}"
print(*sorted(sources, key=lambda path: (path.startswith("test/"), path)), sep="\n")
