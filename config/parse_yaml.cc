// SPDX-License-Identifier: Apache-2.0
#include "config/parse_yaml.h"

#include <yaml-cpp/eventhandler.h>

#include <algorithm>
#include <cstdint>
#include <exception>
#include <map>
#include <optional>
#include <sstream>
#include <vector>

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

}  // namespace berth
