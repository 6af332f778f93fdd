// SPDX-License-Identifier: Apache-2.0
//
// ParseYaml: a YAML text of any origin -> the nodes of its one document.
//
// yaml-cpp builds whatever it is given, and it reads empty documents for ever if a document begins
// with a comma. So the text is first read as events, which keep nothing, and its nodes are counted.
// Nodes are made only of a text within the limits:
//
//   text         kMostYamlBytes, as much as a ConfigMap holds
//   nodes        kMostYamlNodes, where an alias counts as often as it is used
//   their texts  kMostYamlText bytes, with the texts of aliases
#pragma once

#include <yaml-cpp/yaml.h>

#include <cstddef>
#include <string>
#include <string_view>

#include "base/result.h"

namespace berth {

constexpr std::size_t kMostYamlBytes = 1 << 20;
constexpr std::size_t kMostYamlNodes = 100'000;
constexpr std::size_t kMostYamlText = 4 << 20;

// A null node where the text has no document. Error: kInvalidArgument "ORIGIN:LINE: not YAML: ...",
// or with the limit that the text exceeds.
Result<YAML::Node> ParseYaml(const std::string& text, std::string_view origin);

}  // namespace berth
