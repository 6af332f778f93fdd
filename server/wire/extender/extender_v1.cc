// SPDX-License-Identifier: Apache-2.0
#include "server/wire/extender/extender_v1.h"

#include <simdjson.h>

#include <algorithm>
#include <unordered_set>

#include "base/text.h"
#include "scoring/reason.h"
#include "server/wire/json/json_text.h"
#include "server/wire/json/object_meta.h"
#include "server/wire/json/object_reader.h"
#include "server/wire/json/strict_json.h"
#include "server/wire/pod/pod_json.h"

namespace berth::wire {
namespace {

// One parser per thread: its buffers are as large as the largest text it has seen, up to a bound.
simdjson::ondemand::parser& Parser() {
  static thread_local simdjson::ondemand::parser parser;
  return parser;
}

// Calls read(key, value) for each non-null field of the text's one object, with a key for IsField.
template <class Read>
Status ForEachTopField(std::string_view text, std::size_t capacity, Read read) {
  BERTH_TRY_STATUS(CheckJson(text));
  std::string at;  // the field that is being read, for the error
  try {
    simdjson::ondemand::document document =
        Parser().iterate(simdjson::padded_string_view(text.data(), text.size(), capacity));
    for (auto field : document.get_object()) {
      const std::string_view key = field.unescaped_key();
      at = key;
      value content = field.value();
      if (!content.is_null()) AtField(key, content, [&] { read(key, content); });
    }
    at.clear();
    if (document.current_location().error() == simdjson::SUCCESS) {
      return Invalid("want one JSON object and nothing after it");
    }
  } catch (const FieldError& problem) {
    return Invalid(SentenceOf(problem));
  } catch (const simdjson::simdjson_error& problem) {
    return Invalid((at.empty() ? "" : at.substr(0, 64) + ": ") + problem.what());
  }
  return {};
}

void TakePod(object pod, const PodRules& rules, ExtenderArgs& args) {
  PodFields fields = ReadPod(pod, rules);
  args.pod = rules.ToRequest(std::move(fields.parts));
}

// Names and texts of others are in errors.
constexpr std::size_t kMostErrorBytes = 1000;

// More than any cluster has nodes.
constexpr std::size_t kMostNames = 200'000;

tl::unexpected<Error> TooMany(std::string_view field) {
  return Invalid(std::string(field) + ": want at most " + std::to_string(kMostNames) +
                 ", got more");
}

// Collects the nodes asked about, each once.
class CandidateCollector {
 public:
  CandidateCollector(const NodeNameTable& names, ExtenderArgs& args)
      : names_(names), args_(args), seen_(names.size() / 64 + 1, 0) {}

  // Takes the name that `text` starts with (its closing quote included) if it is the one that came
  // next the last time; returns the bytes taken, 0 if it is another.
  std::size_t TakeGuess(std::string_view text) {
    if (names_.size() == 0) return 0;
    const NodeIndex guess = names_.GuessAfter(previous_);
    const std::string_view name = names_.name(guess);
    if (text.size() <= name.size() || text[name.size()] != '"' || !text.starts_with(name)) {
      return 0;
    }
    AddKnown(guess);
    return name.size() + 1;
  }

  void Add(std::string_view name) {
    const NodeIndex index = names_.Find(name);
    if (index == kNoNode) {
      if (unknown_.insert(std::string(name)).second) args_.unknown.emplace_back(name);
      return;
    }
    names_.RememberAfter(previous_, index);
    AddKnown(index);
  }

 private:
  void AddKnown(NodeIndex index) {
    previous_ = index;
    std::uint64_t& word = seen_[index / 64];
    const std::uint64_t bit = std::uint64_t{1} << (index % 64);
    if ((word & bit) != 0) return;
    word |= bit;
    args_.known.push_back(index);
  }

