// SPDX-License-Identifier: Apache-2.0
#include "test/soak/claim_soak.h"

#include <algorithm>
#include <deque>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <span>
#include <vector>

#include "base/random.h"
#include "bench/replay/time/sim_clock.h"
#include "cluster/state/audit.h"
#include "server/dialects/dra/device_allocator.h"
#include "server/dialects/dra/device_class_json.h"
#include "server/dialects/dra/slice_json.h"
#include "server/extender/extender.h"
#include "test/support/bind_now.h"
#include "test/support/builders.h"
#include "test/support/wire_fixture.h"

namespace berth::test {
namespace {

using dialects::DeviceAllocator;
using ClaimJson = nlohmann::json;
using kube::ApiRequest;
using kube::ApiResponse;
using std::chrono::milliseconds;
using Devices = std::set<std::string>;  // "d0/gpu-3"

constexpr int kDraNodes = 3, kPluginNodes = 2, kGpus = 4;
constexpr std::size_t kMostPods = 20;
constexpr const char* kResource = "nvidia.com/gpu";
// kube-scheduler's watch is no later than that.
constexpr Duration kSchedulersLag = milliseconds(15);

enum class Writer { kNobody, kBerth, kScheduler, kForeign };

const char* NameOf(Writer writer) {
  constexpr const char* kNames[] = {"nobody", "Berth", "kube-scheduler", "somebody else"};
  return kNames[static_cast<std::size_t>(writer)];
}

struct Allocated {
  Writer writer = Writer::kNobody;
  Devices devices;
};

struct SoakedPod {
  std::string name = {};
  std::vector<std::string> claims = {};  // of templates: they go with it
  int gpus = 0;                          // by the name of the resource
  bool readable = true;                  // to Berth; else its claims are left to kube-scheduler
  std::string node = {};                 // bound
};

Devices DevicesIn(const ClaimJson& claim) {
  Devices devices;
  const ClaimJson status = claim.value("status", ClaimJson::object());
  if (!status.contains("allocation") || !status["allocation"].is_object()) return devices;
  for (const ClaimJson& result : status["allocation"]["devices"]["results"]) {
    devices.insert(std::string(result["pool"]) + "/" + std::string(result["device"]));
  }
  return devices;
}

}  // namespace

class ClaimSoak::World final : private kube::WriteFence, private kube::ApiClient {
 public:
  explicit World(std::uint64_t seed) : random_(seed), chooses_(seed % 2 == 0) {
    for (int i = 0; i < kDraNodes; ++i) {
      Apply(NodeUpserted{ANode("d" + std::to_string(i)).Spec()});
    }
    berth_.emplace(*this);
    for (int i = 0; i < kPluginNodes; ++i) {
      Apply(NodeUpserted{ANode("p" + std::to_string(i)).Gpus(kGpus).Spec()});
    }
  }

  bool Step() {
    ++steps_;
    const std::uint64_t kind = random_.Below(100);
    if (kind < 18) {
      Create();
    } else if (kind < 50) {
      Schedule();
    } else if (kind < 62) {
      WriteAsDecided();
    } else if (kind < 74) {
      Leave();
    } else if (kind < 78) {
      AllocateAsForeigner();
    } else if (kind < 90) {
      ShowBerth(1 + random_.Below(4));
    } else if (kind < 94) {
      Control();
    } else if (kind < 98) {
      clock_.Advance(milliseconds(random_.Below(700)));
    } else {
      Calm();
    }
    return failure.empty();
  }

  std::string failure;
  std::map<std::string, std::uint64_t> counts;

 private:
  // ---- the API server

