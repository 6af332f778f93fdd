// SPDX-License-Identifier: Apache-2.0
#include "config/parse_yaml.h"

#include <algorithm>
#include <cstdint>
#include <exception>
#include <map>
#include <optional>
#include <set>
#include <sstream>
#include <utility>

#include <yaml-cpp/eventhandler.h>

#include "base/text.h"

namespace berth {
namespace {

// The size of one node with everything below it.
struct Amount {
  std::uint64_t nodes = 0;
  std::uint64_t text = 0;

  Amount& operator+=(const Amount& other) {
    // Aliases of aliases grow without bound; beyond the limits only "too much" matters.
    nodes = std::min<std::uint64_t>(nodes + other.nodes, kMostYamlNodes + 1);
    text = std::min<std::uint64_t>(text + other.text, kMostYamlText + 1);
    return *this;
  }
};

// Counts the nodes of a text, and finds texts that yaml-cpp does not survive.
class YamlSurvey final : public YAML::EventHandler {
 public:
  struct Problem {
    int line;  // from 0
    std::string text;
  };

  // The first one.
  [[nodiscard]] const std::optional<Problem>& problem() const { return problem_; }

  void OnDocumentStart(const YAML::Mark& mark) override {
    // A token that begins no node is not consumed, and the next document begins with it.
    if (begun_at_ == mark.pos) Refuse(mark, "not YAML: want a value here, got none");
    begun_at_ = mark.pos;
    ++documents_;
  }
  void OnDocumentEnd() override { anchors_.clear(); }
  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    Add(mark, anchor, {1, 0}, false);
  }
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    const auto found = anchors_.find(anchor);
    if (found == anchors_.end())
      return Refuse(mark, "an alias refers to the anchor that contains it");
    Add(mark, YAML::NullAnchor, found->second);
  }
  void OnScalar(const YAML::Mark& mark, const std::string&, YAML::anchor_t anchor,
                const std::string& value) override {
    Add(mark, anchor, {1, value.size()});
  }
  void OnSequenceStart(const YAML::Mark& mark, const std::string&, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value) override {
    Open(mark, anchor);
  }
  void OnSequenceEnd() override { Close(); }
  void OnMapStart(const YAML::Mark& mark, const std::string&, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value) override {
    Open(mark, anchor);
  }
  void OnMapEnd() override { Close(); }

 private:
  struct Collection {
    YAML::Mark mark;
    YAML::anchor_t anchor;
    Amount amount;
  };

  void Refuse(const YAML::Mark& mark, std::string problem) {
    if (!problem_) problem_ = Problem{mark.line, std::move(problem)};
  }

  void Open(const YAML::Mark& mark, YAML::anchor_t anchor) {
    open_.push_back({mark, anchor, {1, 0}});
  }

  void Close() {
    const Collection closed = open_.back();
    open_.pop_back();
    Add(closed.mark, closed.anchor, closed.amount);
  }

  void Add(const YAML::Mark& mark, YAML::anchor_t anchor, const Amount& amount,
           bool is_content = true) {
    if (anchor != YAML::NullAnchor) anchors_[anchor] = amount;
    if (documents_ > 1 && is_content) Refuse(mark, "want one document, got another one");
    Amount& sum = open_.empty() ? whole_ : open_.back().amount;
    sum += amount;
    if (sum.nodes > kMostYamlNodes) {
      Refuse(mark, "want at most " + std::to_string(kMostYamlNodes) + " values, got more");
    }
    if (sum.text > kMostYamlText) {
      Refuse(mark, "want at most " + std::to_string(kMostYamlText) + " bytes of text, got more");
    }
  }

  std::optional<Problem> problem_;
  int begun_at_ = -1;
  int documents_ = 0;
  Amount whole_;
  std::vector<Collection> open_;
  std::map<YAML::anchor_t, Amount> anchors_;  // those that are complete
};

// Reads the text without making nodes.
std::optional<YamlSurvey::Problem> Survey(const std::string& text) {
  std::istringstream stream(text);
  YAML::Parser parser(stream);
  YamlSurvey survey;
  while (!survey.problem() && parser.HandleNextDocument(survey)) {
  }
  return survey.problem();
}

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

// -?(0|[1-9][0-9]*)(.[0-9]+)?([eE][+-]?[0-9]+)?
bool IsJsonNumber(std::string_view text) {
  const auto digits = [&text] {
    std::size_t count = 0;
    for (; !text.empty() && IsDigit(text.front()); text.remove_prefix(1)) ++count;
    return count;
  };
  const auto skip = [&text](std::string_view any) {
    if (text.empty() || any.find(text.front()) == std::string_view::npos) return false;
    text.remove_prefix(1);
    return true;
  };
  skip("-");
  const bool leading_zero = !text.empty() && text.front() == '0';
  const std::size_t whole = digits();
  if (whole == 0 || (leading_zero && whole > 1)) return false;
  if (skip(".") && digits() == 0) return false;
  if (skip("eE")) {
    skip("+-");
    if (digits() == 0) return false;
  }
  return text.empty();
}

void AppendText(std::string& json, std::string_view text) {
  constexpr std::string_view kHex = "0123456789abcdef";
  json += '"';
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      json += '\\';
      json += c;
    } else if (byte < 0x20) {
      json += "\\u00";
      json += kHex[byte >> 4U];
      json += kHex[byte & 0xFU];
    } else {
      json += c;
    }
  }
  json += '"';
}

