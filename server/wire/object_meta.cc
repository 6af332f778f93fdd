// SPDX-License-Identifier: Apache-2.0
#include "server/wire/object_meta.h"

#include "server/wire/json_fields.h"

namespace berth::wire {

Result<ObjectMeta> DecodeObjectMeta(const std::string& text) {
  ObjectMeta meta;
  BERTH_TRY_STATUS(ReadObject(text, [&](simdjson::ondemand::object object) -> Status {
    ForEachField(object, [&](std::string_view key, simdjson::ondemand::value value) {
      if (!IsField(key, "metadata")) return;
      ForEachField(value.get_object(),
                   [&](std::string_view name, simdjson::ondemand::value content) {
                     if (IsField(name, "namespace"))
                       meta.namespace_name = std::string_view(content.get_string());
                     if (IsField(name, "name")) meta.name = std::string_view(content.get_string());
                     if (IsField(name, "uid")) meta.uid = std::string_view(content.get_string());
                   });
    });
    return {};
  }));
  if (meta.name.empty()) return Invalid("metadata.name: want a name, got \"\"");
  return meta;
}

}  // namespace berth::wire
