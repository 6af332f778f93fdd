// SPDX-License-Identifier: Apache-2.0
#include "server/wire/pod/run_time.h"

#include <array>
#include <optional>
#include <string>

#include "base/number.h"
#include "cluster/values/pod_request.h"

namespace berth::wire {
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
