// SPDX-License-Identifier: Apache-2.0
#include "test/soak/soak_api.h"

#include <algorithm>

#include "server/wire/json/json_text.h"

namespace berth::test {
namespace {

using ApiJson = nlohmann::json;
using kube::ApiRequest;
using kube::ApiResponse;

std::string Meta(const std::string& name, std::int64_t version) {
  return R"("metadata":{"name":")" + name + R"(","uid":"uid-)" + name + R"(","resourceVersion":")" +
         std::to_string(version) + '"';
}

std::string TextOf(const SoakNode& node) {
  const auto resources = [](int gpus) {
    return R"({"cpu":"64","memory":"256Gi","pods":"110","nvidia.com/gpu":")" +
           std::to_string(gpus) + "\"}";
  };
  std::string uuids;
  const int gpus = kSoakGpusPerNode - node.gone_gpus;
  for (int gpu = 0; gpu < gpus; ++gpu) {
    uuids += (gpu == 0 ? "g" : ",g") + std::to_string(gpu);
  }
  std::string text = R"({"apiVersion":"v1","kind":"Node",)" + Meta(node.name, node.version) +
                     R"(,"labels":{"nvidia.com/gpu.product":"A100-SXM4-80GB",)"
                     R"("nvidia.com/gpu.memory":"81920"},"annotations":{"berth.dev/gpu-uuids":")" +
                     uuids + R"("}},"spec":{},"status":{"allocatable":)" +
                     resources(std::max(gpus - node.lost_gpus, 0)) + R"(,"capacity":)" +
                     resources(gpus) + R"(,"conditions":[{"type":"Ready","status":")" +
                     (node.ready ? "True" : "False") + "\"}]}}";
  text.reserve(text.size() + 64);
  return text;
}

ApiResponse Refusal(int status, const std::string& message) {
  ApiResponse response{
      status,
      R"({"kind":"Status","message":")" + message + R"(","code":)" + std::to_string(status) + '}',
      {}};
  if (status == 429) response.retry_after = std::chrono::milliseconds(1);
  return response;
}

std::vector<std::pair<int, int>> GrantsIn(const std::string& devices, int& wrong) {
  std::vector<std::pair<int, int>> grants;
  const ApiJson json = ApiJson::parse(devices);
  for (const auto& [container, has] : json.at("containers").items()) {
    for (const ApiJson& gpu : has.at("gpus")) {
      const int index = gpu.at("index");
      const bool right = index < kSoakGpusPerNode && gpu.at("uuid") == "g" + std::to_string(index);
      if (right) {
        grants.emplace_back(index, gpu.at("milli"));
      } else {
        ++wrong;
      }
    }
  }
  return grants;
}

}  // namespace

std::string TextOf(const SoakPod& pod) {
  const std::string ask = pod.gpus > 0
                              ? R"("nvidia.com/gpu":")" + std::to_string(pod.gpus) + '"'
                              : R"("berth.dev/gpu-milli":")" + std::to_string(pod.milli) + '"';
  std::string text =
      R"({"apiVersion":"v1","kind":"Pod",)" + Meta(pod.name, pod.version) + R"(,"namespace":"ns")";
  std::map<std::string, std::string> annotations = pod.says;
  if (!pod.devices.empty()) annotations["berth.dev/devices"] = pod.devices;
  text += R"(,"annotations":{)";
  for (const auto& [key, value] : annotations) {
    if (text.back() != '{') text += ',';
    wire::AppendString(text, key);
    text += ':';
    wire::AppendString(text, value);
  }
  text += R"(}},"spec":{)";
  if (!pod.node.empty()) text += R"("nodeName":")" + pod.node + R"(",)";
  text += R"("containers":[{"name":"main","resources":{"requests":{)" + ask + R"(},"limits":{)" +
          ask + R"(}}}]},"status":{"phase":")";
  text += pod.over ? "Succeeded" : pod.node.empty() ? "Pending" : "Running";
  text += "\"}}";
  text.reserve(text.size() + 64);  // for simdjson
  return text;
}

Result<ApiResponse> SoakApi::Send(int process, const ApiRequest& request) {
  const Fault what = fault(request);
  on_the_wire();
  const bool fenced = request.method != "GET" && !may_write(process);
  if (what == Fault::kNeverCame || fenced) return Fail(Errc::kUnavailable, "connection refused");
  if (what == Fault::kTooMany) return Refusal(429, "too many requests");
  if (what == Fault::kInternal) return Refusal(500, "internal error");
  if (what == Fault::kConflict) return Refusal(409, "please try again");
  if (what == Fault::kForbidden) return Refusal(403, "pods is forbidden");
  ApiResponse response = Answer(request);
  on_the_wire();
  if (what == Fault::kLostAnswer) return Fail(Errc::kUnavailable, "connection reset");
  return response;
}

