// SPDX-License-Identifier: Apache-2.0
#include "server/wire/json/wall_time.h"

#include <chrono>

#include "base/number.h"

namespace berth::wire {
namespace {

using std::chrono::minutes;
using std::chrono::seconds;

constexpr int kFirstYear = 1970, kLastYear = 2199;

// The number that the text has at a place, as so many digits.
std::optional<int> NumberAt(std::string_view text, std::size_t at, std::size_t digits, int most) {
  if (text.size() < at + digits) return std::nullopt;
  const std::string_view part = text.substr(at, digits);
  if (part.find_first_not_of("0123456789") != std::string_view::npos) return std::nullopt;
  const auto number = ParseInt(part, 0, most);
  return number ? std::optional(static_cast<int>(*number)) : std::nullopt;
}

// "Z", "+08:00": how far the clock that was read is ahead of UTC.
std::optional<minutes> OffsetOf(std::string_view text) {
  if (text == "Z") return minutes(0);
  if (text.size() != 6 || (text[0] != '+' && text[0] != '-') || text[3] != ':') return std::nullopt;
  const auto hour = NumberAt(text, 1, 2, 23);
  const auto minute = NumberAt(text, 4, 2, 59);
  if (!hour || !minute) return std::nullopt;
  const minutes offset = std::chrono::hours(*hour) + minutes(*minute);
  return text[0] == '-' ? -offset : offset;
}

}  // namespace

std::optional<WallTime> ParseTime(std::string_view text) {
  constexpr std::string_view kForm = "0000-00-00T00:00:00";
  if (text.size() <= kForm.size()) return std::nullopt;
  for (std::size_t i = 0; i < kForm.size(); ++i) {
    if (kForm[i] != '0' && kForm[i] != text[i]) return std::nullopt;
  }
  const auto year = NumberAt(text, 0, 4, kLastYear), month = NumberAt(text, 5, 2, 12),
             day = NumberAt(text, 8, 2, 31), hour = NumberAt(text, 11, 2, 23),
             minute = NumberAt(text, 14, 2, 59), second = NumberAt(text, 17, 2, 60);
  if (!year || !month || !day || !hour || !minute || !second) return std::nullopt;
  if (*year < kFirstYear) return std::nullopt;
  const std::chrono::year_month_day date{std::chrono::year(*year),
                                         std::chrono::month(static_cast<unsigned>(*month)),
                                         std::chrono::day(static_cast<unsigned>(*day))};
  std::string_view zone = text.substr(kForm.size());
  if (zone.starts_with('.')) {
    const std::size_t end = zone.find_first_not_of("0123456789", 1);
    zone = end == std::string_view::npos ? "" : zone.substr(end);
  }
  const auto offset = OffsetOf(zone);
  if (!offset || !date.ok()) return std::nullopt;
  return std::chrono::sys_days(date) + std::chrono::hours(*hour) + minutes(*minute) +
         seconds(*second) - *offset;
}

}  // namespace berth::wire
