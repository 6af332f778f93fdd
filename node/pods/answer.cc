// SPDX-License-Identifier: Apache-2.0
#include "node/pods/answer.h"

#include <algorithm>
#include <set>

namespace berth::node {
namespace {

using Names = std::set<std::string, std::less<>>;

Names NamesOf(std::span<const std::string> devices) { return {devices.begin(), devices.end()}; }

}  // namespace

bool IsAnswer(const PreferredQuestion& question, const std::vector<std::string>& devices) {
  const Names chosen = NamesOf(devices);
  const Names available = NamesOf(question.available);
  return devices.size() == question.size && chosen.size() == devices.size() &&
         std::ranges::includes(available, chosen) &&
         std::ranges::includes(chosen, NamesOf(question.must));
}

std::vector<std::string> AnyAnswer(const PreferredQuestion& question,
                                   std::span<const std::string> wanted,
                                   std::span<const std::string> avoid) {
  const Names available = NamesOf(question.available);
  const Names avoided = NamesOf(avoid);
  std::vector<std::string> answer;
  Names chosen;
  const auto take = [&](const auto& from, bool avoided_too) {
    for (const std::string& device : from) {
      if (answer.size() >= question.size) return;
      if (!available.contains(device) || (!avoided_too && avoided.contains(device))) continue;
      if (chosen.insert(device).second) answer.push_back(device);
    }
  };
  take(question.must, true);
  take(wanted, true);
  take(available, false);
  take(available, true);
  return answer;
}

std::vector<std::string> Without(const PreferredQuestion& question,
                                 std::span<const std::string> avoid) {
  const Names avoided = NamesOf(avoid);
  const Names must = NamesOf(question.must);
  std::vector<std::string> left;
  for (const std::string& device : question.available) {
    if (!avoided.contains(device) || must.contains(device)) left.push_back(device);
  }
  return left;
}

}  // namespace berth::node
