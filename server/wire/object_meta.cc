// SPDX-License-Identifier: Apache-2.0
#include "server/wire/object_meta.h"

#include "server/wire/object_reader.h"

namespace berth::wire {

using simdjson::ondemand::object;
using simdjson::ondemand::value;

ObjectMeta ReadObjectMeta(object whole) {
  ObjectMeta meta;
  ForEachField(whole, [&](std::string_view key, value content) {
    if (!IsField(key, "metadata")) return;
    ForEachField(content.get_object(), [&](std::string_view name, value text) {
      if (IsField(name, "namespace")) meta.namespace_name = std::string_view(text.get_string());
      if (IsField(name, "name")) meta.name = std::string_view(text.get_string());
      if (IsField(name, "uid")) meta.uid = std::string_view(text.get_string());
    });
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
