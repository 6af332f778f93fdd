// SPDX-License-Identifier: Apache-2.0
//
// The ecosystems by name: one for each folder of server/dialects. The guards of test/arch ask here.
#pragma once

#include <cctype>
#include <filesystem>
#include <set>
#include <string>
#include <string_view>

#include "test/support/build_paths.h"

namespace berth::test {

// The folders, and Kueue, which has none of its own: server/dialects/groups reads it. Berth's own
// words are everybody's, and three folders have no ecosystem's name but what several share.
inline std::set<std::string> Ecosystems() {
  static const std::set<std::string> others = {"berth", "devices", "groups", "vgpu"};
  std::set<std::string> names = {"kueue"};
  const std::filesystem::path dialects = std::filesystem::path(SourceDir()) / "server/dialects";
  for (const auto& entry : std::filesystem::directory_iterator(dialects)) {
    const std::string name = entry.path().filename().string();
    if (entry.is_directory() && !others.contains(name)) names.insert(name);
  }
  return names;
}

// Whether the text has the name at that position, in any case: "HAMi's", "kVolcano", "dra_gpus".
// Two words are not one (GpuShare), and a short name has to be a word (not "drain", "timestamps").
inline bool HasNameAt(std::string_view text, std::size_t at, std::string_view name) {
  const auto is = [text](std::size_t i, int (*kind)(int)) {
    return i < text.size() && kind(static_cast<unsigned char>(text[i])) != 0;
  };
  for (std::size_t i = 0; i < name.size(); ++i) {
    if (std::tolower(static_cast<unsigned char>(text[at + i])) != name[i]) return false;
    if (i > 0 && is(at + i, std::isupper) && is(at + i - 1, std::islower)) return false;
  }
  const std::string_view rest = text.substr(at + name.size());
  if (rest.starts_with("lton") && name == "hami") return false;  // Hamilton's
  constexpr std::size_t kShort = 3;
  if (name.size() > kShort) return true;
  const bool begins =
      at == 0 || !is(at - 1, std::isalpha) || (is(at, std::isupper) && is(at - 1, std::islower));
  return begins && !is(at + name.size(), std::islower);
}

// The ecosystems that the text names.
inline std::set<std::string> EcosystemsIn(std::string_view text) {
  static const std::set<std::string> all = Ecosystems();
  std::set<std::string> found;
  for (const std::string& name : all) {
    for (std::size_t at = 0; at + name.size() <= text.size(); ++at) {
      if (!HasNameAt(text, at, name)) continue;
      found.insert(name);
      break;
    }
  }
  return found;
}

}  // namespace berth::test
