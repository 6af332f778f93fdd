// SPDX-License-Identifier: Apache-2.0
#include "server/why/meant_resource.h"

#include <set>
#include <vector>

#include "base/text.h"

namespace berth {
namespace {

constexpr std::size_t kMostWrong = 2;   // letters
constexpr std::size_t kMostNames = 16;  // of a sentence, and of the nodes

// The names behind "Insufficient", with a domain: "example.com/gpus".
std::vector<std::string> LackedNames(std::string_view said) {
  constexpr std::string_view kBefore = "Insufficient ";
  std::vector<std::string> names;
  for (std::size_t at = said.find(kBefore); at != said.npos && names.size() < kMostNames;
       at = said.find(kBefore)) {
    said.remove_prefix(at + kBefore.size());
    std::string_view name = said.substr(0, said.find_first_of(", "));
    while (name.ends_with('.')) name.remove_suffix(1);
    if (name.find('/') != name.npos) names.emplace_back(name);
  }
  return names;
}

std::set<std::string> Offered(const Snapshot& snapshot) {
  std::set<std::string> names;
  for (NodeIndex i = 0; i < snapshot.size() && names.size() < kMostNames; ++i) {
    const std::string& name = snapshot.node(i).spec().gpu_resource;
    if (!name.empty()) names.insert(name);
  }
  return names;
}

}  // namespace

std::string MeantResource(std::string_view scheduler_said, const Snapshot& snapshot) {
  const std::set<std::string> offered = Offered(snapshot);
  for (const std::string& name : LackedNames(scheduler_said)) {
    if (offered.contains(name)) continue;
    for (const std::string& other : offered) {
      if (EditDistance(name, other) > kMostWrong) continue;
      return "Berth does not know the resource " + name + ", did you mean " + other + "?";
    }
  }
  return "";
}

}  // namespace berth
