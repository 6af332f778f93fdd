// SPDX-License-Identifier: Apache-2.0
#include "bench/replay/conform/conform.h"

#include <algorithm>
#include <cstdio>
#include <memory>
#include <thread>

#include "bench/replay/conform/cases.h"
#include "bench/replay/conform/requests.h"

namespace berth::conform {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kLeavers = 20, kConnections = 100;
constexpr std::size_t kGotBytes = 160, kPassBytes = 40;  // of an answer that is shown

class Runner {
 public:
  Runner(const ConformOptions& options, ExtenderUrl url)
      : options_(options), url_(std::move(url)), end_(Clock::now() + options.budget) {}

  // Finds the verbs. Error: none is there.
  Status FindVerbs();
  ConformLine Try(const Case& tried, char verb);
  [[nodiscard]] char FirstVerb() const { return there_.empty() ? 'f' : there_.front(); }

 private:
  struct Exchange {
    Verdict verdict;
    HttpAnswer answer;
  };
  [[nodiscard]] std::unique_ptr<Connection> Connect() const {
    return std::make_unique<Connection>(url_, options_.patience);
  }
  Exchange Run(const Case& tried, char verb);
  // Sends it to `count` connections, then reads as many answers of each, and judges all.
  Exchange Ask(const Case& tried, const Question& asked, const std::string& bytes,
               std::size_t connections, int answers);

  const ConformOptions& options_;
  const ExtenderUrl url_;
  const Clock::time_point end_;
  std::string there_;  // verbs that the extender has
};

Status Runner::FindVerbs() {
  for (const char verb : std::string_view("fpvb")) {
    const Case ordinary = {0, "", "", Form::kPlain, "$ARGS", &kAnswered, ""};
    const auto connection = Connect();
    if (!connection->problem().empty()) {
      return Fail(Errc::kUnavailable, options_.url + ": " + connection->problem() +
                                          ". Start the extender, or change --url");
    }
    connection->Send(
        BytesOf(Form::kPlain, url_, options_.verbs.at(verb), BodyOf(options_, ordinary, verb)));
    const int status = connection->Read().status;
    if (status != 404 && status != 405 && status != 501) there_ += verb;
  }
  if (!there_.empty()) return {};
  return Fail(Errc::kNotFound,
              options_.url + ": no verb is there. Is it the extender's urlPrefix?");
}

Runner::Exchange Runner::Ask(const Case& tried, const Question& asked, const std::string& bytes,
                             std::size_t connections, int answers) {
  std::vector<std::unique_ptr<Connection>> open(connections);
  Exchange result;
  for (auto& connection : open) {
    connection = Connect();
    result.answer.problem = connection->problem();
    if (!result.answer.problem.empty()) break;
    connection->Send(bytes);
  }
  if (!result.answer.problem.empty()) {
    result.verdict = {Outcome::kFail, result.answer.problem};
    return result;
  }
  std::string first;
  for (auto& connection : open) {
    for (int i = 0; i < answers; ++i) {
      const bool again = i > 0 && (tried.form == Form::kTwice || tried.form == Form::kIdle);
      if (again && tried.form == Form::kIdle) std::this_thread::sleep_for(std::chrono::seconds(1));
      if (again) connection->Send(bytes);
      result.answer = connection->Read(tried.form == Form::kHead);
      if (result.answer.status == 100) result.answer = connection->Read();
      result.verdict = tried.want->check(asked, result.answer);
      if (result.verdict.outcome != Outcome::kPass) return result;
      if (i == 0) first = result.answer.body;
      if (again && tried.form == Form::kTwice && first != result.answer.body) {
        result.verdict = {Outcome::kFail, "another answer than before: " + first};
        return result;
      }
    }
    if (tried.want == &kClosed && !connection->IsClosed()) {
      result.verdict = {Outcome::kFail, "the connection stays open"};
    }
  }
  return result;
}

Runner::Exchange Runner::Run(const Case& tried, char verb) {
  const std::string body = BodyOf(options_, tried, verb);
  const std::string bytes = BytesOf(tried.form, url_, options_.verbs.at(verb), body);
  const Question asked = QuestionOf(verb, body);
  std::unique_ptr<Connection> other;
  if (tried.form == Form::kSlowHead || tried.form == Form::kSlowBody) {
    other = Connect();
    other->Send(bytes.substr(0, tried.form == Form::kSlowHead ? 20 : bytes.size() - 20));
  }
  if (tried.form == Form::kLeaves) {
    for (int i = 0; i < kLeavers; ++i) {
      const auto leaver = Connect();
      if (!leaver->problem().empty()) break;
      leaver->Send(std::string_view(bytes).substr(0, i % 2 == 0 ? bytes.size() : bytes.size() / 2));
      leaver->Reset();
    }
  }
  if (tried.form == Form::kPipelined) return Ask(tried, asked, bytes + bytes, 1, 2);
  const bool twice = tried.form == Form::kIdle || tried.form == Form::kTwice;
  return Ask(tried, asked, bytes, tried.form == Form::kMany ? kConnections : 1, twice ? 2 : 1);
}

std::string Shown(const HttpAnswer& answer) {
  if (answer.status == 0) return "no answer: " + answer.problem;
  std::string text = std::to_string(answer.status);
  if (!answer.body.empty()) text += " " + answer.body.substr(0, kGotBytes);
  if (answer.body.size() > kGotBytes) text += "...";
  for (char& c : text) c = static_cast<unsigned char>(c) < ' ' ? ' ' : c;
  return text;
}

ConformLine Runner::Try(const Case& tried, char verb) {
  ConformLine line{tried.number, options_.verbs.at(verb),    Outcome::kSkip,
                   tried.sent,   WordsOf(*tried.want, verb), "",
                   tried.why};
  if (there_.find(verb) == std::string::npos) {
    line.got = "the extender has no such verb";
  } else if (Clock::now() >= end_) {
    line.got = "no time left";
  } else {
    const Exchange exchange = Run(tried, verb);
    line.outcome = exchange.verdict.outcome;
    line.got = Shown(exchange.answer);
    const std::string& text = exchange.verdict.text;
    if (line.outcome == Outcome::kSkip) line.got = text;
    if (line.outcome == Outcome::kFail && exchange.answer.status != 0) {
      line.got = text + ": " + line.got;
    }
  }
  return line;
}

const char* WordOf(Outcome outcome) {
  if (outcome == Outcome::kSkip) return "SKIP";
  return outcome == Outcome::kPass ? "PASS" : "FAIL";
}

// --only: whether it is the number of a case, or a verb as it is configured.
bool IsKnown(const ConformOptions& options, const std::string& name) {
  const auto is_number = [&name](const auto& of) { return std::to_string(of.number) == name; };
  const auto is_verb = [&name](const auto& verb) { return verb.second == name; };
  return std::ranges::any_of(ConformCases(), is_number) ||
         std::ranges::any_of(UntriedCases(), is_number) ||
         std::ranges::any_of(options.verbs, is_verb);
}

}  // namespace

