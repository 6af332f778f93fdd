// SPDX-License-Identifier: Apache-2.0
//
// Bodies captured from real kube-schedulers, see data_dir.h.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "cluster/node/node.h"

namespace berth::test {

inline constexpr std::string_view kSchedulers[] = {"v1.20", "v1.26", "v1.36"};

// The folder of the captures.
std::filesystem::path CaptureDir();

// The files of that scheduler whose name continues with "-VERB" and that are bodies (.json or
// .json.gz), sorted.
std::vector<std::filesystem::path> Captures(std::string_view scheduler, std::string_view verb);

// The text; .gz is unpacked. Ends the test on failure.
std::string ReadCapture(const std::filesystem::path& file);

// Every node that any full-node body of that scheduler shows, once; without `large` those with
// thousands of nodes are left out.
std::vector<NodeSpec> CapturedNodes(std::string_view scheduler, bool large);

// The items of "Nodes":{..,"items":[{..},{..}]}, byte for byte, by a reading of its own: braces are
// counted, texts skipped. Empty where Nodes is null.
std::vector<std::string_view> RawItems(std::string_view text);

// The name of a node as a scheduler writes it, name first; "" if it is not written so.
std::string NameOfItem(std::string_view item);

}  // namespace berth::test
