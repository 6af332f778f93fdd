// SPDX-License-Identifier: Apache-2.0
//
// Reading the fields of JSON objects as Kubernetes writes them: keys in any case, null means "not
// there". For decoders alone: what takes simdjson's values throws simdjson::simdjson_error, and
// ReadObject and ReadNamed stop it.
#pragma once

#include <simdjson.h>

#include <string>
#include <string_view>

#include "base/padded_text.h"
#include "base/result.h"
#include "server/wire/json/object_meta.h"

namespace berth::wire {

static_assert(PaddedText::kPadding >= simdjson::SIMDJSON_PADDING);

inline simdjson::padded_string_view ViewOf(const PaddedText& text) {
  return simdjson::padded_string_view(text.data(), text.size(), text.capacity());
}

inline std::string TextOf(simdjson::ondemand::value content) {
  return std::string(std::string_view(content.get_string()));
}

// The text, or a number as it is written: people leave the quotes out.
std::string_view ScalarText(simdjson::ondemand::value content);

// Whether a key is that field, whatever its case.
bool IsField(std::string_view key, std::string_view field);

// Calls read(key, value) for every field that is not null.
template <class Read>
void ForEachField(simdjson::ondemand::object fields, Read read) {
  for (auto field : fields) {
    const std::string_view key = field.unescaped_key();
    simdjson::ondemand::value content = field.value();
    if (!content.is_null()) read(key, content);
  }
}

// Calls read(value) for the field of that name, where there is one that is not null.
template <class Read>
void WithField(simdjson::ondemand::object fields, std::string_view name, Read read) {
  ForEachField(fields, [&](std::string_view key, simdjson::ondemand::value content) {
    if (key == name) read(content);
  });
}

// Calls read(object) with the one object that the text is. Error: kInvalidArgument for what is not
// JSON or has a type that Kubernetes does not give it.
template <class Read>
Status ReadObject(const PaddedText& text, Read read) {
  try {
    simdjson::ondemand::parser parser;
    simdjson::ondemand::document document = parser.iterate(ViewOf(text));
    return read(document.get_object());
  } catch (const simdjson::simdjson_error& problem) {
    return Invalid(problem.what());
  }
}

// What is absent stays empty.
ObjectMeta ReadMetadata(simdjson::ondemand::object metadata);
// The same, of the object that has the metadata.
ObjectMeta ReadObjectMeta(simdjson::ondemand::object object);

// Reads the one object that the text is: its metadata, and read(key, value) for every other field
// but the kind. Error: as ReadObject; kInvalidArgument for an object of another kind (lists leave
// it out) or without a name.
template <class Read>
Result<ObjectMeta> ReadNamed(const PaddedText& text, std::string_view kind, Read read) {
  ObjectMeta meta;
  std::string found(kind);
  BERTH_TRY_STATUS(ReadObject(text, [&](simdjson::ondemand::object fields) -> Status {
    ForEachField(fields, [&](std::string_view key, simdjson::ondemand::value content) {
      if (IsField(key, "kind")) {
        found = TextOf(content);
      } else if (IsField(key, "metadata")) {
        meta = ReadMetadata(content.get_object());
      } else {
        read(key, content);
      }
    });
    return {};
  }));
  if (found != kind) {
    return Invalid("kind: want " + std::string(kind) + ", got \"" + found + "\"");
  }
  if (meta.name.empty()) return Invalid("metadata.name: want a name, got \"\"");
  return meta;
}

}  // namespace berth::wire
