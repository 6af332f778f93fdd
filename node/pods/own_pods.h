// SPDX-License-Identifier: Apache-2.0
//
// OwnPods: the pods of this node as the API server has them, kept by a Reflector.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/mutex.h"
#include "base/padded_text.h"
#include "base/result.h"
#include "node/facts/node_facts.h"
#include "server/kube/watch/reflector.h"

namespace berth::node {

// Plan: what berth.dev/devices says of one container, as names of a device plugin. It is a
// preference among the devices that the kubelet offers, no more.

inline constexpr std::size_t kMostPlanBytes = std::size_t{64} << 10;
inline constexpr std::size_t kMostPlannedDevices = 256;  // of a container

struct PlannedGpu {
  int index = 0;
  std::string uuid;  // "" = not known
  int milli = 1000;  // thousandths of the GPU
};

struct PlannedMig {
  int gpu = -1;  // index; -1: any
  std::string profile;
  int start = -1;  // -1: any
};

struct ContainerPlan {
  std::vector<PlannedGpu> gpus;
  std::vector<PlannedMig> mig;
  std::vector<PlannedGpu> places;  // replicas of GPUs: of one as often as it is there
};

struct PodPlan {
  std::map<std::string, ContainerPlan> containers;  // by name

  // All containers together, in the order of their names.
  [[nodiscard]] ContainerPlan Whole() const;
};

// Error: kInvalidArgument where it is no plan, or one for another node.
Result<PodPlan> ParsePlan(std::string_view annotation, std::string_view node);

// The planned devices that are among `available`, each once. A GPU goes by its UUID or, where that
// is not known, by its index in the facts; of a GPU with replicas any free one is taken.
std::vector<std::string> DevicesOf(const ContainerPlan& plan,
                                   const std::vector<std::string>& available,
                                   const NodeFacts& facts);

// OwnPod: what the agent knows of one pod of its node.

struct OwnContainer {
  std::string name;
  bool ends_first = false;  // an init container that is no sidecar
  // By extended resource ("nvidia.com/gpu") how many are asked for.
  std::map<std::string, std::size_t> asks;
  bool running = false;
  bool reports_devices = false;  // its status has allocatedResourcesStatus
};

struct OwnPod {
  std::string namespace_name;
  std::string name;
  std::string uid;
  std::string created;  // as in the API: texts in the order of time
  bool over = false;    // Succeeded or Failed
  bool ending = false;  // it has a deletionTimestamp
  // Those that ask for an extended resource, in the kubelet's order: init containers first.
  std::vector<OwnContainer> containers;
  std::optional<PodPlan> plan;  // of a pod that Berth bound
  std::string plan_problem;     // why there is none although there is an annotation
  std::string given;            // berth.dev/given
  Instant bound{};              // when the watch brought it first; zero: it was there before

  [[nodiscard]] bool Asks(const std::string& resource) const;
};

// A Pod as JSON. Error: kInvalidArgument; a part that cannot be read counts as not there.
Result<OwnPod> ParseOwnPod(std::string_view json, std::string_view node);

using OwnPodPtr = std::shared_ptr<const OwnPod>;

// The functions of ObjectSink: the thread of the reflector. The others: any thread.
class OwnPods final : public kube::ObjectSink {
 public:
  static constexpr std::size_t kMostPods = 16'384;  // more are left out
  static constexpr Duration kFirstList = std::chrono::seconds(2);

  // on_change is called after each change, on the thread of the reflector; may be empty.
  OwnPods(std::string node, std::function<void()> on_change);

  void ListBegins() override BERTH_EXCLUDES(mutex_);
  void Listed(const PaddedText& object) override BERTH_EXCLUDES(mutex_);
  void ListEnds() override BERTH_EXCLUDES(mutex_);
  void Changed(const PaddedText& object) override BERTH_EXCLUDES(mutex_);
  void Deleted(const PaddedText& object) override BERTH_EXCLUDES(mutex_);

  // The API server gave no answer, and will not be asked again before that time.
  void Failed(Instant until) BERTH_EXCLUDES(mutex_);

  // By "namespace/name".
  using Pods = std::map<std::string, OwnPodPtr>;
  [[nodiscard]] Pods All() const BERTH_EXCLUDES(mutex_);
  // Whether news of pods can be expected: waiting for one makes sense.
  [[nodiscard]] bool Live() const BERTH_EXCLUDES(mutex_);
  // Live, or the first list may still come: what is not known may be known soon.
  [[nodiscard]] bool NewsExpected() const BERTH_EXCLUDES(mutex_);
  // A number that grows with every change.
  [[nodiscard]] std::uint64_t Version() const BERTH_EXCLUDES(mutex_);
  // Waits until the version is another than that, until a time at the latest.
  void WaitForChange(std::uint64_t version, Instant until) const BERTH_EXCLUDES(mutex_);

 private:
  void Put(const PaddedText& object, bool news) BERTH_EXCLUDES(mutex_);
  void Told() BERTH_EXCLUDES(mutex_);

  const std::string node_;
  const std::function<void()> on_change_;
  const Instant made_ = Instant::clock::now();
  std::set<std::string> listed_;  // since ListBegins; the reflector's thread alone

  mutable Mutex mutex_;
  mutable CondVar changed_;
  Pods pods_ BERTH_GUARDED_BY(mutex_);
  std::uint64_t version_ BERTH_GUARDED_BY(mutex_) = 0;
  bool synced_ BERTH_GUARDED_BY(mutex_) = false;
  Instant failed_until_ BERTH_GUARDED_BY(mutex_){};
};

}  // namespace berth::node
