// SPDX-License-Identifier: Apache-2.0
#include "server/wire/pod/pod_series.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <optional>
#include <string>

#include "base/number.h"
#include "base/random.h"
#include "cluster/values/pod_request.h"

namespace berth::wire {

namespace {

constexpr std::string_view kNumerals = "0123456789", kJoints = "-._";
// k8s.io/apimachinery/pkg/util/rand: names that are made of a generateName end so.
constexpr std::string_view kDrawnFrom = "bcdfghjklmnpqrstvwxz2456789";
constexpr std::size_t kDrawnBytes = 5;

bool IsNumeral(char c) { return c >= '0' && c <= '9'; }

bool LooksDrawn(std::string_view part) {
  if (part.size() < kDrawnBytes) return false;
  if (part.size() == kDrawnBytes && part.find_first_not_of(kDrawnFrom) == std::string_view::npos) {
    return true;
  }
  int groups = IsNumeral(part.front()) ? 1 : 0;
  for (std::size_t i = 1; i < part.size(); ++i) {
    if (IsNumeral(part[i]) && !IsNumeral(part[i - 1])) ++groups;
  }
  return groups >= 2;
}

std::string_view WithoutEnd(std::string_view name, std::string_view characters) {
  return name.substr(0, name.find_last_not_of(characters) + 1);  // npos + 1 is 0
}

}  // namespace

std::string_view StemOf(std::string_view name) {
  while (!name.empty()) {
    const std::size_t joint = name.find_last_of(kJoints);
    const std::size_t begin = joint == std::string_view::npos ? 0 : joint + 1;
    std::string_view shorter = WithoutEnd(name, kNumerals);
    // A name that is all one part may be a word.
    if (begin > 0 && LooksDrawn(name.substr(begin))) shorter = name.substr(0, begin);
    shorter = WithoutEnd(shorter, kJoints);
    if (shorter.size() == name.size()) break;
    name = shorter;
  }
  return name;
}

std::uint64_t SeriesOf(const PodParts& parts) {
  if (!parts.completes || parts.of_daemon_set) return 0;
  Digester series;
  series.Add(parts.controller_kind);
  series.Add(StemOf(parts.controller.empty() ? parts.id.name : parts.controller_name));
  const std::uint64_t number = series.digest().high;
  return number == 0 ? 1 : number;
}

namespace {

struct Unit {
  char letter;
  std::int64_t seconds;
};
constexpr std::array<Unit, 4> kUnits = {{{'d', 86'400}, {'h', 3600}, {'m', 60}, {'s', 1}}};

// Empty: it is no duration, or one out of range.
std::optional<std::int64_t> SecondsIn(std::string_view text) {
  std::int64_t sum = 0;
  for (const Unit& unit : kUnits) {
    const std::size_t at = text.find(unit.letter);
    if (at == std::string_view::npos) continue;
    const auto number = ParseInt(text.substr(0, at), 0, kMostRunSeconds / unit.seconds);
    if (!number) return std::nullopt;
    sum += *number * unit.seconds;
    text.remove_prefix(at + 1);
  }
  if (!text.empty() || sum < 1 || sum > kMostRunSeconds) return std::nullopt;
  return sum;
}

}  // namespace

Result<std::int64_t> ReadExpectedDuration(std::string_view text) {
  if (const auto seconds = SecondsIn(text)) return *seconds;
  return Invalid("annotation " + std::string(kExpectedDurationKey) +
                 ": want a duration such as 2h30m, of d, h, m and s, up to 365d, got \"" +
                 std::string(text.substr(0, 40)) + "\"");
}

}  // namespace berth::wire
