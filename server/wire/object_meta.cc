// SPDX-License-Identifier: Apache-2.0
#include "server/wire/object_meta.h"

#include "server/wire/object_reader.h"

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

Result<ObjectMeta> DecodeObjectMeta(const PaddedText& text) {
  ObjectMeta meta;
  BERTH_TRY_STATUS(ReadObject(text, [&meta](object whole) -> Status {
    meta = ReadObjectMeta(whole);
    return {};
  }));
  if (meta.name.empty()) return Invalid("metadata.name: want a name, got \"\"");
  return meta;
}

}  // namespace berth::wire