  Result<ApiResponse> Send(const ApiRequest& request) override {
    if (is_dead_) return Fail(Errc::kUnavailable, "Berth was killed");
    const bool is_status = request.path.ends_with("/status");
    std::string name = request.path.substr(0, request.path.size() - (is_status ? 7 : 0));
    name = name.substr(name.rfind('/') + 1);
    if (request.method == "PATCH") OnTheWire();
    if (request.method == "PATCH" && Chance(3)) {  // before the write gets there, or after
      is_dead_ = true;
      if (Chance(50)) return Fail(Errc::kUnavailable, "Berth was killed");
    }
    const auto found = claims_.find(name);
    if (found == claims_.end()) return ApiResponse{404, "{}", {}};
    if (request.method != "PATCH") return ApiResponse{200, found->second.dump(), {}};
    if (Chance(3)) return ++counts["writes refused"], ApiResponse{500, "{}", {}};
    const ClaimJson patch = ClaimJson::parse(request.body);
    ClaimJson& claim = found->second;
    if (patch["metadata"]["resourceVersion"] != claim["metadata"]["resourceVersion"]) {
      return ++counts["races lost"], ApiResponse{409, "{}", {}};
    }
    claim.merge_patch(patch);
    Wrote(name, Writer::kBerth);
    if (Chance(3)) return ++counts["answers lost"], Fail(Errc::kUnavailable, "no answer");
    return ApiResponse{200, claim.dump(), {}};
  }
  Result<ApiResponse> Stream(const std::string&, Duration, const std::stop_token&,
                             const kube::StreamSink&) override {
    return Fail(Errc::kUnavailable, "no streams here");
  }
  [[nodiscard]] Instant WritableUntil() const override { return Instant::max(); }

  // Others act while a write of Berth is under way. kube-scheduler schedules nothing else, but it
  // writes what it decided before.
  void OnTheWire() {
    const std::uint64_t kind = random_.Below(8);
    if (kind == 0) AllocateAsForeigner();
    if (kind == 1) Leave();
    if (kind == 2) Control();
    if (kind == 3) WriteAsDecided();
    if (kind > 4) ShowBerth(2);
  }

  void Wrote(const std::string& name, Writer writer) {
    ClaimJson& claim = claims_.at(name);
    claim["metadata"]["resourceVersion"] = std::to_string(++version_);
    const Devices devices = DevicesIn(claim);
    const Devices before = std::exchange(truth_[name].devices, devices);
    if (devices.empty()) truth_[name].writer = Writer::kNobody;
    if (!devices.empty() && before.empty()) {
      truth_[name].writer = writer;
      CheckAlone(name);
    }
    Publish(name);
  }

  void CheckAlone(const std::string& name) {
    const Allocated& own = truth_.at(name);
    for (const auto& [other, allocated] : truth_) {
      if (other == name) continue;
      for (const std::string& device : allocated.devices) {
        if (!own.devices.contains(device)) continue;
        const bool foreign = own.writer == Writer::kForeign || allocated.writer == Writer::kForeign;
        const bool by_berth = own.writer == Writer::kBerth || allocated.writer == Writer::kBerth;
        const bool was_shown = own.writer == Writer::kBerth && known_.contains(other) &&
                               known_.at(other).contains(device);
        if (by_berth && (!foreign || was_shown)) {
          FailWith(device + " was given to " + name + " by " + NameOf(own.writer) + ", and to " +
                   other + " by " + NameOf(allocated.writer));
        } else {
          ++counts["collisions of a foreign allocator"];
        }
      }
    }
  }

  void FailWith(const std::string& what) {
    if (failure.empty()) failure = "step " + std::to_string(steps_) + ": " + what;
  }

  // The claim as it is now goes to both watches.
  void Publish(const std::string& name) {
    std::optional<ClaimJson> now;
    if (claims_.contains(name)) now = claims_.at(name);
    to_berth_.push_back({name, now, clock_.Now()});
    to_scheduler_.push_back({name, now, clock_.Now()});
  }

  void ShowBerth(std::size_t events) {
    for (; events > 0 && !to_berth_.empty(); --events) {
      const Event event = std::move(to_berth_.front());
      to_berth_.pop_front();
      if (event.claim) {
        berths_[event.name] = DevicesIn(*event.claim);
        berth_->all.claims().Put(
            dialects::DecodeResourceClaim(Padded(event.claim->dump())).value());
      } else {
        berths_.erase(event.name);
        berth_->all.claims().Remove("ns", event.name);
      }
    }
  }
  // What is old enough, and maybe more.
  void ShowScheduler() {
    const std::uint64_t more = random_.Below(4);
    std::uint64_t shown = 0;
    while (!to_scheduler_.empty() &&
           (clock_.Now() - to_scheduler_.front().at >= kSchedulersLag || shown < more)) {
      const Event event = std::move(to_scheduler_.front());
      to_scheduler_.pop_front();
      ++shown;
      if (event.claim) {
        schedulers_[event.name] = DevicesIn(*event.claim);
      } else {
        schedulers_.erase(event.name);
      }
    }
  }