// "/api/v1/namespaces/ns/pods/NAME" or ".../NAME/binding".
ApiResponse SoakApi::Answer(const ApiRequest& request) {
  constexpr std::string_view kPods = "/pods/";
  const std::size_t from = request.path.find(kPods) + kPods.size();
  const std::string name = request.path.substr(from, request.path.find('/', from) - from);
  const auto pod = pods_.find(name);
  if (pod == pods_.end()) return Refusal(404, "pod " + name + " not found");
  if (request.method == "POST") return Bind(pod->second, request.body);
  return {200, TextOf(pod->second), {}};
}

ApiResponse SoakApi::Bind(SoakPod& pod, const std::string& body) {
  if (!pod.node.empty()) return Refusal(409, "pod is already assigned to node " + pod.node);
  const ApiJson binding = ApiJson::parse(body);
  pod.node = binding["target"]["name"].get<std::string>();
  pod.devices = binding["metadata"]["annotations"].value("berth.dev/devices", "");
  pod.bound_devices = pod.devices;
  pod.granted = GrantsIn(pod.devices, wrong_gpus_);
  pod.says["berth.dev/decision"] =
      binding["metadata"]["annotations"].value("berth.dev/decision", "");
  ++bindings_;
  for (const int taken : TakenOn(pod.node)) double_grants_ += taken > kGpuMilli ? 1 : 0;
  on_bound(pod);
  ChangePod(pod.name, [](SoakPod&) {});
  return {201, R"({"kind":"Status","status":"Success"})", {}};
}

void SoakApi::Note(SoakKind kind, SoakChange change, const std::string& name, std::string object) {
  events_.push_back({version_, kind, change, name, std::move(object)});
  if (on_event) on_event(events_.back());
}

void SoakApi::AddNode(const std::string& name) {
  nodes_[name].name = name;
  ChangeNode(name, [](SoakNode&) {});
}

void SoakApi::ChangeNode(const std::string& name, const std::function<void(SoakNode&)>& change) {
  SoakNode& node = nodes_.at(name);
  change(node);
  node.version = ++version_;
  Note(SoakKind::kNode, SoakChange::kChanged, name, TextOf(node));
}

void SoakApi::AddPod(SoakPod pod) {
  pod.version = ++version_;
  const std::string name = pod.name;
  pods_.emplace(name, std::move(pod));
  ChangePod(name, [](SoakPod&) {});
}

void SoakApi::ChangePod(const std::string& name, const std::function<void(SoakPod&)>& change) {
  SoakPod& pod = pods_.at(name);
  change(pod);
  pod.version = ++version_;
  Note(SoakKind::kPod, pod.over ? SoakChange::kDeleted : SoakChange::kChanged, name, TextOf(pod));
}

void SoakApi::DeletePod(const std::string& name) {
  SoakPod& pod = pods_.at(name);
  pod.version = ++version_;
  if (!pod.over) Note(SoakKind::kPod, SoakChange::kDeleted, name, TextOf(pod));
  pods_.erase(name);
}

void SoakApi::Compact() {
  events_.clear();
  oldest_ = version_;
}

std::vector<std::pair<std::string, std::string>> SoakApi::List(SoakKind kind) const {
  std::vector<std::pair<std::string, std::string>> list;
  if (kind == SoakKind::kNode) {
    for (const auto& [name, node] : nodes_) list.emplace_back(name, TextOf(node));
  } else {
    for (const auto& [name, pod] : pods_) {
      if (!pod.over) list.emplace_back(name, TextOf(pod));
    }
  }
  return list;
}

std::vector<SoakEvent> SoakApi::Since(SoakKind kind, std::int64_t version, std::size_t most) const {
  std::vector<SoakEvent> found;
  auto event = std::ranges::upper_bound(events_, version, {}, &SoakEvent::version);
  for (; event != events_.end() && found.size() < most; ++event) {
    if (event->kind == kind) found.push_back(*event);
  }
  return found;
}

std::vector<int> SoakApi::TakenOn(const std::string& node) const {
  std::vector<int> taken(kSoakGpusPerNode, 0);
  for (const auto& [name, pod] : pods_) {
    if (!pod.bound() || pod.node != node) continue;
    for (const auto& [gpu, milli] : pod.granted) taken[static_cast<std::size_t>(gpu)] += milli;
  }
  return taken;
}

}  // namespace berth::test
