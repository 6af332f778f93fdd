# SPDX-License-Identifier: Apache-2.0
"""Does to the tree in the folder what CONTRIBUTING.md there says: files of their own, and lines in registry.cc."""

import pathlib
import re
import sys

root = pathlib.Path(sys.argv[1])
text = (root / "CONTRIBUTING.md").read_text(encoding="utf-8")
blocks = re.findall(r'^```cpp title="([^"]+)"\n(.*?)^```$', text, re.MULTILINE | re.DOTALL)
registry = root / "scoring/registry.cc"
# What stands before the lines that are added, each once in the file.
PLACES = {"kScorers": "kScorers = std::to_array<ScorerEntry>({\n", "profiles": "static std::vector<ProfileSpec> profiles = {\n"}
done = []
for title, content in blocks:
    path, _, place = title.partition(": ")
    done.append(title)
    if not place:
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(content, encoding="utf-8")
        continue
    source = registry.read_text(encoding="utf-8")
    assert source.count(PLACES[place]) == 1, f"registry.cc has no place for {place}"
    source = source.replace(PLACES[place], PLACES[place] + content)
    if place == "kScorers":
        include = '#include "scoring/scorers/workload_fit.h"\n'
        assert source.count(include) == 1
        source = source.replace(include, '#include "scoring/scorers/whole_gpus_left.h"\n' + include)
    registry.write_text(source, encoding="utf-8")
assert len(done) == 5, f"want the five blocks of the steps, got {done}"
