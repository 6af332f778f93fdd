// SPDX-License-Identifier: Apache-2.0
#include "bench/replay/url_placer.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <set>

#include "bench/replay/conform/requests.h"
#include "bench/replay/http_placer.h"

namespace berth::replay {
namespace {

using UrlJson = nlohmann::json;

constexpr std::chrono::seconds kPatience{5};  // httpTimeout of kube-scheduler

std::string NodeBody(const NodeSpec& node) {
  const UrlJson amounts = {{"cpu", std::to_string(node.cpu_milli) + "m"},
                           {"memory", std::to_string(node.memory_bytes)},
                           {"pods", "110"},
                           {"nvidia.com/gpu", std::to_string(node.gpus.size())}};
  return UrlJson{
      {"metadata",
       {{"name", node.name},
        {"uid", node.name},
        {"labels",
         {{"kubernetes.io/hostname", node.name}, {"nvidia.com/gpu.product", node.gpu_model}}}}},
      {"spec", UrlJson::object()},
      {"status",
       {{"capacity", amounts},
        {"allocatable", amounts},
        {"conditions", {{{"type", "Ready"}, {"status", "True"}}}}}}}
      .dump();
}

// null where there is none.
const UrlJson& At(const UrlJson& object, const char* key) {
  static const UrlJson kNone;
  return object.contains(key) ? object[key] : kNone;
}

std::string TextAt(const UrlJson& object, const char* key) {
  const UrlJson& text = At(object, key);
  return text.is_string() ? text.get<std::string>() : "";
}

tl::unexpected<Error> Unusable(const std::string& verb, const std::string& why) {
  return Fail(Errc::kUnavailable, verb + ": " + why);
}

}  // namespace

Result<UrlPlacer> UrlPlacer::Create(const UrlOptions& options, const std::vector<NodeSpec>& nodes,
                                    EnginePlacer& books) {
  BERTH_TRY(conform::ExtenderUrl url, conform::ParseExtenderUrl(options.url));
  UrlPlacer placer(options, std::move(url), books);
  if (options.node_bodies) {
    for (const NodeSpec& node : nodes) placer.node_bodies_[node.name] = NodeBody(node);
  }
  placer.connection_ = std::make_unique<conform::Connection>(placer.url_, kPatience);
  if (placer.connection_->problem().empty()) return placer;
  return Unusable(options.url, placer.connection_->problem());
}

bool UrlPlacer::Asks(const std::string& verb) const {
  return std::ranges::find(options_.verbs, verb) != options_.verbs.end();
}

Result<nlohmann::json> UrlPlacer::Post(const std::string& verb, const std::string& body) {
  const std::string bytes = conform::BytesOf(conform::Form::kPlain, url_, verb, body);
  const auto start = std::chrono::steady_clock::now();
  connection_->Send(bytes);
  conform::HttpAnswer answer = connection_->Read();
  if (answer.problem == conform::kConnectionClosed) {  // as it may be between two calls
    connection_ = std::make_unique<conform::Connection>(url_, kPatience);
    connection_->Send(bytes);
    answer = connection_->Read();
  }
  const std::chrono::duration<double, std::micro> taken = std::chrono::steady_clock::now() - start;
  us_[verb].push_back(taken.count());
  if (answer.status == 0) return Unusable(verb, answer.problem);
  if (answer.status == 404 && verb != "filter") {  // the extender has no such verb
    std::erase(options_.verbs, verb);
    return UrlJson();
  }
  if (answer.status != 200) return Unusable(verb, "status " + std::to_string(answer.status));
  UrlJson json = UrlJson::parse(answer.body, nullptr, false);
  if (json.is_discarded()) return Unusable(verb, "no JSON: " + answer.body.substr(0, 120));
  return json;
}

std::string UrlPlacer::Body(const PodRequest& pod, const std::vector<std::string>& names) {
  std::string body = "{\"Pod\":" + PodJson(pod);
  if (!options_.node_bodies) {
    return body + ",\"Nodes\":null,\"NodeNames\":" + UrlJson(names).dump() + "}";
  }
  body += R"(,"NodeNames":null,"Nodes":{"metadata":{},"items":[)";
  for (std::size_t i = 0; i < names.size(); ++i) {
    body.append(i == 0 ? "" : ",").append(node_bodies_[names[i]]);
  }
  return body + "]}}";
}

Result<std::vector<std::string>> UrlPlacer::Filter(const PodRequest& pod,
                                                   std::vector<std::string> names) {
  if (!Asks("filter")) return names;
  BERTH_TRY(const UrlJson answer, Post("filter", Body(pod, names)));
  if (!answer.is_object()) return Unusable("filter", "no object");
  if (!TextAt(answer, "Error").empty()) return std::vector<std::string>();
  std::vector<std::string> passed;
  if (options_.node_bodies) {
    for (const UrlJson& node : At(At(answer, "Nodes"), "items")) {
      passed.push_back(TextAt(At(node, "metadata"), "name"));
    }
  } else {
    for (const UrlJson& name : At(answer, "NodeNames")) {
      passed.push_back(name.is_string() ? name.get<std::string>() : "");
    }
  }
  const std::set<std::string> sent(names.begin(), names.end());
  for (const std::string& name : passed) {
    if (!sent.contains(name)) return Unusable("filter", "\"" + name + "\" passed, was not sent");
  }
  return passed;
}

// The first of those with the highest score; as kube-scheduler does, entries of a host are added.
Result<std::string> UrlPlacer::Choose(const PodRequest& pod,
                                      const std::vector<std::string>& names) {
  if (names.size() == 1 || !Asks("prioritize")) return names.front();
  BERTH_TRY(const UrlJson answer, Post("prioritize", Body(pod, names)));
  if (!answer.is_null() && !answer.is_array()) return Unusable("prioritize", "no array");
  std::map<std::string, std::int64_t> scores;
  for (const UrlJson& entry : answer) {
    const UrlJson& score = At(entry, "Score");
    if (!score.is_number_integer()) return Unusable("prioritize", "a Score that is no integer");
    scores[TextAt(entry, "Host")] += score.get<std::int64_t>();
  }
  return *std::ranges::max_element(names, {}, [&scores](const std::string& name) {
    const auto found = scores.find(name);
    return found == scores.end() ? 0 : found->second;
  });
}

Status UrlPlacer::Bind(const PodRequest& pod, const std::string& node) {
  if (!Asks("bind")) return {};
  const UrlJson binding = {{"PodName", pod.id.name},
                           {"PodNamespace", pod.id.namespace_name},
                           {"PodUID", pod.id.uid},
                           {"Node", node}};
  BERTH_TRY(const UrlJson answer, Post("bind", binding.dump()));
  const std::string error =
      answer.is_object() || answer.is_null() ? TextAt(answer, "Error") : "no object";
  if (error.empty()) return {};
  return Unusable("bind", error + ". Leave bind out of --verbs if it needs an API server");
}

Result<std::optional<Placement>> UrlPlacer::Place(const PodRequest& pod) {
  const Judgement judged = books_->Look(pod);
  const std::shared_ptr<const Snapshot> snapshot = books_->Cluster();
  std::vector<std::string> names;
  for (const NodeIndex node : judged.fitting) {
    names.emplace_back(snapshot->names().name(node));
  }
  if (names.empty()) return std::nullopt;
  BERTH_TRY(names, Filter(pod, std::move(names)));
  if (names.empty()) return std::nullopt;
  BERTH_TRY(const std::string node, Choose(pod, names));
  BERTH_TRY_STATUS(Bind(pod, node));
  BERTH_TRY_STATUS(books_->PutOn(pod, snapshot->names().Find(node)));
  Placement placement = *books_->last();
  placement.node.insert(0, ".");  // after the rank, which there is none of (StartOf)
  return placement;
}

}  // namespace berth::replay