  // ---- what there is

  static ClaimJson Text(const std::string& text) { return {{"string", text}}; }
  void PutClass(dialects::DeviceClaims& all) const {
    const ClaimJson selector = {{"cel",
                                 {{"expression",
                                   "device.driver == 'gpu.nvidia.com' && "
                                   "device.attributes['gpu.nvidia.com'].type == 'gpu'"}}}};
    ClaimJson json = {{"metadata", {{"name", "gpu.nvidia.com"}}},
                      {"spec", {{"selectors", ClaimJson::array({selector})}}}};
    if (!chooses_) json["spec"]["extendedResourceName"] = kResource;
    std::string problem;
    all.classes().Put(dialects::DecodeDeviceClass(Padded(json.dump()), problem).value());
  }
  static void AddDraNode(dialects::DeviceClaims& all, const std::string& node) {
    ClaimJson devices = ClaimJson::array();
    for (int i = 0; i < kGpus; ++i) {
      const std::string name = "gpu-" + std::to_string(i);
      devices.push_back({{"name", name},
                         {"attributes",
                          {{"type", Text("gpu")},
                           {"uuid", Text("GPU-" + node + "-" + name)},
                           {"productName", Text("NVIDIA H100 80GB HBM3")},
                           {"numaNode", {{"int", i / 2}}}}}});
    }
    const ClaimJson slice = {
        {"metadata", {{"name", node + "-gpus"}}},
        {"spec",
         {{"driver", "gpu.nvidia.com"},
          {"nodeName", node},
          {"pool", {{"name", node}, {"generation", 1}, {"resourceSliceCount", 1}}},
          {"devices", devices}}}};
    all.slices().Put(dialects::DecodeResourceSlice(Padded(slice.dump())).value());
  }
  void Apply(const ClusterEvent& event) { (void)state_.Apply(std::span(&event, 1)); }
  bool Chance(std::uint64_t percent) { return random_.Below(100) < percent; }

  void AddClaim(const std::string& name, const std::string& pod, int count, bool readable) {
    ClaimJson request = {{"name", "gpus"},
                         {"exactly",
                          {{"deviceClassName", "gpu.nvidia.com"},
                           {"allocationMode", "ExactCount"},
                           {"count", count}}}};
    if (!readable) {
      request["exactly"]["selectors"] = ClaimJson::array({{{"cel", {{"expression", "nobody()"}}}}});
    }
    claims_[name] = {{"metadata",
                      {{"name", name},
                       {"namespace", "ns"},
                       {"uid", "u-" + name},
                       {"resourceVersion", std::to_string(++version_)},
                       {"annotations", {{"pod", pod}, {"count", std::to_string(count)}}}}},
                     {"spec", {{"devices", {{"requests", ClaimJson::array({request})}}}}}};
    Publish(name);
  }
  [[nodiscard]] std::string PodOf(const std::string& claim) const {
    return claims_.at(claim)["metadata"]["annotations"].value("pod", "");
  }
  [[nodiscard]] int CountOf(const std::string& claim) const {
    return std::stoi(std::string(claims_.at(claim)["metadata"]["annotations"]["count"]));
  }

  void Create() {
    if (pods_.size() >= kMostPods) return;
    SoakedPod pod{.name = "pod-" + std::to_string(++made_)};
    if (chooses_) {
      pod.readable = !Chance(20);
      const std::uint64_t claims = 1 + random_.Below(2);
      for (std::uint64_t i = 0; i < claims; ++i) {
        pod.claims.push_back(pod.name + "-" + std::to_string(i));
        AddClaim(pod.claims.back(), pod.name, 1 + static_cast<int>(random_.Below(2)), pod.readable);
      }
    } else {
      pod.gpus = 1 + static_cast<int>(random_.Below(3));
    }
    pods_.emplace(pod.name, std::move(pod));
  }

