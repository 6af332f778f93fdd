// SPDX-License-Identifier: Apache-2.0
#include "bench/replay/conform/checks.h"

#include <strings.h>

namespace berth::conform {
namespace {

using Json = nlohmann::json;

// kube-scheduler copies reasons into the pod's condition, so they are short and few.
constexpr std::size_t kReasonBytes = 200, kReasons = 8;
constexpr int kBestScore = 10;

Verdict Wrong(std::string text) { return {Outcome::kFail, std::move(text)}; }
Verdict Skipped(std::string text) { return {Outcome::kSkip, std::move(text)}; }

// The last value of that key in any case; null: there is none.
const Json& At(const Json& object, const char* key) {
  static const Json kNull;
  const Json* found = &kNull;
  if (!object.is_object()) return kNull;
  for (const auto& [name, value] : object.items()) {
    if (strcasecmp(name.c_str(), key) == 0) found = &value;
  }
  return *found;
}

std::string TextAt(const Json& object, const char* key) {
  const Json& text = At(object, key);
  return text.is_string() ? text.get<std::string>() : "";
}

bool IsOneOf(const Json& value, Json::value_t type) {
  return value.is_null() || value.type() == type;
}

// The JSON of an answer with 200, or what is wrong with it.
Verdict Parse(const HttpAnswer& answer, Json& json) {
  if (answer.status == 0) return Wrong(answer.problem);
  if (answer.status != 200) return Wrong("status " + std::to_string(answer.status));
  if (answer.body.starts_with("\xef\xbb\xbf")) return Wrong("a byte order mark before the JSON");
  json = Json::parse(answer.body, nullptr, false);
  if (json.is_discarded()) return Wrong("no JSON alone, in UTF-8");
  return {};
}

// What a filter decided, node by node.
struct Filtered {
  std::map<std::string, int> passed;
  std::set<std::string> failed, reasons;
};

Verdict ReadFailed(const Json& map, Filtered& filtered) {
  if (!IsOneOf(map, Json::value_t::object)) return Wrong("a map of failed nodes that is no object");
  for (const auto& [name, reason] : map.items()) {
    if (!IsOneOf(reason, Json::value_t::string)) return Wrong("a reason that is no string");
    if (!filtered.failed.insert(name).second) return Wrong(name + " is in both maps");
    if (reason.is_null()) continue;
    if (reason.get_ref<const std::string&>().size() > kReasonBytes) {
      return Wrong("a reason is longer than 200 bytes");
    }
    filtered.reasons.insert(reason.get<std::string>());
  }
  return {};
}

Verdict ReadPassed(const Question& asked, const Json& answer, Filtered& filtered) {
  const Json& names = At(answer, "NodeNames");
  const Json& nodes = At(answer, "Nodes");
  const Json& items = At(nodes, "items");
  if (!IsOneOf(names, Json::value_t::array)) return Wrong("NodeNames is no array");
  if (!IsOneOf(nodes, Json::value_t::object) || !IsOneOf(items, Json::value_t::array)) {
    return Wrong("Nodes is no object with items");
  }
  for (const Json& name : names) {
    if (!name.is_string()) return Wrong("NodeNames has what is no string");
  }
  if (asked.by_names && (names.is_array() || asked.items.empty())) {
    for (const Json& name : names) ++filtered.passed[name.get<std::string>()];
    return {};
  }
  for (const Json& node : items) ++filtered.passed[TextAt(At(node, "metadata"), "name")];
  return {};
}

Verdict ReadFilter(const Question& asked, const HttpAnswer& answer, Json& json,
                   Filtered& filtered) {
  if (Verdict parsed = Parse(answer, json); parsed.outcome != Outcome::kPass) return parsed;
  if (!json.is_object()) return Wrong("no object");
  const Json& error = At(json, "Error");
  if (!IsOneOf(error, Json::value_t::string)) return Wrong("Error is no string");
  if (!TextAt(json, "Error").empty()) return Wrong("Error \"" + TextAt(json, "Error") + "\"");
  for (const char* key : {"FailedNodes", "FailedAndUnresolvableNodes"}) {
    Verdict read = ReadFailed(At(json, key), filtered);
    if (read.outcome != Outcome::kPass) return read;
  }
  Verdict read = ReadPassed(asked, json, filtered);
  if (read.outcome != Outcome::kPass) return read;
  for (const auto& [name, times] : filtered.passed) {
    const auto sent = asked.nodes.find(name);
    if (sent == asked.nodes.end()) return Wrong("\"" + name + "\" passed, and was not sent");
    if (times > sent->second) return Wrong(name + " passed more often than it was sent");
    if (filtered.failed.contains(name)) return Wrong(name + " passed and failed");
  }
  // Where some pass, an extender may offer the best of those that fit.
  for (const auto& [name, times] : asked.nodes) {
    if (!filtered.passed.empty() || filtered.failed.contains(name)) continue;
    return Wrong("no node passed, and " + name + " did not fail");
  }
  if (filtered.reasons.size() > kReasons) return Wrong("more than 8 different reasons");
  return {};
}

Verdict CheckScores(const Question& asked, const HttpAnswer& answer) {
  Json json;
  if (Verdict parsed = Parse(answer, json); parsed.outcome != Outcome::kPass) return parsed;
  if (!IsOneOf(json, Json::value_t::array)) return Wrong("no array");
  std::set<std::string> scored;
  for (const Json& entry : json) {
    const std::string host = TextAt(entry, "Host");
    const Json& score = At(entry, "Score");
    if (!score.is_number_integer())
      return Wrong("a Score that is no integer, which voids the answer");
    if (score < 0 || score > kBestScore)
      return Wrong("a Score that is not 0 to 10, which breaks the weight");
    if (!asked.nodes.contains(host)) return Wrong("\"" + host + "\" has a Score, was not sent");
    if (!scored.insert(host).second) return Wrong(host + " has two entries, which are added up");
  }
  if (scored.empty() || scored.size() == asked.nodes.size()) return {};
  return Wrong("Scores of " + std::to_string(scored.size()) + " of " +
               std::to_string(asked.nodes.size()) + " nodes");
}

Verdict CheckVictims(const Question& asked, const HttpAnswer& answer) {
  Json json;
  if (Verdict parsed = Parse(answer, json); parsed.outcome != Outcome::kPass) return parsed;
  if (!json.is_object()) return Wrong("no object");
  const Json& nodes = At(json, "NodeNameToMetaVictims");
  if (!IsOneOf(nodes, Json::value_t::object)) return Wrong("NodeNameToMetaVictims is no object");
  for (const auto& [name, victims] : nodes.items()) {
    if (victims.is_null()) return Wrong("null victims of " + name);
    const auto sent = asked.victims.find(name);
    if (sent == asked.victims.end()) return Wrong("victims on " + name + ", which was not sent");
    const Json& pods = At(victims, "Pods");
    if (!IsOneOf(pods, Json::value_t::array)) return Wrong("Pods is no array");
    if (pods.empty() && !sent->second.empty()) return Wrong(name + " without its victims");
    for (const Json& pod : pods) {
      if (pod.is_null()) return Wrong("a null pod on " + name);
      const std::string uid = TextAt(pod, "UID");
      if (!sent->second.contains(uid)) return Wrong("UID \"" + uid + "\" is not on " + name);
    }
  }
  return {};
}

Verdict CheckFilter(const Question& asked, const HttpAnswer& answer) {
  Json json;
  Filtered filtered;
  return ReadFilter(asked, answer, json, filtered);
}

// An error that kube-scheduler sees as one.
Verdict CheckRefused(const Question& asked, const HttpAnswer& answer) {
  if (answer.status >= 400 && answer.status < 500) return {};
  Json json;
  if (Verdict parsed = Parse(answer, json); parsed.outcome != Outcome::kPass) return parsed;
  const bool fits = asked.verb == 'p' ? IsOneOf(json, Json::value_t::array) && json.empty()
                    : asked.verb == 'v'
                        ? json.is_object() && At(json, "NodeNameToMetaVictims").empty()
                        : !TextAt(json, "Error").empty();
  return fits ? Verdict() : Wrong("an answer as if nothing were wrong");
}

Verdict CheckAnswered(const Question& asked, const HttpAnswer& answer) {
  if (asked.verb == 'f') return CheckFilter(asked, answer);
  if (asked.verb == 'p') return CheckScores(asked, answer);
  if (asked.verb == 'v') return CheckVictims(asked, answer);
  return CheckRefused(asked, answer);  // the pod of the bind does not exist
}

Verdict CheckPassedOn(const Question& asked, const HttpAnswer& answer) {
  Json json;
  Filtered filtered;
  Verdict read = ReadFilter(asked, answer, json, filtered);
  if (read.outcome != Outcome::kPass || filtered.passed.size() == asked.nodes.size()) return read;
  return Skipped("it judges this pod too; --nodes names nodes that it knows");
}

Verdict CheckUnchanged(const Question& asked, const HttpAnswer& answer) {
  Json json;
  Filtered filtered;
  Verdict read = ReadFilter(asked, answer, json, filtered);
  if (!TextAt(json, "Error").empty()) return Skipped("it takes no full nodes: " + read.text);
  if (read.outcome != Outcome::kPass) return read;
  if (filtered.passed.empty()) return Skipped("no node passed; --nodes names nodes that it knows");
  for (const Json& item : At(At(json, "Nodes"), "items")) {
    const auto sent = asked.items.find(TextAt(At(item, "metadata"), "name"));
    if (sent == asked.items.end() || item != sent->second) {
      return Wrong("a node came back with other fields than it was sent with");
    }
  }
  return {};
}

Verdict CheckNoNodes(const Question& asked, const HttpAnswer& answer) {
  if (asked.verb != 'p') return CheckFilter(asked, answer);
  return CheckRefused(asked, answer);
}

Verdict CheckNoVictims(const Question&, const HttpAnswer& answer) {
  Json json;
  if (Verdict parsed = Parse(answer, json); parsed.outcome != Outcome::kPass) return parsed;
  if (json.is_object() && At(json, "NodeNameToMetaVictims").empty()) return {};
  return Wrong("victims of nodes that were not sent");
}

Verdict StatusIs(const HttpAnswer& answer, int want) {
  if (answer.status == want) return {};
  return Wrong(answer.status == 0 ? answer.problem : "status " + std::to_string(answer.status));
}

Verdict CheckNotAllowed(const Question&, const HttpAnswer& answer) {
  Verdict verdict = StatusIs(answer, 405);
  if (verdict.outcome != Outcome::kPass || answer.allow.find("POST") != std::string::npos) {
    return verdict;
  }
  return Wrong("no Allow: POST");
}

Verdict CheckEither(const Question& asked, const HttpAnswer& answer) {
  const Verdict answered = CheckAnswered(asked, answer);
  const bool refused = CheckRefused(asked, answer).outcome == Outcome::kPass;
  return refused ? Verdict() : answered;
}

Verdict CheckReadable(const Question& asked, const HttpAnswer& answer) {
  if (answer.encoding == "gzip") return StatusIs(answer, 200);
  if (!answer.encoding.empty() && answer.encoding != "identity") {
    return Wrong("Content-Encoding " + answer.encoding);
  }
  return CheckAnswered(asked, answer);
}

}  // namespace

Question QuestionOf(char verb, const std::string& body) {
  Question asked;
  asked.verb = verb;
  const Json json = Json::parse(body, nullptr, false);
  const Json& names = At(json, "NodeNames");
  asked.by_names = names.is_array();
  for (const Json& name : names) ++asked.nodes[name.get<std::string>()];
  for (const Json& node : At(At(json, "Nodes"), "items")) {
    const std::string name = TextAt(At(node, "metadata"), "name");
    if (!asked.by_names) ++asked.nodes[name];
    asked.items[name] = node;
  }
  for (const char* key : {"NodeNameToVictims", "NodeNameToMetaVictims"}) {
    for (const auto& [name, victims] : At(json, key).items()) {
      std::set<std::string>& uids = asked.victims[name];
      for (const Json& pod : At(victims, "Pods")) {
        const bool is_full = pod.contains("metadata");
        uids.insert(is_full ? TextAt(pod["metadata"], "uid") : TextAt(pod, "UID"));
      }
    }
  }
  return asked;
}

const char* WordsOf(const Want& want, char verb) {
  if (verb == 'p' && want.prioritize != nullptr) return want.prioritize;
  if (verb == 'v' && want.preempt != nullptr) return want.preempt;
  return want.check == kAnswered.check && verb == 'b' ? kRefused.words : want.words;
}

const Want kRefused = {CheckRefused, "4xx, or 200 with an Error", "4xx, or 200 with []",
                       "4xx, or 200 without nodes"};
const Want kAnswered = {CheckAnswered, "200, nodes passed or each failed",
                        "200, one Score of 0 to 10 a node or none",
                        "200, no victims but those that were sent"};
const Want kEither = {CheckEither, "4xx, or the answer"};
const Want kPassedOn = {CheckPassedOn, "200, all nodes passed"};
const Want kUnchanged = {CheckUnchanged, "200, the nodes as they were sent"};
const Want kNoNodes = {CheckNoNodes, "200, empty lists without an Error", "200 with []"};
const Want kNoVictims = {CheckNoVictims, "200 without nodes"};
const Want kNotFound = {[](const Question&, const HttpAnswer& a) { return StatusIs(a, 404); },
                        "404"};
const Want kNotAllowed = {CheckNotAllowed, "405 with Allow: POST"};
const Want kClosed = {CheckEither, "400, or the answer; and the connection closed"};
const Want kReadable = {CheckReadable, "200, plain or in gzip"};

}  // namespace berth::conform
