// SPDX-License-Identifier: Apache-2.0
//
// What the kubelet gave, where it is not what was planned: the annotation berth.dev/given, for
// kubelets that do not say it in the pod's status (allocatedResourcesStatus, Kubernetes 1.36).
//
//   {"version":1,"containers":{"main":{"nvidia.com/gpu":["GPU-..."]}}}
//
// And devices that were given twice: the pods get an Event, and the device is closed.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <thread>
#include <tuple>
#include <vector>

#include "base/clock.h"
#include "base/mutex.h"
#include "node/facts/node_facts.h"
#include "node/interposer/ports.h"
#include "node/kubelet/registrar.h"
#include "node/pods/own_pods.h"
#include "server/kube/client/api_client.h"
#include "server/telemetry/log.h"

namespace berth::node {

// Devices that the kubelet has given to two pods: kubelets before 1.38 may; nobody else compares.
struct GivenTwice {
  std::string resource, device;
  std::array<OwnPodPtr, 2> pods;
};

// The devices of these resources that the list has of two pods that are not over. One device is
// named with two pods.
std::vector<GivenTwice> FindTwice(const std::vector<ListedPod>& listed, const OwnPods::Pods& own,
                                  const std::set<std::string>& resources);

// What was found in one look after the other. The kubelet may give the device of a pod that has
// ended before the API server says so: what lasts is true.
class TwiceGiven {
 public:
  static constexpr Duration kSureAfter = std::chrono::seconds(4);
  static constexpr std::size_t kMost = 64;  // devices of a node

  explicit TwiceGiven(Duration sure_after) : sure_after_(sure_after) {}

  // What has become sure. `live`: the API server's word is new.
  std::vector<GivenTwice> Look(const std::vector<GivenTwice>& found, bool live, Instant now);

  [[nodiscard]] bool empty() const { return since_.empty(); }
  // What is sure: two pods have it still.
  [[nodiscard]] ClosedDevices Closed() const;

 private:
  using Key = std::tuple<std::string, std::string, std::string, std::string>;  // and two UIDs
  struct Since {
    Instant first{};
    bool sure = false;
  };
  const Duration sure_after_;
  std::map<Key, Since> since_;
};

// Whether a kubelet of that version ("v1.35.2") says by default what it gave.
bool ReportsDevices(std::string_view kubelet_version);
// Whether it keeps a plugin when another one registers for the resource.
bool KeepsBothPlugins(std::string_view kubelet_version);

// The value of the annotation for a pod and what the kubelet lists of it. nullopt: none is to be
// written, because the devices are as planned, the status says them, or the annotation does
// already. `kubelet_reports`: the kubelet's version says so; a container that runs shows whether it
// is true.
std::optional<std::string> GivenText(const OwnPod& pod, const ListedPod& listed,
                                     const std::set<std::string>& resources, const NodeFacts& facts,
                                     bool kubelet_reports);

// Writes the annotation, on a thread of its own.
class GivenWriter {
 public:
  static constexpr Duration kMostPerWrite = std::chrono::seconds(5);
  static constexpr int kMostWritesPerLook = 20;
  static constexpr Duration kStart = std::chrono::seconds(2);
  // What the API server refuses is tried again after 0.5 s, 1 s, 2 s, ..., and then with the next
  // change of a pod.
  static constexpr Duration kFirstRetry = std::chrono::milliseconds(500);
  static constexpr int kMostRetries = 8;

  struct Parts {
    kube::ApiClient& client;
    const OwnPods& pods;
    PodResources& kubelet;
    std::function<std::shared_ptr<const NodeFacts>()> facts;
    std::string node;
    Log& log;
    // Whether the kubelet keeps several plugins of one resource (Kubernetes 1.37), once it is
    // known.
    std::function<void(bool keeps)> on_keeps_both;
    // For so long what a kubelet may say itself is written too: while no agent was there nobody
    // chose as planned, and the kubelet may take half a second to say what it gave.
    Duration start = kStart;
    // The devices to close changed. On the writer's thread.
    std::function<void(const ClosedDevices& closed)> on_twice = {};
    Duration sure_after = TwiceGiven::kSureAfter;
  };
  // References: they live longer.
  explicit GivenWriter(Parts parts);
  ~GivenWriter();

  // Any thread; return at once. Look: pods changed.
  void Look() BERTH_EXCLUDES(mutex_);
  void Admitted() BERTH_EXCLUDES(mutex_);  // a container was given devices
  void Carries(std::set<std::string> resources) BERTH_EXCLUDES(mutex_);

 private:
  void Run();
  bool WaitUntilDue() BERTH_EXCLUDES(mutex_);
  bool LookNow() BERTH_EXCLUDES(mutex_);
  void Compare(const OwnPods::Pods& own, const std::vector<ListedPod>& listed,
               const std::set<std::string>& resources);
  void Tell(const OwnPod& pod, const OwnPod& other, const GivenTwice& twice);
  [[nodiscard]] bool AtStart() const;
  void LearnVersion();
  bool Write(const OwnPod& pod, const std::string& text);

  const Parts parts_;
  const Instant started_ = Instant::clock::now();
  // Its thread alone.
  bool version_known_ = false;
  bool kubelet_reports_ = false;
  bool gives_twice_ = true;  // such a kubelet may
  TwiceGiven twice_;
  std::map<std::string, std::string> written_;  // UID -> value, of pods that are there
  std::string problem_;
  int retries_ = 0;  // in a row
  Instant retry_at_ = Instant::max();

  Mutex mutex_;
  CondVar changed_;
  bool due_ BERTH_GUARDED_BY(mutex_) = false;
  bool admitted_ BERTH_GUARDED_BY(mutex_);  // since the last list
  bool ending_ BERTH_GUARDED_BY(mutex_) = false;
  std::set<std::string> resources_ BERTH_GUARDED_BY(mutex_);
  std::thread thread_;
};

}  // namespace berth::node
