// SPDX-License-Identifier: Apache-2.0
#include "test/support/fake_api_server.h"

#include <algorithm>
#include <chrono>
#include <utility>

namespace berth::test {
namespace {

using Json = nlohmann::json;
using kube::ApiRequest;
using kube::ApiResponse;

const std::string kPods = "/api/v1/pods";

// A watch of what does not change shows by one that it lives.
constexpr int kBookmarkSeconds = 60;

std::string Bookmark(std::int64_t version) {
  const Json metadata = {{"resourceVersion", std::to_string(version)}};
  return Json{{"type", "BOOKMARK"}, {"object", {{"metadata", metadata}}}}.dump() + "\n";
}

std::string Between(const std::string& text, const std::string& before, const std::string& after) {
  const std::size_t at = text.find(before);
  if (at == std::string::npos) return "";
  const std::size_t from = at + before.size();
  return text.substr(from, text.find(after, from) - from);
}

std::string NameOf(const Json& object) {
  const Json& metadata = object.at("metadata");
  const std::string space = metadata.value("namespace", "");
  return (space.empty() ? "" : space + "/") + metadata.at("name").get<std::string>();
}

ApiResponse Refusal(int status, const std::string& message) {
  const Json body = {{"kind", "Status"}, {"code", status}, {"message", message}};
  return {status, body.dump(), {}};
}

// "/api/v1/namespaces/ns/pods/name" -> collection "/api/v1/pods", name "ns/name".
struct Target {
  std::string collection, full_name, subresource, query;
};

Target TargetOf(const std::string& path) {
  Target target;
  std::string rest = path.substr(0, path.find('?'));
  if (rest.size() < path.size()) target.query = path.substr(rest.size() + 1);
  const std::string space = Between(rest, "/namespaces/", "/");
  if (space.empty()) {
    // "/api/v1/nodes" or "/apis/GROUP/VERSION/things", and a name behind it.
    std::size_t end = 0;
    for (int parts = rest.starts_with("/apis/") ? 4 : 3; parts > 0; --parts) {
      end = std::min(rest.find('/', end + 1), rest.size());
    }
    target.collection = rest.substr(0, end);
    if (end < rest.size()) target.full_name = rest.substr(end + 1);
    return target;
  }
  const std::size_t at = rest.find("/namespaces/");
  std::string tail = rest.substr(at + 12 + space.size());  // "/pods/name/binding"
  const std::size_t name = tail.find('/', 1);
  target.collection = rest.substr(0, at) + tail.substr(0, name);
  if (name == std::string::npos) return target;
  const std::size_t sub = tail.find('/', name + 1);
  target.full_name = space + "/" + tail.substr(name + 1, sub - name - 1);
  if (sub != std::string::npos) target.subresource = tail.substr(sub + 1);
  return target;
}

// A strategic merge patch replaces conditions one by one, by their type. What is left of the patch
// has none.
void MergeConditions(Json& object, Json& patch) {
  const Json changed = patch["status"].value("conditions", Json::array());
  patch["status"].erase("conditions");
  if (changed.empty()) return;
  Json& conditions = object["status"]["conditions"];
  for (const Json& one : changed) {
    const auto same = std::ranges::find_if(
        conditions, [&one](const Json& other) { return other["type"] == one["type"]; });
    if (same == conditions.end()) {
      conditions.push_back(one);
    } else {
      *same = one;
    }
  }
}

}  // namespace

Json FakeNode(const std::string& name, int gpus) {
  const Json resources = {{"cpu", "64"},
                          {"memory", "256Gi"},
                          {"pods", "110"},
                          {"nvidia.com/gpu", std::to_string(gpus)}};
  return {{"apiVersion", "v1"},
          {"kind", "Node"},
          {"metadata",
           {{"name", name},
            {"labels",
             {{"nvidia.com/gpu.product", "A100-SXM4-80GB"}, {"nvidia.com/gpu.memory", "81920"}}}}},
          {"spec", Json::object()},
          {"status",
           {{"allocatable", resources},
            {"capacity", resources},
            {"conditions", {{{"type", "Ready"}, {"status", "True"}}}}}}};
}

Json FakePod(const std::string& name, const Json& requests) {
  return {{"apiVersion", "v1"},
          {"kind", "Pod"},
          {"metadata", {{"name", name}, {"namespace", "ns"}, {"uid", "uid-" + name}}},
          {"spec",
           {{"containers",
             {{{"name", "main"}, {"resources", {{"requests", requests}, {"limits", requests}}}}}}}},
          {"status", {{"phase", "Pending"}}}};
}

Result<ApiResponse> FakeApiServer::Send(const ApiRequest& request) {
  const Fault what = fault(request);
  Result<ApiResponse> response = SendNow(request, what);
  before_answer(request);
  return response;
}

Result<ApiResponse> FakeApiServer::SendNow(const ApiRequest& request, Fault what) {
  const std::lock_guard lock(mutex_);
  if (!up_ || what == Fault::kNeverCame) return Fail(Errc::kUnavailable, "connection refused");
  if (what == Fault::kTooMany) {
    ApiResponse response = Refusal(429, "too many requests");
    response.retry_after = std::chrono::milliseconds(1);
    return response;
  }
  if (what == Fault::kInternal) return Refusal(500, "internal error");
  if (what == Fault::kConflict) return Refusal(409, "please try again");
  if (what == Fault::kForbidden) return Refusal(403, "pods is forbidden");
  ApiResponse response = Answer(request);
  if (what == Fault::kLostAnswer) return Fail(Errc::kUnavailable, "connection reset");
  return response;
}

ApiResponse FakeApiServer::Answer(const ApiRequest& request) {
  const Target target = TargetOf(request.path);
  if (target.subresource == "binding") {
    return Bind(target.full_name, Json::parse(request.body));
  }
  if (request.method == "PATCH") return Patch(target.collection, target.full_name, request);
  if (request.method != "GET") return Write(target.collection, target.full_name, request);
  if (target.full_name.empty()) return List(target.collection, target.query);
  const Objects& objects = collections_[target.collection];
  const auto found = objects.find(target.full_name);
  if (found == objects.end()) return Refusal(404, target.full_name + " not found");
  return {200, found->second.dump(), {}};
}

ApiResponse FakeApiServer::Write(const std::string& collection, const std::string& full_name,
                                 const ApiRequest& request) {
  Json object = Json::parse(request.body);
  const std::string name = NameOf(object);
  const Objects& objects = collections_[collection];
  const auto found = objects.find(name);
  if (request.method == "POST") {
    if (found != objects.end()) return Refusal(409, name + " already exists");
  } else {
    if (found == objects.end()) return Refusal(404, full_name + " not found");
    const Json& had = found->second.at("metadata").at("resourceVersion");
    if (object.at("metadata").value("resourceVersion", "") != had.get<std::string>()) {
      return Refusal(409, "the object has been modified");
    }
  }
  Store(collection, name, std::move(object));
  return {request.method == "POST" ? 201 : 200, collections_[collection][name].dump(), {}};
}

ApiResponse FakeApiServer::Patch(const std::string& collection, const std::string& full_name,
                                 const ApiRequest& request) {
  const Objects& objects = collections_[collection];
  const auto found = objects.find(full_name);
  if (found == objects.end()) return Refusal(404, full_name + " not found");
  const bool is_strategic = request.content_type == "application/strategic-merge-patch+json";
  if (!is_strategic && request.content_type != "application/merge-patch+json") {
    return Refusal(415, "the body of the request was in an unknown format");
  }
  Json patch = Json::parse(request.body);
  const Json& metadata = found->second["metadata"];
  const std::string version = patch["metadata"].value("resourceVersion", "");
  if (!version.empty() && version != metadata["resourceVersion"]) {
    return Refusal(409, "the object has been modified");
  }
  if (patch["metadata"].contains("uid") && patch["metadata"]["uid"] != metadata["uid"]) {
    return Refusal(409, "Precondition failed: UID in precondition: ...");
  }
  Json object = found->second;
  if (is_strategic) MergeConditions(object, patch);
  object.merge_patch(patch);
  if (object != found->second) Store(collection, full_name, object);
  return {200, collections_[collection][full_name].dump(), {}};
}

ApiResponse FakeApiServer::Bind(const std::string& full_name, const Json& binding) {
  Objects& pods = collections_[kPods];
  const auto found = pods.find(full_name);
  if (found == pods.end()) return Refusal(404, "pods \"" + full_name + "\" not found");
  Json pod = found->second;
  if (pod["metadata"]["uid"] != binding["metadata"]["uid"]) {
    return Refusal(409, "Precondition failed: UID in precondition: ...");
  }
  if (pod["spec"].contains("nodeName")) {
    return Refusal(409, "pod is already assigned to node \"" +
                            pod["spec"]["nodeName"].get<std::string>() + "\"");
  }
  pod["spec"]["nodeName"] = binding["target"]["name"];
  const Json annotations = binding["metadata"].value("annotations", Json::object());
  for (const auto& [key, value] : annotations.items()) {
    pod["metadata"]["annotations"][key] = value;
  }
  ++bindings_;
  CountDoubleGrants(pod);
  Store(kPods, full_name, std::move(pod));
  return {201, R"({"kind":"Status","status":"Success"})", {}};
}

void FakeApiServer::CountDoubleGrants(const Json& pod) {
  const Json annotations = pod["metadata"].value("annotations", Json::object());
  if (!annotations.contains("berth.dev/devices")) return;
  const Json devices = Json::parse(annotations["berth.dev/devices"].get<std::string>());
  for (const auto& [container, has] : devices["containers"].items()) {
    for (const Json& gpu : has.value("gpus", Json::array())) {
      int& milli = granted_[pod["spec"]["nodeName"]][gpu["index"].get<int>()];
      milli += gpu["milli"].get<int>();
      if (milli > 1000) ++double_grants_;
    }
  }
}

void FakeApiServer::Store(const std::string& collection, const std::string& full_name,
                          Json object) {
  Objects& objects = collections_[collection];
  const bool is_new = !objects.contains(full_name);
  object["metadata"]["resourceVersion"] = std::to_string(++version_);
  const Json line = {{"type", is_new ? "ADDED" : "MODIFIED"}, {"object", object}};
  changes_.push_back({version_, collection, line.dump() + "\n"});
  objects[full_name] = std::move(object);
  changed_.notify_all();
}

void FakeApiServer::Put(const std::string& collection, Json object) {
  const std::lock_guard lock(mutex_);
  const std::string name = NameOf(object);
  Store(collection, name, std::move(object));
}

bool FakeApiServer::Delete(const std::string& collection, const std::string& full_name) {
  const std::lock_guard lock(mutex_);
  Objects& objects = collections_[collection];
  const auto found = objects.find(full_name);
  if (found == objects.end()) return false;
  Json object = std::move(found->second);
  objects.erase(found);
  object["metadata"]["resourceVersion"] = std::to_string(++version_);
  if (collection == kPods && object["spec"].contains("nodeName") &&
      object["metadata"].contains("annotations")) {
    const Json devices =
        Json::parse(object["metadata"]["annotations"].value("berth.dev/devices", "{}"));
    const Json containers = devices.value("containers", Json::object());
    for (const auto& [container, has] : containers.items()) {
      for (const Json& gpu : has.value("gpus", Json::array())) {
        granted_[object["spec"]["nodeName"]][gpu["index"].get<int>()] -= gpu["milli"].get<int>();
      }
    }
  }
  const Json line = {{"type", "DELETED"}, {"object", object}};
  changes_.push_back({version_, collection, line.dump() + "\n"});
  changed_.notify_all();
  return true;
}

Json FakeApiServer::Get(const std::string& collection, const std::string& full_name) const {
  const std::lock_guard lock(mutex_);
  const auto objects = collections_.find(collection);
  if (objects == collections_.end()) return "";
  const auto found = objects->second.find(full_name);
  return found == objects->second.end() ? Json("") : found->second;
}

std::vector<Json> FakeApiServer::All(const std::string& collection) const {
  const std::lock_guard lock(mutex_);
  std::vector<Json> all;
  const auto objects = collections_.find(collection);
  if (objects == collections_.end()) return all;
  for (const auto& [name, object] : objects->second) all.push_back(object);
  return all;
}

// A page ends with the name of its last object. All pages carry the version of the first one, so
// that a watch from there makes up for what changed between them.
ApiResponse FakeApiServer::List(const std::string& collection, const std::string& query) {
  const std::string token = Between("&" + query, "&continue=", "&");  // "VERSION.NAME"
  const std::string limit = Between("&" + query, "&limit=", "&");
  const std::size_t most = limit.empty() ? 1'000'000 : std::stoul(limit);
  const std::string version =
      token.empty() ? std::to_string(version_) : token.substr(0, token.find('.'));
  const Objects& objects = collections_[collection];
  Json items = Json::array();
  auto object =
      token.empty() ? objects.begin() : objects.upper_bound(token.substr(version.size() + 1));
  for (; object != objects.end() && items.size() < most; ++object) items.push_back(object->second);
  Json metadata = {{"resourceVersion", version}};
  if (object != objects.end()) metadata["continue"] = version + "." + std::prev(object)->first;
  return {200, Json{{"kind", "List"}, {"metadata", metadata}, {"items", items}}.dump(), {}};
}

std::vector<std::string> FakeApiServer::ChangesSince(const std::string& collection,
                                                     std::int64_t& version) const {
  std::vector<std::string> lines;
  auto change = changes_.end();
  while (change != changes_.begin() && std::prev(change)->version > version) --change;
  for (; change != changes_.end(); ++change) {
    if (change->collection == collection) lines.push_back(change->line);
  }
  version = version_;
  return lines;
}

Result<ApiResponse> FakeApiServer::Stream(const std::string& path, Duration,
                                          const std::stop_token& stop,
                                          const kube::StreamSink& sink) {
  const Target target = TargetOf(path);
  std::unique_lock lock(mutex_);
  if (!up_) return Fail(Errc::kUnavailable, "connection refused");
  if (const auto status = statuses_.find(target.collection); status != statuses_.end()) {
    return Refusal(status->second, "as the test says");
  }
  if (path.find("watch=1") == std::string::npos) {
    // The names of namespaced objects have a slash, which comes escaped.
    std::string query = target.query;
    for (std::size_t at; (at = query.find("%2F")) != std::string::npos;) query.replace(at, 3, "/");
    const ApiResponse page = List(target.collection, query);
    lock.unlock();
    sink(page.body);
    return ApiResponse{200, "", {}};
  }
  std::int64_t version = std::stoll(Between("&" + target.query, "&resourceVersion=", "&"));
  if (version < oldest_) return Refusal(410, "too old resource version");
  const int cuts = cuts_;
  int quiet_seconds = 0;
  while (!stop.stop_requested()) {
    if (!up_ || cuts != cuts_) return Fail(Errc::kUnavailable, "connection reset");
    const std::vector<std::string> lines = ChangesSince(target.collection, version);
    if (lines.empty()) {
      changed_.wait_for(lock, stop, std::chrono::seconds(1),
                        [&] { return !up_ || cuts != cuts_ || version != version_; });
      if (version != version_ || ++quiet_seconds % kBookmarkSeconds != 0) continue;
      lock.unlock();
      if (!sink(Bookmark(version))) return ApiResponse{200, "", {}};
      lock.lock();
      continue;
    }
    lock.unlock();
    for (const std::string& line : disturb(lines)) {
      if (!sink(line)) return ApiResponse{200, "", {}};
    }
    lock.lock();
  }
  return ApiResponse{200, "", {}};
}

void FakeApiServer::SetStatus(const std::string& collection, int status) {
  const std::lock_guard lock(mutex_);
  statuses_.insert_or_assign(collection, status);
  if (status == 200) statuses_.erase(collection);
  ++cuts_;
  changed_.notify_all();
}

void FakeApiServer::SetUp(bool up) {
  const std::lock_guard lock(mutex_);
  up_ = up;
  changed_.notify_all();
}

void FakeApiServer::CutWatches() {
  const std::lock_guard lock(mutex_);
  ++cuts_;
  changed_.notify_all();
}

void FakeApiServer::Compact() {
  const std::lock_guard lock(mutex_);
  oldest_ = ++version_;
}

int FakeApiServer::double_grants() const {
  const std::lock_guard lock(mutex_);
  return double_grants_;
}

int FakeApiServer::bindings() const {
  const std::lock_guard lock(mutex_);
  return bindings_;
}

}  // namespace berth::test
