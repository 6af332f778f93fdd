// SPDX-License-Identifier: Apache-2.0
//
// YamlReader: takes typed fields out of one YAML mapping and refuses what is left over.
//
// It collects problems and reads on, so that a mapping reads as a list of fields and one pass
// reports every fault of a file:
//
//   YamlReader reader(node, origin, "server");
//   reader.Text("listen", server.listen);
//   reader.Integer("threads", 1, 64, server.threads);
//   reader.Finish();
//   if (!reader.problems().empty()) ...
#pragma once

#include <yaml-cpp/yaml.h>

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace berth {

struct YamlProblem {
  int line;             // from 1
  std::string message;  // without origin and line: "server.threads: want ..., got ..."
};

class YamlReader {
 public:
  // A null node reads as an empty mapping.
  YamlReader(const YAML::Node& node, std::string path);

  bool Has(const char* key);  // whether the key has a value; marks the key as read
  void Text(const char* key, std::string& value);
  void TextList(const char* key, std::vector<std::string>& values);
  void Flag(const char* key, bool& value);  // true or false
  template <class T>
  void Integer(const char* key, std::int64_t low, std::int64_t high, T& value) {
    if (const auto number = IntegerAt(key, low, high)) value = static_cast<T>(*number);
  }
  void Number(const char* key, double low, double high, double& value);
  // One of the words, by position.
  template <class T>
  void Word(const char* key, std::span<const std::string_view> words, T& value) {
    if (const auto index = WordAt(key, words)) value = static_cast<T>(*index);
  }
  void Mapping(const char* key, const std::function<void(YamlReader&)>& read);
  // A list of mappings; read is called for each. Returns whether the key is there (the list may be
  // empty).
  bool List(const char* key, const std::function<void(YamlReader&)>& read);

  // A key that was a setting once; `instead` says why it may be removed. Nothing happens where it
  // has been read.
  void Gone(const char* key, std::string instead) { gone_.emplace(key, std::move(instead)); }

  // Reports a problem of the whole mapping; `problem` follows its path. Call it after every key has
  // been read. It is left out if the mapping has other problems, whose consequence it would be.
  void Refuse(const std::string& problem);

  // Reports unknown keys, once. Call it after every key has been read.
  void Finish();

  // In the order of discovery: fields in reading order, then unknown keys.
  [[nodiscard]] const std::vector<YamlProblem>& problems() const { return problems_; }

 private:
  std::optional<YAML::Node> Take(const char* key);
  std::optional<std::string> Scalar(const char* key, std::string_view wanted);
  std::optional<std::int64_t> IntegerAt(const char* key, std::int64_t low, std::int64_t high);
  std::optional<std::size_t> WordAt(const char* key, std::span<const std::string_view> words);
  void Read(const YAML::Node& value, const std::string& path,
            const std::function<void(YamlReader&)>& read);
  void Refuse(const YAML::Node& where, const std::string& path, const std::string& problem);
  [[nodiscard]] std::string PathOf(std::string_view key) const;

  YAML::Node node_;
  std::string path_;
  std::set<std::string> taken_;
  std::map<std::string, std::string> gone_;
  std::vector<YamlProblem> problems_;
  bool finished_ = false;
};

}  // namespace berth