  SoakedPod* SomePod(const std::function<bool(const SoakedPod&)>& wanted) {
    std::vector<SoakedPod*> found;
    for (auto& [name, pod] : pods_) {
      if (wanted(pod)) found.push_back(&pod);
    }
    return found.empty() ? nullptr : found[random_.Below(found.size())];
  }

  void Leave() {
    const SoakedPod* const pod = SomePod([](const SoakedPod&) { return true; });
    // Not while somebody is at work for it: kube-scheduler would see to that.
    if (pod == nullptr || pod->name == busy_) return;
    ++counts["pods left"];
    Apply(PodGone{"uid-" + pod->name});
    std::erase_if(decided_, [pod](const Decided& decided) { return decided.pod == pod->name; });
    pods_.erase(pod->name);
  }

  // ---- kube-scheduler

  // The first devices that are free in its eyes, for so many of a node; empty: there are too few.
  Devices FirstFit(const std::string& node, int count, const Devices& beside) {
    Devices taken = beside, found;
    for (const auto& [name, devices] : schedulers_) taken.insert(devices.begin(), devices.end());
    for (const Decided& decided : decided_) {
      for (const auto& [claim, devices] : decided.devices) {
        taken.insert(devices.begin(), devices.end());
      }
    }
    for (int i = 0; i < kGpus && std::ssize(found) < count; ++i) {
      const std::string device = node + "/gpu-" + std::to_string(i);
      if (!taken.contains(device)) found.insert(device);
    }
    return std::ssize(found) == count ? found : Devices();
  }

  void Schedule() {
    ShowScheduler();
    SoakedPod* const pod = SomePod([this](const SoakedPod& each) {
      return each.node.empty() && std::ranges::none_of(decided_, [&each](const Decided& decided) {
               return decided.pod == each.name;
             });
    });
    if (pod == nullptr) return;
    busy_ = pod->name;
    if (chooses_) {
      ScheduleClaims(*pod);
    } else {
      ScheduleResource(*pod);
    }
    busy_.clear();
  }

  // The nodes on which all claims fit in its eyes, and with which devices.
  std::map<std::string, std::map<std::string, Devices>> NodesFor(const SoakedPod& pod) {
    std::map<std::string, std::map<std::string, Devices>> nodes;
    for (int i = 0; i < kDraNodes; ++i) {
      const std::string node = "d" + std::to_string(i);
      std::map<std::string, Devices> chosen;
      Devices beside;
      for (const std::string& claim : pod.claims) {
        Devices devices = schedulers_[claim];
        if (devices.empty()) devices = FirstFit(node, CountOf(claim), beside);
        if (devices.empty() || !devices.begin()->starts_with(node + "/")) break;
        beside.insert(devices.begin(), devices.end());
        chosen[claim] = std::move(devices);
      }
      if (chosen.size() == pod.claims.size()) nodes[node] = std::move(chosen);
    }
    return nodes;
  }

  void ScheduleClaims(SoakedPod& pod) {
    const auto nodes = NodesFor(pod);
    if (nodes.empty()) return;
    std::vector<std::string> names;
    for (const auto& [node, chosen] : nodes) names.push_back(node);
    const PodId id{"uid-" + pod.name, "ns", pod.name};
    known_ = berths_;
    bool allocated = false;
    const std::vector<ClaimOrder> orders = GangOf(pod, nodes.begin()->first);
    if (orders.size() > 1) {
      allocated = berth_->allocator.AllocateTogether(orders, clock_.Now());
      if (allocated) counts["gangs that Berth allocated for"] += 1;
      if (!allocated && !is_dead_) return;  // "none, this time"
    } else {
      berth_->allocator.Ask(id, pod.claims);
      allocated = berth_->allocator.Allocate(id, pod.claims, names, {});
      if (allocated && !is_dead_) ++counts["pods that Berth allocated for"];
    }
    if (!is_dead_ && allocated) return;
    // Its filter is ignorable: without an answer it goes on, with what it chose before.
    decided_.push_back({pod.name, nodes.begin()->first, nodes.begin()->second});
    if (is_dead_) Restart();
  }

