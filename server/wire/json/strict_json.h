// SPDX-License-Identifier: Apache-2.0
//
// JSON documents in memory. Fields: JSON objects, read strictly. A wrong type and a number out of
// range are errors with the path of the field; so is a key that is not known, but in objects that
// others write.
#pragma once

#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "topology/mig/mig_product.h"

namespace berth::wire {

using Json = nlohmann::ordered_json;

// On one line, in the order in which it was put together; bytes that are not UTF-8 become U+FFFD.
inline std::string JsonText(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

// A list of what `json_of` makes of the elements.
template <class Range, class JsonOf>
Json ListOf(const Range& elements, JsonOf json_of) {
  Json list = Json::array();
  for (const auto& element : elements) list.push_back(json_of(element));
  return list;
}

// The value at the end of the keys, in JSON of others that may lack anything; null: one is missing.
inline const Json& In(const Json& json, std::initializer_list<std::string_view> keys) {
  static const Json kNothing;
  const Json* at = &json;
  for (const std::string_view key : keys) {
    if (!at->is_object() || !at->contains(key)) return kNothing;
    at = &(*at)[std::string(key)];
  }
  return *at;
}
// The same as text; empty: there is no text.
inline std::string TextIn(const Json& json, std::initializer_list<std::string_view> keys) {
  const Json& found = In(json, keys);
  return found.is_string() ? found.get<std::string>() : "";
}

// Takes typed fields out of one object and refuses what is left over; the first problem is kept.
class Fields {
 public:
  Fields(const Json& json, std::string path) : json_(json), path_(std::move(path)) {
    if (!json_.is_object()) Refuse("", "an object");
  }

  void Text(const char* key, std::string& value) {
    if (const Json* found = Take(key, &Json::is_string, "a text")) value = *found;
  }
  // The name of a MIG profile; a field that is absent is an error.
  void Profile(const char* key, MigProfile& value) {
    std::string text;
    Text(key, text);
    ParseProfile(key, text, value);
  }
  // The same, but nothing where the field is absent or "".
  void Profile(const char* key, std::optional<MigProfile>& value) {
    std::string text;
    Text(key, text);
    if (!text.empty()) ParseProfile(key, text, value.emplace());
  }
  void Bool(const char* key, bool& value) {
    if (const Json* found = Take(key, &Json::is_boolean, "true or false")) value = *found;
  }
  // One of the words, as an enumerator; a field that is absent counts as "".
  template <class Enum>
  void Word(const char* key, std::span<const std::string_view> words, Enum& value) {
    std::string text, wanted;
    Text(key, text);
    for (std::size_t i = 0; i < words.size(); ++i) {
      if (words[i] == text) {
        value = static_cast<Enum>(i);
        return;
      }
      if (!wanted.empty()) wanted += i + 1 == words.size() ? " or " : ", ";
      wanted += words[i];
    }
    Refuse(key, wanted + ", got \"" + text + "\"");
  }
  void Integer(const char* key, std::int64_t low, std::int64_t high, std::int64_t& value) {
    const Json* found = Take(key, &Json::is_number_integer, "an integer");
    if (found == nullptr) return;
    const bool too_large = found->is_number_unsigned() &&
                           found->get<std::uint64_t>() >
                               static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
    const std::int64_t number = too_large ? 0 : found->get<std::int64_t>();
    if (too_large || number < low || number > high) {
      return Refuse(key,
                    std::to_string(low) + ".." + std::to_string(high) + ", got " + found->dump());
    }
    value = number;
  }
  void Int(const char* key, std::int64_t low, std::int64_t high, int& value) {
    std::int64_t wide = value;
    Integer(key, low, high, wide);
    value = static_cast<int>(wide);
  }
  void Number(const char* key, double low, double high, double& value) {
    const Json* found = Take(key, &Json::is_number, "a number");
    if (found == nullptr) return;
    const double number = found->get<double>();
    if (!(number >= low && number <= high)) {
      return Refuse(key, Json(low).dump() + ".." + Json(high).dump() + ", got " + found->dump());
    }
    value = number;
  }
  // Reads every item of a list; the reader returns its own Status.
  template <class Read>
  void List(const char* key, Read read) {
    const Json* found = Take(key, &Json::is_array, "a list");
    if (found == nullptr) return;
    for (std::size_t i = 0; i < found->size() && !problem_; ++i) {
      Keep(read((*found)[i], PathOf(key) + "[" + std::to_string(i) + "]"));
    }
  }
  template <class Read>
  void Object(const char* key, Read read) {
    if (const Json* found = Take(key, &Json::is_object, "an object"))
      Keep(read(*found, PathOf(key)));
  }
  [[nodiscard]] const Json* Peek(const char* key) const {
    return json_.is_object() && json_.contains(key) ? &json_[key] : nullptr;
  }

  // Of an object that others write: what was not taken is theirs.
  Status FinishForeign() {
    if (problem_) return tl::unexpected(*problem_);
    if (profile_problem_) return tl::unexpected(*profile_problem_);
    return {};
  }

  Status Finish() {
    if (json_.is_object() && !problem_) {
      for (const auto& [key, value] : json_.items()) {
        if (std::find(taken_.begin(), taken_.end(), key) == taken_.end()) {
          problem_ = Error{Errc::kInvalidArgument, PathOf(key) + ": unknown key"};
          break;
        }
      }
    }
    return FinishForeign();
  }

 private:
  void ParseProfile(const char* key, const std::string& text, MigProfile& value) {
    auto read = ParseMigProfile(text);
    if (read) {
      value = *read;
    } else if (!profile_problem_) {
      profile_problem_ = std::move(read).error().Within(PathOf(key));
    }
  }
  [[nodiscard]] std::string PathOf(std::string_view key) const {
    if (key.empty()) return path_.empty() ? "file" : path_;
    return path_.empty() ? std::string(key) : path_ + "." + std::string(key);
  }
  void Refuse(std::string_view key, const std::string& wanted) {
    if (!problem_) problem_ = Error{Errc::kInvalidArgument, PathOf(key) + ": want " + wanted};
  }
  void Keep(Status status) {
    if (!status && !problem_) problem_ = std::move(status).error();
  }
  const Json* Take(const char* key, bool (Json::*is_type)() const noexcept, const char* wanted) {
    taken_.emplace_back(key);
    const Json* found = Peek(key);
    if (found == nullptr || found->is_null() || problem_) return nullptr;
    if ((found->*is_type)()) return found;
    Refuse(key, std::string(wanted) + ", got " + found->type_name());
    return nullptr;
  }

  const Json& json_;
  std::string path_;
  std::vector<std::string> taken_;
  std::optional<Error> problem_;
  std::optional<Error> profile_problem_;  // counts where nothing else is wrong
};

}  // namespace berth::wire
