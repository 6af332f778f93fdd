// SPDX-License-Identifier: Apache-2.0
#include "bench/replay/http_placer.h"
#include "bench/replay/http_calls.h"

#include <charconv>
#include <chrono>
#include <nlohmann/json.hpp>

namespace berth::replay {
namespace {

using Json = nlohmann::ordered_json;

std::string ArgsJson(const std::string& pod_json, std::string_view names) {
  std::string body;
  body.reserve(pod_json.size() + names.size() + 64);
  body.append("{\"Pod\":").append(pod_json);
  return body.append(",\"Nodes\":null,\"NodeNames\":[").append(names).append("]}");
}

tl::unexpected<Error> Unreadable(std::string_view verb, std::string_view answer) {
  return Fail(Errc::kInternal,
              std::string(verb) + ": cannot read the answer " + std::string(answer.substr(0, 120)));
}

// The text between the brackets of the list that follows `key`. Node names contain no brackets.
Result<std::string_view> ListAfter(std::string_view answer, std::string_view key) {
  const std::size_t start = answer.find(key);
  if (start == std::string_view::npos) return Unreadable("filter", answer);
  const std::size_t end = answer.find(']', start);
  if (end == std::string_view::npos) return Unreadable("filter", answer);
  return answer.substr(start + key.size(), end - start - key.size());
}

// The hosts with the highest score, in the order of the answer.
Result<std::vector<std::string_view>> BestHosts(std::string_view answer) {
  constexpr std::string_view kHost = "{\"Host\":\"", kScore = "\",\"Score\":";
  std::vector<std::string_view> best;
  int best_score = -1;
  for (std::size_t at = answer.find(kHost); at != std::string_view::npos;
       at = answer.find(kHost, at)) {
    at += kHost.size();
    const std::size_t end = answer.find(kScore, at);
    if (end == std::string_view::npos) return Unreadable("prioritize", answer);
    const char* const digits = answer.data() + end + kScore.size();
    int score = -1;
    std::from_chars(digits, answer.data() + answer.size(), score);
    if (score > best_score) best.clear();
    if (score >= best_score) best.push_back(answer.substr(at, end - at));
    best_score = std::max(best_score, score);
  }
  if (best.empty()) return Unreadable("prioritize", answer);
  return best;
}

}  // namespace

std::string PodJson(const PodRequest& pod) {
  Json amounts = {{"cpu", std::to_string(pod.shape.cpu_milli) + "m"},
                  {"memory", std::to_string(pod.shape.memory_bytes)}};
  if (pod.shape.is_share()) {
    amounts["berth.dev/gpu-milli"] = std::to_string(pod.shape.milli_per_gpu());
  } else if (pod.shape.wants_gpu()) {
    amounts["nvidia.com/gpu"] = std::to_string(pod.shape.gpu_count());
  }
  Json metadata = {
      {"name", pod.id.name}, {"namespace", pod.id.namespace_name}, {"uid", pod.id.uid}};
  if (!pod.shape.models.empty()) {
    std::string models;
    for (const std::string& model : pod.shape.models) models += (models.empty() ? "" : "|") + model;
    metadata["annotations"] = {{"berth.dev/gpu-model", models}};
  }
  const Json container = {{"name", "main"},
                          {"resources", {{"limits", amounts}, {"requests", amounts}}}};
  return Json{{"metadata", metadata},
              {"spec", {{"containers", Json::array({container})}}},
              {"status", {{"phase", "Pending"}}}}
      .dump();
}

HttpPlacer::HttpPlacer(http::HttpClient client, const std::vector<NodeSpec>& nodes, TieBreaker ties)
    : client_(std::move(client)), ties_(ties) {
  std::vector<std::string> names;
  for (const NodeSpec& node : nodes) names.push_back(node.name);
  std::sort(names.begin(), names.end());
  for (const std::string& name : names) {
    all_names_.append(all_names_.empty() ? "\"" : ",\"").append(name).append("\"");
  }
}

Result<std::string> HttpPlacer::Post(Verb verb, std::string_view path, const std::string& body) {
  const auto start = std::chrono::steady_clock::now();
  auto answer = http::Post(client_, path, body);
  const std::chrono::duration<double, std::micro> taken = std::chrono::steady_clock::now() - start;
  us_[verb].push_back(taken.count());
  return answer;
}

Result<std::optional<Placement>> HttpPlacer::Place(const PodRequest& pod) {
  const std::string pod_json = PodJson(pod);
  BERTH_TRY(const std::string filtered,
            Post(kFilter, "/extender/filter", ArgsJson(pod_json, all_names_)));
  if (!filtered.ends_with("\"Error\":\"\"}")) return Unreadable("filter", filtered);
  BERTH_TRY(const std::string_view names, ListAfter(filtered, "\"NodeNames\":["));
  if (names.empty()) return std::nullopt;
  BERTH_TRY(const std::string node, Choose(pod_json, names));
  const Json binding = {{"PodName", pod.id.name},
                        {"PodNamespace", pod.id.namespace_name},
                        {"PodUID", pod.id.uid},
                        {"Node", node}};
  BERTH_TRY(const std::string bound, Post(kBind, "/extender/bind", binding.dump()));
  if (bound != "{\"Error\":\"\"}") return Unreadable("bind", bound);
  return Placement{node, 0, 0, {}};
}

Result<std::string> HttpPlacer::Choose(const std::string& pod_json, std::string_view names) {
  if (names.find(',') == std::string_view::npos) {
    ties_.Pick(1);  // as EnginePlacer does, so that both draw the same later
    return std::string(names.substr(1, names.size() - 2));  // no prioritize for one node
  }
  BERTH_TRY(const std::string answer,
            Post(kPrioritize, "/extender/prioritize", ArgsJson(pod_json, names)));
  BERTH_TRY(const auto best, BestHosts(answer));
  return std::string(best[ties_.Pick(best.size())]);
}

}  // namespace berth::replay