Result<std::vector<ConformLine>> Conform(const ConformOptions& options) {
  for (const std::string& name : options.only) {
    if (IsKnown(options, name)) continue;
    return Invalid("--only: want numbers of cases and verbs, as in 5,16,bind, got \"" + name +
                   "\"");
  }
  BERTH_TRY(ExtenderUrl url, ParseExtenderUrl(options.url));
  Runner runner(options, std::move(url));
  BERTH_TRY_STATUS(runner.FindVerbs());
  std::vector<ConformLine> lines;
  const auto wanted = [&options](int number, const std::string& verb) {
    return options.only.empty() || options.only.contains(std::to_string(number)) ||
           options.only.contains(verb);
  };
  for (const Case& tried : ConformCases()) {
    const std::string verbs =
        tried.verbs[0] == '*' ? std::string(1, runner.FirstVerb()) : tried.verbs;
    for (const char verb : verbs) {
      if (wanted(tried.number, options.verbs.at(verb))) lines.push_back(runner.Try(tried, verb));
    }
  }
  for (const Untried& untried : UntriedCases()) {
    if (!wanted(untried.number, "")) continue;
    lines.push_back({untried.number, "", Outcome::kSkip, untried.what, "", untried.reason, ""});
  }
  std::ranges::stable_sort(lines, {}, &ConformLine::number);
  return lines;
}

std::size_t CountOf(const std::vector<ConformLine>& lines, Outcome outcome) {
  return static_cast<std::size_t>(std::ranges::count(lines, outcome, &ConformLine::outcome));
}

std::string ConformText(const std::vector<ConformLine>& lines) {
  std::string text;
  for (const ConformLine& line : lines) {
    char head[64];
    std::snprintf(head, sizeof head, "%s %3d %-11s", WordOf(line.outcome), line.number,
                  line.verb.c_str());
    text += std::string(head) + line.sent;
    if (!line.wanted.empty()) text += "; want " + line.wanted;
    const bool passed = line.outcome == Outcome::kPass;
    const std::string got = passed ? line.got.substr(0, kPassBytes) : line.got;
    text += (line.wanted.empty() ? "; " : "; got ") + got + (got == line.got ? "" : "...");
    if (line.outcome == Outcome::kFail) text += " (" + line.why + ")";
    text += "\n";
  }
  const auto count = [&lines](Outcome outcome) { return std::to_string(CountOf(lines, outcome)); };
  return text + "Of " + std::to_string(lines.size()) + " checks " + count(Outcome::kPass) +
         " passed, " + count(Outcome::kFail) + " failed, " + count(Outcome::kSkip) +
         " were skipped.\n";
}

nlohmann::ordered_json ConformJson(const std::vector<ConformLine>& lines) {
  nlohmann::ordered_json cases = nlohmann::ordered_json::array();
  for (const ConformLine& line : lines) {
    cases.push_back({{"case", line.number},
                     {"verb", line.verb},
                     {"result", WordOf(line.outcome)},
                     {"sent", line.sent},
                     {"wanted", line.wanted},
                     {"got", line.got},
                     {"why", line.why}});
  }
  return {{"passed", CountOf(lines, Outcome::kPass)},
          {"failed", CountOf(lines, Outcome::kFail)},
          {"skipped", CountOf(lines, Outcome::kSkip)},
          {"cases", cases}};
}

}  // namespace berth::conform