void AppendScalar(std::string& json, const YAML::Node& node) {
  const std::string& text = node.Scalar();
  const bool is_plain = node.Tag() == "?";
  if (is_plain && (text == "null" || text == "Null" || text == "NULL" || text == "~")) {
    json += "null";
  } else if (is_plain && (text == "true" || text == "True" || text == "TRUE")) {
    json += "true";
  } else if (is_plain && (text == "false" || text == "False" || text == "FALSE")) {
    json += "false";
  } else if (is_plain && IsJsonNumber(text)) {
    json += text;
  } else {
    AppendText(json, text);
  }
}

void AppendNode(std::string& json, const YAML::Node& node);

// The fields of a mapping that are not known yet, then those of the mappings that it merges (<<).
// Throws YAML::Exception for a key that is there twice, which kubectl refuses.
void AppendFields(std::string& json, const YAML::Node& node, std::set<std::string>& known) {
  if (!node.IsMap()) throw YAML::Exception(node.Mark(), "want a mapping behind <<");
  std::set<std::string> own;
  std::vector<YAML::Node> merged;
  for (const auto& field : node) {
    const std::string key = field.first.IsScalar() ? field.first.Scalar() : "";
    if (!own.insert(key).second) {
      throw YAML::Exception(field.first.Mark(), "want each key once, got again: " + key);
    }
    if (key == "<<" && field.first.Tag() == "?") {
      if (!field.second.IsSequence()) merged.push_back(field.second);
      for (std::size_t i = 0; field.second.IsSequence() && i < field.second.size(); ++i) {
        merged.push_back(field.second[i]);
      }
    } else if (known.insert(key).second) {
      json += json.ends_with('{') ? "" : ",";
      AppendText(json, key);
      json += ':';
      AppendNode(json, field.second);
    }
  }
  for (const YAML::Node& from : merged) AppendFields(json, from, known);
}

void AppendNode(std::string& json, const YAML::Node& node) {
  if (node.IsMap()) {
    std::set<std::string> known;
    json += '{';
    AppendFields(json, node, known);
    json += '}';
  } else if (node.IsSequence()) {
    char before = '[';
    for (const auto& item : node) {
      json += before;
      AppendNode(json, item);
      before = ',';
    }
    json += before == '[' ? "[]" : "]";
  } else if (node.IsScalar()) {
    AppendScalar(json, node);
  } else {
    json += "null";
  }
}

// A mapping whose first key is quoted. YAML would read it too, within narrower limits.
bool LooksLikeJson(std::string_view text) {
  const auto next_is = [&text](std::string_view any) {
    const std::size_t begin = text.find_first_not_of(" \t\r\n");
    if (begin == std::string_view::npos || any.find(text[begin]) == std::string_view::npos) {
      return false;
    }
    text.remove_prefix(begin + 1);
    return true;
  };
  return next_is("{") && next_is("\"}");
}

// A line that begins or ends a document, wherever it stands (YAML 1.2, 9.1.2 and 9.1.3).
bool IsMarker(std::string_view line) {
  if (!line.starts_with("---") && !line.starts_with("...")) return false;
  return line.size() == 3 || line[3] == ' ' || line[3] == '\t' || line[3] == '\r';
}

// What is behind a "---" on its line belongs to the document.
std::vector<std::string> Divide(std::string_view text) {
  std::vector<std::string> documents(1);
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size() - 1) + 1;
    const std::string_view line = text.substr(0, end);
    std::string_view bare = line;
    while (!bare.empty() && (bare.back() == '\n' || bare.back() == '\r')) bare.remove_suffix(1);
    if (IsMarker(bare)) {
      documents.emplace_back();
      if (bare.starts_with("---")) documents.back() = line.substr(3);
    } else {
      documents.back() += line;
    }
    text.remove_prefix(end);
  }
  return documents;
}

}  // namespace

Result<YAML::Node> ParseYaml(const std::string& text, std::string_view origin) {
  const auto refuse = [origin](int line, const std::string& problem) {
    return Invalid(std::string(origin) + ":" + std::to_string(line + 1) + ": " + problem);
  };
  if (text.size() > kMostYamlBytes) {
    return refuse(0, "want at most " + std::to_string(kMostYamlBytes) + " bytes, got " +
                         std::to_string(text.size()));
  }
  try {
    if (const auto problem = Survey(text)) return refuse(problem->line, problem->text);
    return YAML::Load(text);
  } catch (const YAML::Exception& problem) {
    return refuse(problem.mark.line, "not YAML: " + problem.msg);
  } catch (const std::exception& problem) {  // what the library lets through of its own mistakes
    return refuse(0, std::string("not YAML: ") + problem.what());
  }
}

Result<std::vector<std::string>> JsonDocuments(const std::string& text, std::string_view origin) {
  if (LooksLikeJson(text)) return std::vector<std::string>{text};
  std::vector<std::string> all;
  std::size_t number = 0;
  for (const std::string& document : Divide(text)) {
    if (document.find_first_not_of(" \t\r\n") == std::string::npos) continue;
    ++number;
    const std::string place =
        std::string(origin) + (number == 1 ? "" : " document " + std::to_string(number));
    BERTH_TRY(const YAML::Node node, ParseYaml(document, place));
    if (!node || node.IsNull()) continue;  // nothing but comments
    try {
      AppendNode(all.emplace_back(), node);
    } catch (const YAML::Exception& problem) {
      return Invalid(place + ":" + std::to_string(problem.mark.line + 1) + ": " + problem.msg);
    }
  }
  return all;
}

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
