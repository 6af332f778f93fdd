// SPDX-License-Identifier: Apache-2.0
#include "server/wire/json/object_meta.h"

#include <limits>

#include "base/text.h"
#include "server/wire/json/object_reader.h"

namespace berth::wire {

using simdjson::ondemand::object;
using simdjson::ondemand::value;

ObjectMeta ReadMetadata(object metadata) {
  ObjectMeta meta;
  ForEachField(metadata, [&meta](std::string_view key, value content) {
    if (IsField(key, "namespace")) meta.namespace_name = TextOf(content);
    if (IsField(key, "name")) meta.name = TextOf(content);
    if (IsField(key, "uid")) meta.uid = TextOf(content);
    if (IsField(key, "resourceVersion")) meta.resource_version = TextOf(content);
    if (IsField(key, "creationTimestamp")) meta.created = TextOf(content);
    if (IsField(key, "deletionTimestamp")) meta.deleting = true;
    if (!IsField(key, "finalizers")) return;
    for (auto finalizer : content.get_array()) meta.finalizers.push_back(TextOf(finalizer.value()));
  });
  return meta;
}

ObjectMeta ReadObjectMeta(object whole) {
  ObjectMeta meta;
  ForEachField(whole, [&meta](std::string_view key, value content) {
    if (IsField(key, "metadata")) meta = ReadMetadata(content.get_object());
  });
  return meta;
}

std::int64_t VersionNumber(std::string_view resource_version) {
  return ParseInt(resource_version, 0, std::numeric_limits<std::int64_t>::max()).value_or(0);
}

Result<ObjectMeta> DecodeObjectMeta(const PaddedText& text) {
  ObjectMeta meta;
  BERTH_TRY_STATUS(ReadObject(text, [&meta](object whole) -> Status {
    meta = ReadObjectMeta(whole);
    return {};
  }));
  if (meta.name.empty()) return Invalid("metadata.name: want a name, got \"\"");
  return meta;
}

Status CheckLength(std::string_view text, std::size_t most, std::string_view what) {
  if (text.size() <= most) return {};
  return Invalid(std::string(what) + ": want at most " + std::to_string(most) + " bytes, got " +
                 std::to_string(text.size()));
}

Status CheckNames(const PodId& id, std::string_view place) {
  const std::string at(place);
  BERTH_TRY_STATUS(CheckLength(id.name, kMostNameBytes, at + ".name"));
  BERTH_TRY_STATUS(CheckLength(id.namespace_name, kMostNameBytes, at + ".namespace"));
  return CheckLength(id.uid, kMostUidBytes, at + ".uid");
}

}  // namespace berth::wire