  // Pods that start together with it, as Berth plans them: each on a node where kube-scheduler sees
  // devices. In a third of the cases there are some.
  std::vector<ClaimOrder> GangOf(const SoakedPod& pod, const std::string& node) {
    std::vector<ClaimOrder> orders;
    const auto add = [&](const SoakedPod& each, const std::string& on) {
      orders.push_back({{"uid-" + each.name, "ns", each.name}, each.claims, on});
    };
    add(pod, node);
    if (!pod.readable || random_.Below(3) > 0) return orders;
    for (const auto& entry : pods_) {
      const SoakedPod& other = entry.second;
      const bool is_free = other.node.empty() && other.readable && &other != &pod &&
                           std::ranges::all_of(other.claims, [this](const std::string& claim) {
                             return truth_[claim].devices.empty();
                           });
      const bool is_decided = std::ranges::any_of(
          decided_, [&other](const Decided& decided) { return decided.pod == other.name; });
      const auto nodes = is_free && !is_decided ? NodesFor(other) : decltype(NodesFor(other))();
      if (!nodes.empty() && orders.size() < 4) add(other, nodes.rbegin()->first);
    }
    return orders;
  }

  // Berth was killed, and another one lists what there is. Until it answers kube-scheduler has seen
  // what the one before wrote, and has written what it had decided: a start takes longer.
  void Restart() {
    ++counts["kills"];
    while (!decided_.empty()) WriteAsDecided();
    clock_.Advance(kSchedulersLag);
    ShowScheduler();
    is_dead_ = false;
    to_berth_.clear();
    berths_.clear();
    berth_.emplace(*this);
    for (const auto& [name, claim] : claims_) to_berth_.push_back({name, claim, clock_.Now()});
    ShowBerth(to_berth_.size());
  }

  // Of those that it decided: claims are allocated, then the pod is bound.
  void WriteAsDecided() {
    if (decided_.empty()) return;
    const Decided decided = decided_.front();
    decided_.pop_front();
    for (const auto& [name, devices] : decided.devices) {
      ClaimJson& claim = claims_.at(name);
      const Devices has = DevicesIn(claim);
      if (!has.empty() && has != devices) return;  // it was allocated elsewhere meanwhile
      if (has.empty()) Allocate(claim, devices, decided.pod);
      if (has.empty()) Wrote(name, Writer::kScheduler);
      if (has.empty()) schedulers_[name] = devices;
    }
    ++counts["pods bound"];
    pods_.at(decided.pod).node = decided.node;
  }

  static void Allocate(ClaimJson& claim, const Devices& devices, const std::string& pod) {
    ClaimJson results = ClaimJson::array();
    for (const std::string& device : devices) {
      const std::size_t slash = device.find('/');
      results.push_back({{"request", "gpus"},
                         {"driver", "gpu.nvidia.com"},
                         {"pool", device.substr(0, slash)},
                         {"device", device.substr(slash + 1)}});
    }
    claim["metadata"]["finalizers"] =
        ClaimJson::array({"resource.kubernetes.io/delete-protection"});
    claim["status"]["allocation"]["devices"]["results"] = std::move(results);
    claim["status"]["reservedFor"] =
        ClaimJson::array({{{"resource", "pods"}, {"name", pod}, {"uid", "uid-" + pod}}});
  }

