// SPDX-License-Identifier: Apache-2.0
//
// SoakApi: the API server of the soak, without threads and without time. It has nodes, pods and
// their Bindings, remembers its changes as a watch would send them, and knows which GPUs each pod
// was bound with, whatever anybody writes into the pod's annotations afterwards.
//
// Every request first calls `on_the_wire`, is carried out, and calls it again before the answer:
// whatever may happen while a request is under way happens in there.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "server/kube/client/api_client.h"
#include "test/support/fake_api_server.h"

namespace berth::test {

constexpr int kSoakGpusPerNode = 4;
constexpr int kGpuMilli = 1000;

struct SoakPod {
  std::string name;
  int gpus = 0;   // whole ones, or
  int milli = 0;  // a share of one
  std::string node = {};
  std::string devices = {};                       // berth.dev/devices as it reads now
  std::vector<std::pair<int, int>> granted = {};  // GPU and milli, of the Binding
  std::string bound_devices = {};                 // berth.dev/devices of the Binding
  std::map<std::string, std::string> says = {};   // its other annotations
  bool hostile = false;                           // bound past Berth
  bool over = false;
  std::int64_t version = 0;

  [[nodiscard]] std::string uid() const { return "uid-" + name; }
  [[nodiscard]] bool bound() const { return !node.empty() && !over; }
};

struct SoakNode {
  std::string name;
  int lost_gpus = 0;  // that the device plugin does not offer now
  int gone_gpus = 0;  // that it does not even show now: it starts anew
  bool ready = true;
  std::int64_t version = 0;
};

enum class SoakKind { kNode, kPod };
enum class SoakChange { kChanged, kDeleted };

// What a watch of that kind sends; pods as PodSink::kQuery selects them.
struct SoakEvent {
  std::int64_t version = 0;
  SoakKind kind = SoakKind::kPod;
  SoakChange change = SoakChange::kChanged;
  std::string name;
  std::string object;
};

class SoakApi {
 public:
  using Names = std::vector<std::string>;

  // Asked for each request before it is carried out.
  std::function<Fault(const kube::ApiRequest&)> fault;
  std::function<void()> on_the_wire;
  // Told of every Binding that was carried out.
  std::function<void(const SoakPod&)> on_bound;
  // Told of everything that a watch sends.
  std::function<void(const SoakEvent&)> on_event;
  // Whether a write of that process may still be carried out.
  std::function<bool(int process)> may_write;

  Result<kube::ApiResponse> Send(int process, const kube::ApiRequest& request);

  void AddNode(const std::string& name);
  void ChangeNode(const std::string& name, const std::function<void(SoakNode&)>& change);
  void AddPod(SoakPod pod);
  void ChangePod(const std::string& name, const std::function<void(SoakPod&)>& change);
  void DeletePod(const std::string& name);

  [[nodiscard]] const std::map<std::string, SoakPod>& pods() const { return pods_; }
  [[nodiscard]] const std::map<std::string, SoakNode>& nodes() const { return nodes_; }
  [[nodiscard]] std::int64_t version() const { return version_; }
  // Watches from before have lost what was there.
  [[nodiscard]] std::int64_t oldest() const { return oldest_; }
  void Compact();

  // A list of that kind as it is now: names with their objects.
  [[nodiscard]] std::vector<std::pair<std::string, std::string>> List(SoakKind kind) const;
  // At most `most` changes of that kind after the version, the oldest first.
  [[nodiscard]] std::vector<SoakEvent> Since(SoakKind kind, std::int64_t version,
                                             std::size_t most) const;

  // What pods that are bound hold of each GPU, by their Bindings.
  [[nodiscard]] std::vector<int> TakenOn(const std::string& node) const;
  // How often a Binding gave a GPU beyond what it has.
  [[nodiscard]] int double_grants() const { return double_grants_; }
  // How often a Binding named a GPU with the UUID of another one, or none that the machine has.
  [[nodiscard]] int wrong_gpus() const { return wrong_gpus_; }
  [[nodiscard]] std::uint64_t bindings() const { return bindings_; }

 private:
  kube::ApiResponse Answer(const kube::ApiRequest& request);
  kube::ApiResponse Bind(SoakPod& pod, const std::string& body);
  void Note(SoakKind kind, SoakChange change, const std::string& name, std::string object);

  std::map<std::string, SoakPod> pods_;
  std::map<std::string, SoakNode> nodes_;
  std::deque<SoakEvent> events_;
  std::int64_t version_ = 1, oldest_ = 1;
  int double_grants_ = 0;
  int wrong_gpus_ = 0;
  std::uint64_t bindings_ = 0;
};

// A pod's JSON, with room behind it for simdjson.
std::string TextOf(const SoakPod& pod);

// The API server as one process sees it.
class SoakClient final : public kube::ApiClient {
 public:
  SoakClient(SoakApi& api, int process) : api_(api), process_(process) {}
  Result<kube::ApiResponse> Send(const kube::ApiRequest& request) override {
    return api_.Send(process_, request);
  }
  Result<kube::ApiResponse> Stream(const std::string&, Duration, const std::stop_token&,
                                   const kube::StreamSink&) override {
    return Fail(Errc::kUnavailable, "the soak lists and watches step by step");
  }

 private:
  SoakApi& api_;
  const int process_;
};

}  // namespace berth::test
