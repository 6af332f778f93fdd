// SPDX-License-Identifier: Apache-2.0
#include "server/dialects/hami/hami_lock.h"

#include <chrono>

#include "base/number.h"
#include "server/wire/lease_json.h"
#include "server/wire/object_reader.h"
#include "server/wire/strict_json.h"

namespace berth::dialects {
namespace {

using std::chrono::minutes;
using std::chrono::seconds;
using wire::ForEachField;
using wire::Json;
using wire::ReadObject;

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

// RFC 3339; fractions of a second are passed over.
std::optional<WallTime> TimeOf(std::string_view text) {
  constexpr std::string_view kForm = "0000-00-00T00:00:00";
  if (text.size() <= kForm.size()) return std::nullopt;
  for (std::size_t i = 0; i < kForm.size(); ++i) {
    if (kForm[i] != '0' && kForm[i] != text[i]) return std::nullopt;
  }
  const auto year = NumberAt(text, 0, 4, 9999), month = NumberAt(text, 5, 2, 12),
             day = NumberAt(text, 8, 2, 31), hour = NumberAt(text, 11, 2, 23),
             minute = NumberAt(text, 14, 2, 59), second = NumberAt(text, 17, 2, 60);
  if (!year || !month || !day || !hour || !minute || !second) return std::nullopt;
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

}  // namespace

Result<HamiLock> ParseHamiLock(std::string_view text) {
  const std::size_t first = text.find(',');
  const std::size_t second = first == std::string_view::npos ? first : text.find(',', first + 1);
  HamiLock lock;
  const auto since = TimeOf(text.substr(0, first));
  bool well_formed = since.has_value();
  if (first != std::string_view::npos) {
    well_formed = well_formed && second != std::string_view::npos &&
                  text.find(',', second + 1) == std::string_view::npos;
  }
  if (!well_formed) {
    return Invalid("want TIME,NAMESPACE,POD with the time as 2026-08-21T10:00:00Z, got \"" +
                   std::string(text.substr(0, 100)) + "\"");
  }
  lock.since = *since;
  if (first != std::string_view::npos) {
    lock.namespace_name = text.substr(first + 1, second - first - 1);
    lock.pod = text.substr(second + 1);
  }
  return lock;
}

std::string EncodeHamiLock(WallTime now, const PodId& pod) {
  return wire::SecondTime(now) + "," + pod.namespace_name + "," + pod.name;
}

Result<LockedNode> DecodeLockedNode(const PaddedText& text) {
  LockedNode node;
  BERTH_TRY_STATUS(ReadObject(text, [&node](simdjson::ondemand::object fields) -> Status {
    ForEachField(fields, [&node](std::string_view key, simdjson::ondemand::value metadata) {
      if (key != "metadata") return;
      ForEachField(metadata.get_object(), [&node](std::string_view name, auto content) {
        if (name == "resourceVersion") {
          node.resource_version = std::string_view(content.get_string());
        }
        if (name != "annotations") return;
        ForEachField(content.get_object(), [&node](std::string_view annotation, auto value) {
          if (annotation == kHamiLockAnnotation) node.lock = std::string_view(value.get_string());
        });
      });
    });
    return {};
  }));
  if (node.resource_version.empty()) return Invalid("want a Node with a resourceVersion, got none");
  return node;
}

std::string EncodeLockPatch(std::string_view resource_version, std::string_view lock) {
  Json annotations = {{kHamiLockAnnotation, nullptr}};
  if (!lock.empty()) annotations[std::string(kHamiLockAnnotation)] = lock;
  return wire::JsonText(
      {{"metadata",
        {{"resourceVersion", resource_version}, {"annotations", std::move(annotations)}}}});
}

}  // namespace berth::dialects