  // By the name of the resource: the claim is made and allocated, then Berth binds.
  void ScheduleResource(SoakedPod& pod) {
    PodRequest request = APod(pod.name).Uid("uid-" + pod.name).Whole(pod.gpus).Request();
    request.id.namespace_name = "ns";
    request.shape.gpu_resource = kResource;
    request.device_class = "gpu.nvidia.com";
    std::vector<NodeIndex> candidates;
    std::map<NodeIndex, Devices> chosen;
    const Extender::Moment now = extender_.Now();
    for (NodeIndex i = 0; i < now.snapshot->size(); ++i) {
      const std::string node(now.snapshot->names().name(i));
      if (node.front() == 'd') chosen[i] = FirstFit(node, pod.gpus, {});
      if (node.front() == 'p' && plugin_[node] + pod.gpus > kGpus) continue;
      if (node.front() == 'd' && chosen[i].empty()) continue;
      candidates.push_back(i);
    }
    if (candidates.empty()) return;
    const std::vector<Reason> reasons = extender_.Filter(now, request, candidates).reasons;
    const auto fits = std::ranges::find(reasons, Reason::kFits);
    if (fits == reasons.end()) return;
    const NodeIndex index = candidates[static_cast<std::size_t>(fits - reasons.begin())];
    const std::string node(now.snapshot->names().name(index));
    if (node.front() == 'd') {
      const std::string claim = pod.name + "-extended";
      AddClaim(claim, pod.name, pod.gpus, true);
      ClaimJson& json = claims_.at(claim);
      json["metadata"]["annotations"]["resource.kubernetes.io/extended-resource-claim"] = "true";
      json["metadata"]["ownerReferences"] = ClaimJson::array({{{"apiVersion", "v1"},
                                                               {"kind", "Pod"},
                                                               {"name", pod.name},
                                                               {"uid", "uid-" + pod.name},
                                                               {"controller", true}}});
      Allocate(json, chosen[index], pod.name);
      Wrote(claim, Writer::kScheduler);
      schedulers_[claim] = chosen[index];
      pod.claims.push_back(claim);
    }
    if (!BindNow(extender_, {"ns", pod.name, "uid-" + pod.name, node})) {
      ++counts["binds refused"];
      return;
    }
    ++counts["pods bound"];
    pod.node = node;
  }

  // ---- others

  // A controller of somebody else's: it makes a claim and allocates it, and takes what is free.
  void AllocateAsForeigner() {
    Devices taken;
    for (const auto& [name, allocated] : truth_) {
      taken.insert(allocated.devices.begin(), allocated.devices.end());
    }
    const std::string device = "d" + std::to_string(random_.Below(kDraNodes)) + "/gpu-" +
                               std::to_string(random_.Below(kGpus));
    if (taken.contains(device) || foreign_ > 2) return;
    const std::string name = "foreign-" + std::to_string(++made_);
    const std::string pod = "foreign-pod-" + std::to_string(made_);
    AddClaim(name, pod, 1, true);
    Allocate(claims_.at(name), {device}, pod);
    Wrote(name, Writer::kForeign);
    pods_.emplace(pod, SoakedPod{.name = pod, .claims = {name}, .node = device.substr(0, 2)});
    ++foreign_;
  }

  // Claims of pods that are gone are deallocated, if the finalizer says that somebody is to do
  // that, and deleted.
  void Control() {
    std::vector<std::string> gone;
    for (auto& [name, claim] : claims_) {
      if (pods_.contains(PodOf(name)) || name == busy_) continue;
      ClaimJson& status = claim["status"];
      const bool guarded = claim["metadata"].contains("finalizers");
      if (!DevicesIn(claim).empty() && (!guarded || status["reservedFor"].empty())) {
        FailWith("claim " + name + " is allocated, and nobody would deallocate it: " +
                 claim["metadata"].dump() + " " + status.dump());
      }
      gone.push_back(name);
    }
    for (const std::string& name : gone) {
      if (name.starts_with("foreign-")) --foreign_;
      claims_.erase(name);
      truth_.erase(name);
      Publish(name);
    }
  }

  // Everything is shown and cleaned up; pods that Berth allocated for are bound.
  void Calm() {
    ++counts["calms"];
    while (!decided_.empty()) WriteAsDecided();
    Control();
    ShowBerth(to_berth_.size());
    clock_.Advance(std::chrono::minutes(11));
    ShowScheduler();
    for (const auto& [name, claim] : claims_) {
      if (DevicesIn(claim).empty()) continue;
      if (!pods_.contains(PodOf(name))) FailWith("claim " + name + " is left without its pod");
    }
    Devices held, once;
    for (const auto& [name, allocated] : truth_) {
      held.insert(allocated.devices.begin(), allocated.devices.end());
    }
    std::size_t counted = 0;
    for (NodeIndex i = 0; i < state_.Current()->size(); ++i) {
      counted += static_cast<std::size_t>(std::popcount(state_.Current()->node(i).claimed()));
    }
    if (!chooses_ && counted != held.size()) {
      FailWith("claims have " + std::to_string(held.size()) + " GPUs, the books " +
               std::to_string(counted));
    }
  }

