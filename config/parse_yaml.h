// SPDX-License-Identifier: Apache-2.0
//
// ParseYaml: a YAML text of any origin -> the nodes of its one document.
//
// yaml-cpp has no limits, and it reads empty documents forever if a document begins with a comma.
// So ParseYaml first reads the text as events, which need no memory, and counts. It builds nodes
// only if the text is within these limits:
//
//   text         kMostYamlBytes, as much as a ConfigMap holds
//   nodes        kMostYamlNodes, where an alias counts as often as it is used
//   their texts  kMostYamlText bytes, with the texts of aliases
#pragma once

#include <cstddef>
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

#include <yaml-cpp/yaml.h>

#include "base/result.h"

namespace berth {

constexpr std::size_t kMostYamlBytes = 1 << 20;
constexpr std::size_t kMostYamlNodes = 100'000;
constexpr std::size_t kMostYamlText = 4 << 20;

// A null node if the text has no document. Error: kInvalidArgument "ORIGIN:LINE: not YAML: ...",
// or with the limit that the text exceeds.
Result<YAML::Node> ParseYaml(const std::string& text, std::string_view origin);

// The documents of a YAML text as JSON, as kubectl reads manifests. An unquoted null, true, false
// or number keeps its type; all other values and all keys are texts. "<<" (merged keys) is refused,
// and a key that is there twice.

// One JSON text per document; documents without content are left out. A text that begins with '{'
// and a quoted key is JSON and returned unchanged. Each document is within the limits
// of ParseYaml. Error: kInvalidArgument "ORIGIN:LINE: ..." or, of a later document, "ORIGIN
// document 2:LINE: ..." where lines are counted from the beginning of the document.
Result<std::vector<std::string>> JsonDocuments(const std::string& text, std::string_view origin);

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
