// SPDX-License-Identifier: Apache-2.0
//
// ParseYaml: a YAML text of any origin -> the nodes of its one document.
//
// yaml-cpp has no limits, and it reads empty documents forever if a document begins with a comma.
// So ParseYaml first reads the text as events, which need no memory, and counts. It builds nodes
// only if the text is within these limits:
//
//   text         kMostYamlBytes, as much as a ConfigMap holds
//   nodes        kMostYamlNodes, where an alias counts as often as it is used
//   their texts  kMostYamlText bytes, with the texts of aliases
#pragma once

#include <yaml-cpp/yaml.h>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace berth {

constexpr std::size_t kMostYamlBytes = 1 << 20;
constexpr std::size_t kMostYamlNodes = 100'000;
constexpr std::size_t kMostYamlText = 4 << 20;

// A null node if the text has no document. Error: kInvalidArgument "ORIGIN:LINE: not YAML: ...",
// or with the limit that the text exceeds.
Result<YAML::Node> ParseYaml(const std::string& text, std::string_view origin);

// The documents of a YAML text as JSON, as kubectl reads manifests. An unquoted null, true, false
// or number keeps its type; all other values and all keys are texts. "<<" (merged keys) is refused,
// and a key that is there twice.

// One JSON text per document; documents without content are left out. A text that begins with '{'
// and a quoted key is JSON and returned unchanged. Each document is within the limits
// of ParseYaml. Error: kInvalidArgument "ORIGIN:LINE: ..." or, of a later document, "ORIGIN
// document 2:LINE: ..." where lines are counted from the beginning of the document.
Result<std::vector<std::string>> JsonDocuments(const std::string& text, std::string_view origin);

}  // namespace berth
