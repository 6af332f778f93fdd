// SPDX-License-Identifier: Apache-2.0
//
// FakeApiServer: the part of an API server that Berth talks to, in memory - nodes, pods, bindings,
// leases, events, budgets; lists, watches, resourceVersions - with the faults of a bad day.
//
// It keeps the one promise that everything rests on: a pod is bound once, by the Binding that came
// first. And it counts what must never happen: a GPU granted beyond what it has.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <nlohmann/json.hpp>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "server/kube/client/api_client.h"

namespace berth::test {

// What happens to one request.
enum class Fault {
  kNone,
  kTooMany,     // 429 with Retry-After
  kInternal,    // 500
  kConflict,    // 409 for no reason
  kForbidden,   // 403, as from an API server that has not read the rights yet
  kNeverCame,   // no answer; it was not carried out
  kLostAnswer,  // no answer; it was carried out
};

// The first of them, from then on not among them; kNone when there is none.
inline Fault TakeFirst(std::deque<Fault>& faults) {
  if (faults.empty()) return Fault::kNone;
  const Fault first = faults.front();
  faults.pop_front();
  return first;
}

// Any thread may call any function.
class FakeApiServer final : public kube::ApiClient {
 public:
  using Json = nlohmann::json;

  // Asked for every Send. Set before threads start.
  std::function<Fault(const kube::ApiRequest&)> fault = [](const kube::ApiRequest&) {
    return Fault::kNone;
  };
  // Called when a Send has been carried out and its answer is still to come. Set before threads
  // start.
  std::function<void(const kube::ApiRequest&)> before_answer = [](const kube::ApiRequest&) {};
  // How the next events of a watch are sent: may repeat and reorder them.
  std::function<std::vector<std::string>(std::vector<std::string>)> disturb =
      [](std::vector<std::string> lines) { return lines; };

  Result<kube::ApiResponse> Send(const kube::ApiRequest& request) override;
  Result<kube::ApiResponse> Stream(const std::string& path, Duration idle_timeout,
                                   const std::stop_token& stop,
                                   const kube::StreamSink& sink) override;

  // Puts an object into a collection ("/api/v1/nodes"), as some other client would.
  void Put(const std::string& collection, Json object);
  // False: it is not there.
  bool Delete(const std::string& collection, const std::string& full_name);
  // "" where there is none.
  [[nodiscard]] Json Get(const std::string& collection, const std::string& full_name) const;
  [[nodiscard]] std::vector<Json> All(const std::string& collection) const;

  // Lists and watches of the collection get that status from now on; watches of now break off.
  // 404: the API is not served. 200 again: it is.
  void SetStatus(const std::string& collection, int status);
  // Requests fail with "no answer" and watches break, until it is up again.
  void SetUp(bool up);
  // The watches of now break off.
  void CutWatches();
  // Watches from versions before this moment get 410.
  void Compact();

  [[nodiscard]] int double_grants() const;
  [[nodiscard]] int bindings() const;

 private:
  struct Change {
    std::int64_t version;
    std::string collection;
    std::string line;
  };
  using Objects = std::map<std::string, Json>;  // by "namespace/name" or "name"

  Result<kube::ApiResponse> SendNow(const kube::ApiRequest& request, Fault what);
  kube::ApiResponse Answer(const kube::ApiRequest& request);
  kube::ApiResponse Bind(const std::string& full_name, const Json& binding);
  void CountDoubleGrants(const Json& pod);
  kube::ApiResponse List(const std::string& collection, const std::string& query);
  kube::ApiResponse Write(const std::string& collection, const std::string& full_name,
                          const kube::ApiRequest& request);
  // A merge patch, or a strategic one of conditions.
  kube::ApiResponse Patch(const std::string& collection, const std::string& full_name,
                          const kube::ApiRequest& request);
  void Store(const std::string& collection, const std::string& full_name, Json object);
  std::vector<std::string> ChangesSince(const std::string& collection, std::int64_t& version) const;

  mutable std::mutex mutex_;
  std::condition_variable_any changed_;
  std::map<std::string, Objects> collections_;
  std::map<std::string, int> statuses_;                // of collections that are not simply served
  std::map<std::string, std::map<int, int>> granted_;  // node -> GPU -> milli
  std::vector<Change> changes_;
  std::int64_t version_ = 1;
  std::int64_t oldest_ = 0;  // what watches may begin from
  int cuts_ = 0;
  bool up_ = true;
  int double_grants_ = 0;
  int bindings_ = 0;
};

// The JSON of a node with these GPUs, ready; of a pod with one container that asks for `gpus`.
nlohmann::json FakeNode(const std::string& name, int gpus);
nlohmann::json FakePod(const std::string& name, const nlohmann::json& requests);

}  // namespace berth::test