  const NodeNameTable& names_;
  ExtenderArgs& args_;
  NodeIndex previous_ = kNoNode;
  std::vector<std::uint64_t> seen_;
  std::unordered_set<std::string> unknown_;
};

std::vector<NodeItem> ReadItems(object list) {
  std::vector<NodeItem> items;
  for (auto field : list) {
    const std::string_view key = field.unescaped_key();
    value content = field.value();
    if (!IsField(key, "items") || content.is_null()) continue;
    for (auto element : content.get_array()) {
      object item = element.get_object();
      NodeItem read;
      read.raw = item.raw_json();
      item.reset();
      for (auto member : item) {
        if (!IsField(member.unescaped_key(), "metadata")) continue;
        for (auto meta : member.value().get_object()) {
          if (!IsField(meta.unescaped_key(), "name")) continue;
          read.name = meta.value().get_string();
          break;
        }
        break;
      }
      while (!read.raw.empty() && read.raw.back() != '}') read.raw.remove_suffix(1);
      items.push_back(read);
    }
  }
  return items;
}

// Without the blanks behind it.
std::string_view Trimmed(std::string_view raw, char last) {
  return raw.substr(0, raw.rfind(last) + 1);
}

Result<ExtenderArgs> DecodeAnyOrder(const PaddedText& text, const PodRules& rules,
                                    const NodeNameTable& names, const LeavesNodes& leaves) {
  ExtenderArgs args;
  std::vector<std::string_view> listed;
  BERTH_TRY_STATUS(ForEachTopField(text, text.capacity(), [&](std::string_view key, value content) {
    if (IsField(key, "Pod")) TakePod(content.get_object(), rules, args);
    if (IsField(key, "Nodes") && leaves && args.pod && !args.has_names && leaves(args)) {
      args.nodes_unread = true;
      object list = content.get_object();
      args.items_text = Trimmed(list.raw_json(), '}');
    } else if (IsField(key, "Nodes")) {
      args.has_items = true;
      args.items = ReadItems(content.get_object());
    }
    if (IsField(key, "NodeNames")) {
      args.has_names = true;
      listed.clear();
      for (auto name : content.get_array()) {
        if (listed.size() > kMostNames) break;
        listed.push_back(name.get_string());
      }
    }
  }));
  if (args.pod) BERTH_TRY_STATUS(CheckNames(args.pod->id, "Pod.metadata"));
  if (listed.size() > kMostNames) return TooMany("NodeNames");
  if (args.items.size() > kMostNames) return TooMany("Nodes.items");
  if (args.nodes_unread && args.has_names) return DecodeAnyOrder(text, rules, names, {});
  if (args.nodes_unread) return args;
  CandidateCollector candidates(names, args);
  if (args.has_names) {
    for (const std::string_view name : listed) candidates.Add(name);
  } else {
    for (const NodeItem& item : args.items) candidates.Add(item.name);
  }
  return args;
}

bool IsPlain(char c) {
  return c != '\\' && static_cast<unsigned char>(c) >= 0x20 && static_cast<unsigned char>(c) < 0x80;
}

// Reads `"a","b"]}` up to the end of the text. False where it is anything but plain names: the
// caller then takes the long way.
bool ReadPlainNames(std::string_view text, CandidateCollector& candidates) {
  const auto is_end = [](std::string_view rest) {
    return rest.starts_with("]}") && rest.find_first_not_of(" \t\r\n", 2) == rest.npos;
  };
  if (is_end(text)) return true;
  for (std::size_t names = 0; text.starts_with('"') && names < kMostNames; ++names) {
    text.remove_prefix(1);
    std::size_t taken = candidates.TakeGuess(text);
    if (taken == 0) {
      const std::size_t end = text.find('"');
      if (end == std::string_view::npos) return false;
      const std::string_view name = text.substr(0, end);
      if (!std::ranges::all_of(name, IsPlain)) return false;
      candidates.Add(name);
      taken = end + 1;
    }
    text.remove_prefix(taken);
    if (!text.starts_with(',')) return is_end(text);
    text.remove_prefix(1);
  }
  return false;
}

// Whether ReadPlainNames would take the text; the names are not looked up.
bool ArePlainNames(std::string_view text) {
  constexpr std::size_t kBlock = 64;
  const std::size_t close = text.rfind("]}");
  if (close == text.npos || text.find_first_not_of(" \t\r\n", close + 2) != text.npos) return false;
  text = text.substr(0, close);
  std::size_t odd = 0;
  std::size_t at = 0;
  for (; at + kBlock <= text.size(); at += kBlock) {  // blocks of a fixed size become vectors
    for (std::size_t i = 0; i < kBlock; ++i) odd += IsPlain(text[at + i]) ? 0U : 1U;
  }
  for (; at < text.size(); ++at) odd += IsPlain(text[at]) ? 0U : 1U;
  if (odd > 0) return false;
  for (std::size_t count = 1; text.starts_with('"') && count <= kMostNames; ++count) {
    const std::size_t end = text.find('"', 1);
    if (end == std::string_view::npos) return false;
    text.remove_prefix(end + 1);
    if (text.empty()) return true;
    if (text.front() != ',') return false;
    text.remove_prefix(1);
  }
  return false;
}

// The form in which kube-scheduler writes node names: Pod first, then this, then nothing more.
constexpr std::string_view kNamesFollow = ",\"Nodes\":null,\"NodeNames\":[";

// Reads that form without a parse of the names, which are nearly all of the text. Empty where the
// text has another form; whether it is valid is then for DecodeAnyOrder to say.
std::optional<ExtenderArgs> DecodeSchedulerForm(PaddedText& text, const PodRules& rules,
                                                const NodeNameTable& names,
                                                const LeavesNodes& leaves) {
  // Inside a JSON string the quotes of the mark would be escaped, so a match is a key - of the
  // outermost object if what stands before it is complete once a brace closes it.
  const std::size_t mark = text.view().find(kNamesFollow);
  if (mark == std::string::npos) return std::nullopt;
  ExtenderArgs args;
  text.data()[mark] = '}';
  const Status read = ForEachTopField(text.view().substr(0, mark + 1), text.capacity(),
                                      [&](std::string_view key, value content) {
                                        if (IsField(key, "Pod"))
                                          TakePod(content.get_object(), rules, args);
                                      });
  text.data()[mark] = ',';
  if (!read || (args.pod && !CheckNames(args.pod->id, ""))) return std::nullopt;
  const std::string_view list = text.view().substr(mark + kNamesFollow.size());
  if (leaves && args.pod && leaves(args) && ArePlainNames(list)) {
    args.nodes_unread = true;
    args.names_text = Trimmed(text.view().substr(mark + kNamesFollow.size() - 1), ']');
    return args;
  }
  args.has_names = true;
  args.known.reserve(names.size());
  CandidateCollector candidates(names, args);
  if (!ReadPlainNames(list, candidates)) return std::nullopt;
  return args;
}

// Calls visit(name, reason) for every node asked about.
template <class Visit>
void ForEachVerdict(const ExtenderArgs& args, const NodeNameTable& names,
                    const FilterAnswer& answer, Visit visit) {
  for (std::size_t i = 0; i < answer.reasons.size(); ++i) {
    visit(names.name(args.known[i]), answer.reasons[i]);
  }
  for (const std::string& name : args.unknown) visit(std::string_view(name), answer.unknown);
}

// Node names are DNS names where the table has them; others come from the request and are escaped.
void AppendNames(std::string& out, const ExtenderArgs& args, const NodeNameTable& names,
                 const FilterAnswer& answer) {
  out += '[';
  for (std::size_t i = 0; i < answer.reasons.size(); ++i) {
    if (answer.reasons[i] != Reason::kFits) continue;
    out.append("\"").append(names.name(args.known[i])).append("\",");
  }
  if (answer.unknown == Reason::kFits) {
    for (const std::string& name : args.unknown) {
      AppendString(out, name);
      out += ',';
    }
  }
  if (out.back() == ',') out.pop_back();
  out += ']';
}

void AppendItems(std::string& out, const ExtenderArgs& args, const NodeNameTable& names,
                 const FilterAnswer& answer) {
  std::unordered_set<std::string_view> fitting;
  ForEachVerdict(args, names, answer, [&](std::string_view name, Reason reason) {
    if (reason == Reason::kFits) fitting.insert(name);
  });
  out += "{\"metadata\":{},\"items\":[";
  for (const NodeItem& item : args.items) {
    if (fitting.erase(item.name) == 0) continue;  // does not fit, or is there twice
    out.append(item.raw);
    out += ',';
  }
  if (out.back() == ',') out.pop_back();
  out += "]}";
}

void AppendFailures(std::string& out, const ExtenderArgs& args, const NodeNameTable& names,
                    const FilterAnswer& answer, Verdict verdict) {
  std::string refusal;  // said once for each node: written down once, and not at any length
  AppendString(refusal, Shortened(args.pod->refusal, kMostReasonBytes));
  out += '{';
  ForEachVerdict(args, names, answer, [&](std::string_view name, Reason reason) {
    if (VerdictOf(reason) != verdict) return;
    AppendString(out, name);
    out += ':';
    if (reason == Reason::kPodRefused) {
      out += refusal;
    } else {
      AppendString(out, TextOf(reason));
    }
    out += ',';
  });
  if (out.back() == ',') out.pop_back();
  out += '}';
}

// Every node fails for one cause; evictions may help on those of args.known whose reason is
// kUnschedulable.
std::string EncodeNowhere(const ExtenderArgs& args, const NodeNameTable& names,
                          std::string_view why, std::span<const Reason> reasons) {
  std::string failed, unresolvable;
  const auto add = [why](std::string& to, std::string_view name) {
    if (!to.empty()) to += ',';
    AppendString(to, name);
    to += ':';
    AppendString(to, why);
  };
  for (std::size_t i = 0; i < args.known.size(); ++i) {
    const bool may_help = i < reasons.size() && VerdictOf(reasons[i]) == Verdict::kUnschedulable;
    add(may_help ? failed : unresolvable, names.name(args.known[i]));
  }
  for (const std::string& name : args.unknown) add(unresolvable, name);
  std::string out = "{\"Nodes\":";
  out += args.has_items ? "{\"metadata\":{},\"items\":[]}" : "null";
  out += ",\"NodeNames\":[],\"FailedNodes\":{" + failed;
  return out + "},\"FailedAndUnresolvableNodes\":{" + unresolvable + "},\"Error\":\"\"}";
}

std::vector<std::string> ReadVictimUids(array pods, bool full) {
  std::vector<std::string> uids;
  for (auto element : pods) {
    value content = element.value();
    if (content.is_null()) continue;
    object pod = content.get_object();
    if (full) {
      uids.push_back(DecodePodUid(pod));
      continue;
    }
    for (auto field : pod) {
      if (!IsField(field.unescaped_key(), "UID")) continue;
      uids.emplace_back(std::string_view(field.value().get_string()));
    }
  }
  return uids;
}

void ReadVictimMap(object map, bool full, PreemptionArgs& args) {
  for (auto entry : map) {
    NodeVictims victims;
    victims.node = std::string_view(entry.unescaped_key());
    value content = entry.value();
    if (!content.is_null()) {
      ForEachField(content.get_object(), [&](std::string_view key, value part) {
        if (IsField(key, "Pods")) victims.uids = ReadVictimUids(part.get_array(), full);
        if (IsField(key, "NumPDBViolations")) victims.pdb_violations = part.get_int64();
      });
    }
    args.nodes.push_back(std::move(victims));
  }
}

}  // namespace

void ReleaseDecoder() {
  constexpr std::size_t kKeep = 8 << 20;
  if (Parser().capacity() > kKeep) Parser() = simdjson::ondemand::parser();
}

Result<ExtenderArgs> DecodeExtenderArgs(PaddedText& text, const PodRules& rules,
                                        const NodeNameTable& names, const LeavesNodes& leaves) {
  if (auto args = DecodeSchedulerForm(text, rules, names, leaves)) return *std::move(args);
  return DecodeAnyOrder(text, rules, names, leaves);
}

std::string EncodeFilterResult(const ExtenderArgs& args, const NodeNameTable& names,
                               const FilterAnswer& answer) {
  if (!answer.nowhere.empty()) return EncodeNowhere(args, names, answer.nowhere, answer.reasons);
  const bool items = args.has_items || !args.has_names;
  std::string out;
  std::size_t raw_bytes = 0;
  for (const NodeItem& item : args.items) raw_bytes += item.raw.size() + 1;
  out.reserve(answer.reasons.size() * 48 + raw_bytes + 256);
  out += "{\"Nodes\":";
  if (items) {
    AppendItems(out, args, names, answer);
  } else {
    out += "null";
  }
  out += ",\"NodeNames\":";
  if (args.has_names || !args.has_items) {
    AppendNames(out, args, names, answer);
  } else {
    out += "null";
  }
  out += ",\"FailedNodes\":";
  AppendFailures(out, args, names, answer, Verdict::kUnschedulable);
  out += ",\"FailedAndUnresolvableNodes\":";
  AppendFailures(out, args, names, answer, Verdict::kUnresolvable);
  out += ",\"Error\":\"\"}";
  return out;
}

std::string EncodeFilterAll(const ExtenderArgs& args) {
  const auto sent = [](std::string_view text) { return text.empty() ? "null" : text; };
  std::string out;
  out.reserve(args.names_text.size() + args.items_text.size() + 128);
  out.append("{\"Nodes\":").append(sent(args.items_text));
  out.append(",\"NodeNames\":").append(sent(args.names_text));
  return out += ",\"FailedNodes\":{},\"FailedAndUnresolvableNodes\":{},\"Error\":\"\"}";
}

std::string EncodeFilterNowhere(const ExtenderArgs& args, const NodeNameTable& names,
                                std::string_view why) {
  return EncodeNowhere(args, names, why, {});
}

std::string EncodeFilterError(std::string_view error) {
  std::string out =
      "{\"Nodes\":null,\"NodeNames\":null,\"FailedNodes\":null,"
      "\"FailedAndUnresolvableNodes\":null,\"Error\":";
  AppendString(out, Shortened(error, kMostErrorBytes));
  return out += '}';
}

std::string EncodeHostPriorityList(const ExtenderArgs& args, const NodeNameTable& names,
                                   std::span<const std::uint8_t> priorities) {
  std::string out;
  out.reserve(priorities.size() * 64 + 64);
  out += '[';
  for (std::size_t i = 0; i < priorities.size(); ++i) {
    out.append("{\"Host\":\"").append(names.name(args.known[i])).append("\",\"Score\":");
    AppendNumber(out, static_cast<int>(priorities[i]));
    out.append("},");
  }
  for (const std::string& name : args.unknown) {
    out += "{\"Host\":";
    AppendString(out, name);
    out += ",\"Score\":0},";
  }
  if (out.back() == ',') out.pop_back();
  out += ']';
  return out;
}

Result<PreemptionArgs> DecodePreemptionArgs(PaddedText& text, const PodRules& rules) {
  PreemptionArgs args, by_uid;  // where a client fills both maps, the one by UID counts
  bool has_pod = false;
  BERTH_TRY_STATUS(ForEachTopField(text, text.capacity(), [&](std::string_view key, value content) {
    if (IsField(key, "Pod")) {
      args.pod = DecodePod(content.get_object(), rules);
      has_pod = true;
    }
    if (IsField(key, "NodeNameToVictims")) ReadVictimMap(content.get_object(), true, args);
    if (IsField(key, "NodeNameToMetaVictims")) {
      ReadVictimMap(content.get_object(), false, by_uid);
    }
  }));
  if (!has_pod) return Invalid("Pod: want a pod, got none");
  BERTH_TRY_STATUS(CheckNames(args.pod.id, "Pod.metadata"));
  if (!by_uid.nodes.empty()) args.nodes = std::move(by_uid.nodes);
  for (const NodeVictims& victims : args.nodes) {
    BERTH_TRY_STATUS(CheckLength(victims.node, kMostNameBytes, "name of a node"));
    for (const std::string& uid : victims.uids) {
      BERTH_TRY_STATUS(CheckLength(uid, kMostUidBytes, "UID of a victim"));
    }
  }
  return args;
}

std::string EncodePreemptionResult(std::span<const NodeVictims> nodes) {
  Json victims = Json::object();
  for (const NodeVictims& node : nodes) {
    Json pods = ListOf(node.uids, [](const std::string& uid) -> Json { return {{"UID", uid}}; });
    victims[node.node] = {{"Pods", std::move(pods)}, {"NumPDBViolations", node.pdb_violations}};
  }
  return JsonText({{"NodeNameToMetaVictims", std::move(victims)}});
}

Result<BindRequest> DecodeBindingArgs(PaddedText& text) {
  BindRequest request;
  BERTH_TRY_STATUS(ForEachTopField(text, text.capacity(), [&](std::string_view key, value content) {
    const auto take = [&](std::string_view field, std::string& target) {
      if (IsField(key, field)) target = std::string_view(content.get_string());
    };
    take("PodName", request.pod_name);
    take("PodNamespace", request.namespace_name);
    take("PodUID", request.uid);
    take("Node", request.node);
  }));
  BERTH_TRY_STATUS(CheckLength(request.node, kMostNameBytes, "Node"));
  BERTH_TRY_STATUS(CheckNames({request.uid, request.namespace_name, request.pod_name}, "Pod"));
  return request;
}

std::string EncodeBindingResult(std::string_view error) {
  return ObjectOf("Error", Shortened(error, kMostErrorBytes));
}

}  // namespace berth::wire