  // What Berth binds to a node of the device plugin has GPUs of its own there.
  Status Bound(const PodRequest& pod, const Placement& placement) {
    if (placement.node.front() == 'p') {
      for (const DeviceGrant& grant : placement.grants) {
        const std::string gpu = placement.node + "/" + std::to_string(grant.gpu);
        for (const auto& [uid, gpus] : granted_) {
          if (gpus.contains(gpu) && pods_.contains(uid.substr(4))) {
            FailWith(gpu + " has " + uid + " and " + pod.id.uid);
          }
        }
        granted_[pod.id.uid].insert(gpu);
      }
    }
    return {};
  }

  struct Event {
    std::string name = {};
    std::optional<ClaimJson> claim;  // nothing: it is gone
    Instant at;
  };
  struct Decided {
    std::string pod, node;
    std::map<std::string, Devices> devices;  // by claim
  };
  class PluginUse {  // GPUs of plugin nodes by the pods that are bound there
   public:
    explicit PluginUse(const World& world) : world_(world) {}
    int operator[](const std::string& node) const {
      int gpus = 0;
      for (const auto& [name, pod] : world_.pods_) gpus += pod.node == node ? pod.gpus : 0;
      return gpus;
    }

   private:
    const World& world_;
  };

  Random random_;
  const bool chooses_;
  SimClock clock_;
  std::uint64_t steps_ = 0, made_ = 0, version_ = 0;
  int foreign_ = 0;
  std::string busy_;  // the pod that is being scheduled
  std::map<std::string, ClaimJson> claims_;
  std::map<std::string, Allocated> truth_;
  std::map<std::string, SoakedPod> pods_;
  std::map<std::string, Devices> berths_, schedulers_;  // as their watches have shown
  std::map<std::string, Devices> known_;                // berths_ when Berth was asked last
  std::map<std::string, Devices> granted_;              // of device plugins, by UID
  std::deque<Event> to_berth_, to_scheduler_;
  std::deque<Decided> decided_;
  PluginUse plugin_{*this};

  ClusterState state_;
  // What ends with the process.
  struct Berth {
    explicit Berth(World& world)
        : all({world.state_, offers, classes, devices, open}, true,
              [](std::string_view, std::string_view, const std::string&) {}),
          allocator({.write = {.client = world,
                               .clock = world.clock_,
                               .fence = world,
                               .sleep =
                                   [&world](Duration time) {
                                     world.clock_.Advance(time);
                                     world.ShowBerth(world.random_.Below(3));
                                   }},
                     .mig = offers,
                     .classes = classes,
                     .state = world.state_,
                     .claims = all,
                     .on_note = [](bool, const std::string&) {}}) {
      world.PutClass(all);
      for (int i = 0; i < kDraNodes; ++i) AddDraNode(all, "d" + std::to_string(i));
    }
    MigOffers offers;
    DeviceClasses classes;
    DeviceOffers devices;
    OpenClaims open;
    dialects::DeviceClaims all;
    DeviceAllocator allocator;
  };
  std::optional<Berth> berth_;
  bool is_dead_ = false;  // nothing that it sends gets there
  ScriptedBinder binder_{
      [this](const PodRequest& pod, const Placement& placement) { return Bound(pod, placement); }};
  SilentSink sink_;
  Extender extender_{
      {.state = state_,
       .binder = binder_,
       .sink = sink_,
       .clock = clock_,
       .behind_scheduler = true},
      {.engine = EngineOf("best-fit"), .reservation_time = std::chrono::seconds(30)}};
};

ClaimSoak::ClaimSoak(std::uint64_t seed) : world_(std::make_unique<World>(seed)) {}
ClaimSoak::~ClaimSoak() = default;
bool ClaimSoak::Step() { return world_->Step(); }
const std::string& ClaimSoak::failure() const { return world_->failure; }
const std::map<std::string, std::uint64_t>& ClaimSoak::counts() const { return world_->counts; }

}  // namespace berth::test
