// SPDX-License-Identifier: Apache-2.0
#include "config/yaml_reader.h"

#include <algorithm>
#include <sstream>

#include "base/text.h"

namespace berth {

YamlReader::YamlReader(const YAML::Node& node, std::string path)
    : node_(node), path_(std::move(path)) {
  if (!node_.IsMap() && !node_.IsNull()) Refuse(node_, path_, "want a mapping");
}

std::string YamlReader::PathOf(std::string_view key) const {
  return path_.empty() ? std::string(key) : path_ + "." + std::string(key);
}

void YamlReader::Refuse(const YAML::Node& where, const std::string& path,
                        const std::string& problem) {
  const int line = where.Mark().line + 1;  // counted from 0 there
  problems_.push_back({line, (path.empty() ? "" : path + ": ") + problem});
}

std::optional<YAML::Node> YamlReader::Take(const char* key) {
  taken_.insert(key);
  if (!node_.IsMap()) return std::nullopt;
  const YAML::Node& mapping = node_;  // the const operator[] does not create keys
  YAML::Node value = mapping[key];
  if (!value.IsDefined() || value.IsNull()) return std::nullopt;
  return value;
}

bool YamlReader::Has(const char* key) { return Take(key).has_value(); }

std::optional<std::string> YamlReader::Scalar(const char* key, std::string_view wanted) {
  const auto value = Take(key);
  if (!value) return std::nullopt;
  if (!value->IsScalar()) {
    Refuse(*value, PathOf(key), "want " + std::string(wanted) + ", got a list or a mapping");
    return std::nullopt;
  }
  return value->Scalar();
}

void YamlReader::Text(const char* key, std::string& value) {
  if (auto text = Scalar(key, "a text")) value = *std::move(text);
}

void YamlReader::TextList(const char* key, std::vector<std::string>& values) {
  const auto list = Take(key);
  if (!list) return;
  if (!list->IsSequence()) return Refuse(*list, PathOf(key), "want a list of texts");
  values.clear();
  for (std::size_t i = 0; i < list->size(); ++i) {
    const YAML::Node item = (*list)[i];
    if (!item.IsScalar()) {
      return Refuse(item, PathOf(key) + "[" + std::to_string(i) + "]", "want a text");
    }
    values.push_back(item.Scalar());
  }
}

void YamlReader::Flag(const char* key, bool& value) {
  const auto text = Scalar(key, "true or false");
  if (!text) return;
  if (*text != "true" && *text != "false") {
    return Refuse(node_[key], PathOf(key), "want true or false, got \"" + *text + "\"");
  }
  value = *text == "true";
}

std::optional<std::int64_t> YamlReader::IntegerAt(const char* key, std::int64_t low,
                                                  std::int64_t high) {
  const auto text = Scalar(key, "an integer");
  if (!text) return std::nullopt;
  auto number = ParseInt(*text, low, high);
  if (!number) {
    Refuse(node_[key], PathOf(key), number.error().message);
    return std::nullopt;
  }
  return *number;
}

void YamlReader::Number(const char* key, double low, double high, double& value) {
  const auto text = Scalar(key, "a number");
  if (!text) return;
  double number = 0;
  if (!YAML::convert<double>::decode(YAML::Node(*text), number) || !(number >= low) ||
      number > high) {
    std::ostringstream wanted;
    wanted << "want a number from " << low << " to " << high << ", got \"" << *text << "\"";
    return Refuse(node_[key], PathOf(key), wanted.str());
  }
  value = number;
}

std::optional<std::size_t> YamlReader::WordAt(const char* key,
                                              std::span<const std::string_view> words) {
  const auto text = Scalar(key, "a word");
  if (!text) return std::nullopt;
  const auto found = std::ranges::find(words, *text);
  if (found != words.end()) return static_cast<std::size_t>(found - words.begin());
  Refuse(node_[key], PathOf(key), "want one of " + Join(words, ", ") + ", got \"" + *text + "\"");
  return std::nullopt;
}

void YamlReader::Mapping(const char* key, const std::function<void(YamlReader&)>& read) {
  const auto value = Take(key);
  if (!value) return;
  Read(*value, PathOf(key), read);
}

bool YamlReader::List(const char* key, const std::function<void(YamlReader&)>& read) {
  const auto list = Take(key);
  if (!list) return false;
  if (!list->IsSequence()) {
    Refuse(*list, PathOf(key), "want a list");
    return false;
  }
  for (std::size_t i = 0; i < list->size(); ++i) {
    Read((*list)[i], PathOf(key) + "[" + std::to_string(i) + "]", read);
  }
  return true;
}

void YamlReader::Read(const YAML::Node& value, const std::string& path,
                      const std::function<void(YamlReader&)>& read) {
  YamlReader reader(value, path);
  read(reader);
  reader.Finish();
  problems_.insert(problems_.end(), reader.problems_.begin(), reader.problems_.end());
}

void YamlReader::Refuse(const std::string& problem) {
  Finish();
  if (problems_.empty()) Refuse(node_, path_, problem);
}

void YamlReader::Finish() {
  if (finished_ || !node_.IsMap()) return;
  finished_ = true;
  std::set<std::string> seen;
  for (const auto& entry : node_) {
    const std::string key = entry.first.IsScalar() ? entry.first.Scalar() : "(not a text)";
    const auto gone = gone_.find(key);
    if (!taken_.contains(key) && gone != gone_.end()) {
      Refuse(entry.first, PathOf(key),
             "is no setting any more, remove it: " + gone->second + " (docs/upgrade.md)");
    } else if (!taken_.contains(key)) {
      constexpr std::size_t kLongestMeant = 64;
      const std::vector<std::string> known(taken_.begin(), taken_.end());
      const std::string meant = key.size() > kLongestMeant ? "" : NearestWord(key, known);
      Refuse(entry.first, PathOf(key),
             "unknown key, " + (meant.empty() ? "" : "did you mean " + meant + "? ") +
                 "want one of " + Join(taken_, ", "));
    } else if (!seen.insert(key).second) {
      Refuse(entry.first, PathOf(key), "the key is there twice");
    }
  }
}

}  // namespace berth
