// SPDX-License-Identifier: Apache-2.0
//
// Reading the fields of JSON objects as Kubernetes writes them: keys in any case, null means "not
// there". For decoders alone: what takes simdjson's values throws simdjson::simdjson_error, and
// ReadObject and ReadNamed stop it.
#pragma once

#include <simdjson.h>

#include <cstddef>
#include <string>
#include <string_view>

#include "base/padded_text.h"
#include "base/result.h"
#include "server/wire/json/object_meta.h"

namespace berth::wire {

// What readers of JSON are given.
using simdjson::ondemand::array, simdjson::ondemand::object, simdjson::ondemand::value;

static_assert(PaddedText::kPadding >= simdjson::SIMDJSON_PADDING);

inline simdjson::padded_string_view ViewOf(const PaddedText& text) {
  return simdjson::padded_string_view(text.data(), text.size(), text.capacity());
}

inline std::string TextOf(value content) {
  return std::string(std::string_view(content.get_string()));
}

// The text, or a number as it is written: people leave the quotes out.
std::string_view ScalarText(value content);

// Whether a key is that field, whatever its case.
bool IsField(std::string_view key, std::string_view field);

// A field of another type than Kubernetes gives it, with its place:
// ".spec.tolerations: want the type that Kubernetes gives it, got an object, ...".
class FieldError : public simdjson::simdjson_error {
 public:
  // content: the field.
  FieldError(const simdjson::simdjson_error& wrong, std::string place, value content);

  [[nodiscard]] const char* what() const noexcept override { return text_.c_str(); }
  // It lies in what is at `place`: ".key" or "[0]".
  void Enter(const std::string& place) { text_.insert(0, place); }

 private:
  std::string text_;
};

// Whether one field is at fault, and not the text of JSON.
inline bool IsOfField(const simdjson::simdjson_error& wrong) {
  return wrong.error() == simdjson::INCORRECT_TYPE || wrong.error() == simdjson::NUMBER_ERROR ||
         wrong.error() == simdjson::NUMBER_OUT_OF_RANGE;
}

// Calls read(). Where it throws for the type of `content`, or of what is below it, a FieldError
// leaves with its place. place(): ".key" or "[0]", asked for only then.
template <class Place, class Read>
void At(Place place, value content, Read read) {
  try {
    read();
  } catch (FieldError& inner) {
    inner.Enter(place());
    throw;
  } catch (const simdjson::simdjson_error& wrong) {
    if (!IsOfField(wrong)) throw;
    throw FieldError(wrong, place(), content);
  }
}
template <class Read>
void AtField(std::string_view key, value content, Read read) {
  At([key] { return "." + std::string(key); }, content, read);
}

// Calls read(key, value) for every field that is not null.
template <class Read>
void ForEachField(object fields, Read read) {
  for (auto field : fields) {
    const std::string_view key = field.unescaped_key();
    value content = field.value();
    if (!content.is_null()) AtField(key, content, [&] { read(key, content); });
  }
}

// Calls read(value) for every element.
template <class Read>
void ForEachItem(array items, Read read) {
  std::size_t number = 0;
  for (auto element : items) {
    value content = element.value();
    At([number] { return "[" + std::to_string(number) + "]"; }, content, [&] { read(content); });
    ++number;
  }
}

// What is wrong, of the whole object: "spec.tolerations: want ...".
std::string SentenceOf(const simdjson::simdjson_error& wrong);

// Calls read(value) for the field of that name, where there is one that is not null.
template <class Read>
void WithField(object fields, std::string_view name, Read read) {
  ForEachField(fields, [&](std::string_view key, value content) {
    if (key == name) read(content);
  });
}

// Calls read(object) with the one object that the text is. Error: kInvalidArgument for what is not
// JSON or has a type that Kubernetes does not give it, with the path of the field.
template <class Read>
Status ReadObject(const PaddedText& text, Read read) {
  try {
    simdjson::ondemand::parser parser;
    simdjson::ondemand::document document = parser.iterate(ViewOf(text));
    return read(document.get_object());
  } catch (const simdjson::simdjson_error& problem) {
    return Invalid(SentenceOf(problem));
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
  BERTH_TRY_STATUS(ReadObject(text, [&](object fields) -> Status {
    ForEachField(fields, [&](std::string_view key, value content) {
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
