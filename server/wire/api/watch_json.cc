// SPDX-License-Identifier: Apache-2.0
#include "server/wire/api/watch_json.h"

#include <simdjson.h>

#include <array>
#include <optional>

#include "server/wire/json/object_reader.h"

namespace berth::wire {
namespace {

using simdjson::ondemand::document;
using simdjson::ondemand::object;
using simdjson::ondemand::parser;
using simdjson::ondemand::value;

constexpr std::size_t kForeignText = 200;  // bytes that are kept of what is no Status

// The field's text as it stands between its quotes, "" unless it is a string. Names, kinds and
// versions hold nothing that JSON would escape.
std::string_view RawText(value content) {
  if (content.type() != simdjson::ondemand::json_type::string) return {};
  std::string_view token = content.raw_json_token();
  const std::size_t end = token.rfind('"');  // blanks may follow
  return end == 0 ? std::string_view() : token.substr(1, end - 1);
}

void ReadObjectHead(object content, WatchEvent& event) {
  for (auto field : content) {
    const std::string_view key = field.unescaped_key();
    if (key == "kind") event.kind = RawText(field.value());
    if (key != "metadata") continue;
    for (auto entry : field.value().get_object()) {
      const std::string_view name = entry.unescaped_key();
      if (name != "resourceVersion") continue;
      event.resource_version = RawText(entry.value());
      break;
    }
    // API servers write kind and apiVersion first; the rest of the object need not be looked at.
    break;
  }
}

std::optional<WatchEventType> TypeOf(std::string_view word) {
  constexpr std::array<std::string_view, 5> kWords = {"ADDED", "MODIFIED", "DELETED", "BOOKMARK",
                                                      "ERROR"};
  for (std::size_t i = 0; i < kWords.size(); ++i) {
    if (word == kWords[i]) return static_cast<WatchEventType>(i);
  }
  return std::nullopt;
}

void ReadListMetadata(object metadata, ListPage& page) {
  for (auto field : metadata) {
    const std::string_view key = field.unescaped_key();
    value content = field.value();
    if (content.is_null()) continue;
    if (key == "resourceVersion") page.resource_version = std::string_view(content.get_string());
    if (key == "continue") page.next = std::string_view(content.get_string());
  }
}

}  // namespace

ApiStatus DecodeStatus(std::string_view text) {
  ApiStatus status;
  const PaddedText padded(text);
  bool is_status = false;
  try {
    parser json;
    document root = json.iterate(ViewOf(padded));
    for (auto field : root.get_object()) {
      const std::string_view key = field.unescaped_key();
      value content = field.value();
      if (content.is_null()) continue;
      if (key == "kind") is_status = std::string_view(content.get_string()) == "Status";
      if (key == "code") status.code = static_cast<int>(std::int64_t(content.get_int64()));
      if (key == "reason") status.reason = std::string_view(content.get_string());
      if (key == "message") status.message = std::string_view(content.get_string());
    }
  } catch (const simdjson::simdjson_error&) {
    is_status = false;
  }
  if (!is_status) return {0, "", std::string(text.substr(0, kForeignText))};
  return status;
}

Result<ListPage> DecodeListPage(const PaddedText& text,
                                const std::function<void(std::string_view object)>& item,
                                const std::function<void(const ListPage& page)>& head) {
  ListPage page;
  std::size_t count = 0;
  try {
    parser json;
    document root = json.iterate(ViewOf(text));
    for (auto field : root.get_object()) {
      const std::string_view key = field.unescaped_key();
      value content = field.value();
      if (key == "metadata") {
        ReadListMetadata(content.get_object(), page);
        if (head) head(page);
      }
      if (key != "items" || content.is_null()) continue;
      for (auto element : content.get_array()) {
        object listed = element.get_object();
        item(listed.raw_json());
        ++count;
      }
    }
    if (root.current_location().error() != simdjson::OUT_OF_BOUNDS) {
      return Invalid("list: want one object, got more behind it");
    }
  } catch (const simdjson::simdjson_error& problem) {
    return Invalid("list, after " + std::to_string(count) + " items: " + problem.what());
  }
  if (page.resource_version.empty()) return Invalid("list: want metadata.resourceVersion");
  return page;
}

Result<WatchEvent> DecodeWatchEvent(const PaddedText& line) {
  WatchEvent event;
  std::optional<WatchEventType> type;
  std::string word;
  try {
    parser json;
    document root = json.iterate(ViewOf(line));
    for (auto field : root.get_object()) {
      const std::string_view key = field.unescaped_key();
      value content = field.value();
      if (key == "type") {
        word = std::string_view(content.get_string());
        type = TypeOf(word);
      }
      if (key != "object") continue;
      object inner = content.get_object();
      event.object = inner.raw_json();
      inner.reset();
      ReadObjectHead(inner, event);
    }
  } catch (const simdjson::simdjson_error& problem) {
    return Invalid(std::string("watch event: ") + problem.what());
  }
  if (!type) return Invalid("watch event: type: want ADDED, MODIFIED, ..., got \"" + word + "\"");
  event.type = *type;
  if (event.object.empty()) return Invalid("watch event: want an object");
  if (event.resource_version.empty() && event.type != WatchEventType::kError) {
    return Invalid("watch event: object.metadata.resourceVersion: want a text");
  }
  return event;
}

}  // namespace berth::wire
