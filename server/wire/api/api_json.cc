// SPDX-License-Identifier: Apache-2.0
#include "server/wire/api/api_json.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <ctime>
#include <utility>

#include <simdjson.h>

#include "base/text.h"
#include "server/wire/json/json_text.h"
#include "server/wire/json/object_reader.h"
#include "server/wire/json/selector_json.h"
#include "server/wire/json/strict_json.h"
#include "server/wire/pod/devices_annotation.h"

namespace berth::wire {
namespace {

template <class T>
void Read(const Json& object, const char* key, T& value) {
  const auto field = object.find(key);
  if (field != object.end() && !field->is_null()) value = field->get<T>();
}

constexpr std::size_t kMostMessageBytes = 1024;

using simdjson::ondemand::document;
using simdjson::ondemand::parser;

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

// What decides whether the Job has a run beside what is kept of it.
struct Phase {
  bool suspended = false, ended = false;
};

void ReadSpec(object spec, JobDeadline& job, Phase& phase) {
  ForEachField(spec, [&](std::string_view key, value content) {
    if (IsField(key, "suspend")) phase.suspended = content.get_bool();
    if (!IsField(key, "activeDeadlineSeconds")) return;
    std::int64_t limit = 0;
    const bool is_number = content.get_int64().get(limit) == simdjson::SUCCESS;
    if (is_number && limit >= 1 && limit <= kMostRunSeconds) job.seconds = limit;
  });
}

bool IsEnd(object condition) {
  bool is_end = false, is_true = false;
  ForEachField(condition, [&](std::string_view key, value content) {
    if (IsField(key, "status")) is_true = std::string_view(content.get_string()) == "True";
    if (!IsField(key, "type")) return;
    const std::string_view type = content.get_string();
    is_end = type == "Complete" || type == "Failed";
  });
  return is_end && is_true;
}

void ReadStatus(object status, JobDeadline& job, Phase& phase) {
  ForEachField(status, [&](std::string_view key, value content) {
    if (IsField(key, "startTime")) job.started = ParseTime(content.get_string());
    if (!IsField(key, "conditions")) return;
    for (auto condition : content.get_array()) {
      phase.ended = IsEnd(condition.get_object()) || phase.ended;
    }
  });
}

constexpr std::int64_t kNone = 0, kMost = 1 << 30;

Status ReadSpec(object spec, PodDisruptionBudget& budget) {
  Status status;
  ForEachField(spec, [&](std::string_view key, value content) {
    if (!IsField(key, "selector")) return;
    auto read = ReadLabelSelector(content.get_object());
    if (read) {
      budget.selector = *std::move(read);
    } else {
      status = tl::unexpected(std::move(read).error().Within("spec.selector"));
    }
  });
  return status;
}

void ReadStatus(object status, PodDisruptionBudget& budget) {
  ForEachField(status, [&budget](std::string_view key, value content) {
    if (!IsField(key, "disruptionsAllowed")) return;
    budget.disruptions_allowed =
        static_cast<int>(std::clamp(std::int64_t{content.get_int64()}, kNone, kMost));
  });
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

std::optional<ListPage> DecodeListHead(std::string_view begin) {
  // Inside of a text the quotes would stand behind a backslash.
  constexpr std::string_view kItems = "\"items\":[";
  const std::size_t items = begin.find(kItems);
  if (items == std::string_view::npos) return std::nullopt;
  const std::string head = std::string(begin.substr(0, items + kItems.size())) + "]}";
  auto page = DecodeListPage(PaddedText(head), [](std::string_view) {});
  if (!page) return std::nullopt;
  return *std::move(page);
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

Result<JobDeadline> DecodeJobDeadline(const PaddedText& text) {
  JobDeadline job;
  Phase phase;
  BERTH_TRY(ObjectMeta meta, ReadNamed(text, "Job", [&](std::string_view key, value content) {
              if (IsField(key, "spec")) ReadSpec(content.get_object(), job, phase);
              if (IsField(key, "status")) ReadStatus(content.get_object(), job, phase);
            }));
  if (meta.uid.empty() || meta.uid.size() > kMostControllerBytes) {
    return Invalid("metadata.uid: want 1 to " + std::to_string(kMostControllerBytes) +
                   " bytes, got \"" + Shortened(meta.uid, kMostControllerBytes) + "\"");
  }
  BERTH_TRY_STATUS(CheckLength(meta.namespace_name, kMostNameBytes, "metadata.namespace"));
  job.over = phase.ended || (phase.suspended && !job.started);
  job.namespace_name = std::move(meta.namespace_name);
  job.uid = std::move(meta.uid);
  return job;
}

Result<PodDisruptionBudget> DecodeBudget(const PaddedText& text) {
  PodDisruptionBudget budget;
  Status spec;
  BERTH_TRY(ObjectMeta meta,
            ReadNamed(text, "PodDisruptionBudget", [&](std::string_view key, value content) {
              if (IsField(key, "spec")) spec = ReadSpec(content.get_object(), budget);
              if (IsField(key, "status")) ReadStatus(content.get_object(), budget);
            }));
  BERTH_TRY_STATUS(spec);
  budget.namespace_name = std::move(meta.namespace_name);
  budget.name = std::move(meta.name);
  return budget;
}

Result<std::string> EncodeBinding(const PodRequest& pod, const Placement& placement,
                                  const NodeSpec& node, std::string_view decision, WallTime now,
                                  const Dialects& dialects) {
  BERTH_TRY_STATUS(CheckDevices(placement, node));
  Annotations written;
  // Where kube-scheduler gives GPUs, the pod's claim says which it has.
  const bool is_written = node.by_claims.empty() || placement.grants.empty();
  for (const Dialect& dialect : dialects) {
    if (is_written) dialect.WriteGrants(pod, placement, node, now, written);
  }
  Json annotations = {{kDecisionKey, decision}};
  for (const auto& [key, value] : written) annotations[key] = value;
  return JsonText({{"apiVersion", "v1"},
                   {"kind", "Binding"},
                   {"metadata",
                    {{"name", pod.id.name},
                     {"namespace", pod.id.namespace_name},
                     {"uid", pod.id.uid},
                     {"annotations", std::move(annotations)}}},
                   {"target", {{"apiVersion", "v1"}, {"kind", "Node"}, {"name", placement.node}}}});
}

std::string EncodeWake(const PodId& pod, WallTime now) {
  const std::string time = SecondTime(now);
  std::string out = R"({"metadata":{"uid":)";
  AppendString(out, pod.uid);
  out += R"(},"status":{"conditions":[{"type":"berth.dev/RoomSeen","status":"True",)";
  out += R"("reason":"AskAgain","message":"berth has room for the pod since it was refused",)";
  out += R"("lastProbeTime":")" + time + R"(","lastTransitionTime":")" + time + R"("}]}})";
  return out;
}

std::string EncodeEviction(const PodId& pod) {
  std::string out = R"({"apiVersion":"policy/v1","kind":"Eviction","metadata":{"name":)";
  AppendString(out, pod.name);
  out += R"(,"namespace":)";
  AppendString(out, pod.namespace_name);
  out += R"(},"deleteOptions":{"preconditions":{"uid":)";
  AppendString(out, pod.uid);
  out += "}}}";
  return out;
}

std::string EncodeEvent(const PodEvent& event, std::string_view name) {
  const std::string time = SecondTime(event.time);
  return JsonText({{"apiVersion", "v1"},
                   {"kind", "Event"},
                   {"metadata", {{"name", name}, {"namespace", event.pod.namespace_name}}},
                   {"involvedObject",
                    {{"apiVersion", "v1"},
                     {"kind", "Pod"},
                     {"namespace", event.pod.namespace_name},
                     {"name", event.pod.name},
                     {"uid", event.pod.uid}}},
                   {"type", event.warning ? "Warning" : "Normal"},
                   {"reason", event.reason},
                   {"message", std::string_view(event.message).substr(0, kMostMessageBytes)},
                   {"firstTimestamp", time},
                   {"lastTimestamp", time},
                   {"count", 1},
                   {"source", {{"component", "berth"}}},
                   {"reportingComponent", "berth.dev/berth"},
                   {"reportingInstance", event.instance}});
}

Result<Lease> DecodeLease(std::string_view text) {
  try {
    const Json json = Json::parse(text);
    Lease lease;
    const Json& metadata = json.at("metadata");
    Read(metadata, "namespace", lease.namespace_name);
    Read(metadata, "name", lease.name);
    Read(metadata, "resourceVersion", lease.resource_version);
    const Json spec = json.value("spec", Json::object());
    Read(spec, "holderIdentity", lease.holder);
    Read(spec, "leaseDurationSeconds", lease.seconds);
    Read(spec, "acquireTime", lease.acquire_time);
    Read(spec, "renewTime", lease.renew_time);
    Read(spec, "leaseTransitions", lease.transitions);
    return lease;
  } catch (const Json::exception& problem) {
    return Invalid(std::string("lease: want a coordination.k8s.io/v1 Lease: ") + problem.what());
  }
}

std::string EncodeLease(const Lease& lease) {
  Json json;
  json["apiVersion"] = "coordination.k8s.io/v1";
  json["kind"] = "Lease";
  json["metadata"] = {{"name", lease.name}, {"namespace", lease.namespace_name}};
  if (!lease.resource_version.empty()) {
    json["metadata"]["resourceVersion"] = lease.resource_version;
  }
  json["spec"] = {{"holderIdentity", lease.holder},
                  {"leaseDurationSeconds", lease.seconds},
                  {"acquireTime", lease.acquire_time},
                  {"renewTime", lease.renew_time},
                  {"leaseTransitions", lease.transitions}};
  return JsonText(json);
}

std::string MicroTime(WallTime time) {
  using std::chrono::microseconds;
  const auto since = std::chrono::floor<microseconds>(time.time_since_epoch());
  const auto seconds = std::chrono::floor<std::chrono::seconds>(since);
  const std::time_t whole = seconds.count();
  std::tm parts{};
  gmtime_r(&whole, &parts);
  char text[32];
  const std::size_t size = std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%S", &parts);
  std::snprintf(text + size, sizeof text - size, ".%06dZ",
                static_cast<int>((since - seconds).count()));
  return text;
}

std::string SecondTime(WallTime time) { return MicroTime(time).substr(0, 19) + "Z"; }

}  // namespace berth::wire
