// SPDX-License-Identifier: Apache-2.0
#include "server/wire/json/object_meta.h"

#include <limits>
#include <utility>

#include "base/text.h"
#include "server/wire/json/object_reader.h"

namespace berth::wire {

FieldError::FieldError(const simdjson::simdjson_error& wrong, std::string place, value content)
    : simdjson_error(wrong.error()) {
  using simdjson::ondemand::json_type;
  constexpr std::size_t kMostShown = 40;  // bytes
  json_type type = json_type::null;
  if (content.type().get(type) != simdjson::SUCCESS) type = json_type::null;
  text_ = std::move(place) + ": want the type that Kubernetes gives it, got ";
  if (type == json_type::object || type == json_type::array) {  // readers enter some unseen
    text_ += type == json_type::object ? "an object" : "a list";
    text_ += ", or something else in it";
    return;
  }
  text_ += Shortened(berth::Trimmed(content.raw_json_token()), kMostShown);
  if (type == json_type::number || type == json_type::boolean) text_ += "; put texts in quotes";
}

std::string SentenceOf(const simdjson::simdjson_error& wrong) {
  const std::string text = wrong.what();
  return text.substr(text.starts_with('.') ? 1 : 0);
}

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
    ForEachItem(content.get_array(),
                [&meta](value finalizer) { meta.finalizers.push_back(TextOf(finalizer)); });
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
