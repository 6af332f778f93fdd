// SPDX-License-Identifier: Apache-2.0
#include "server/dialects/hami/hami_lock_annotation.h"

#include "server/wire/api/lease_json.h"
#include "server/wire/json/object_reader.h"
#include "server/wire/json/strict_json.h"
#include "server/wire/json/wall_time.h"

namespace berth::dialects {
namespace {

using wire::ForEachField;
using wire::Json;
using wire::ReadObject;

}  // namespace

Result<HamiLock> ParseHamiLock(std::string_view text) {
  const std::size_t first = text.find(',');
  const std::size_t second = first == std::string_view::npos ? first : text.find(',', first + 1);
  HamiLock lock;
  const auto since = wire::ParseTime(text.substr(0, first));
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
