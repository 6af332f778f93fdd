// SPDX-License-Identifier: Apache-2.0
#include "test/model/sim_api.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <span>
#include <utility>

namespace berth::test {
namespace {

// Berth may look so long at an older picture of where room can be made (gang_limits.h).
constexpr Duration kStale = std::chrono::seconds(1);

std::string NodeName(int index) { return "n" + std::to_string(index); }

}  // namespace

std::string RackOf(const std::string& node) {
  return "r" + std::to_string((node.back() - '0') / 2);
}

SimApi::SimApi(SimWorld& world, SimCalls& calls) : world_(world), calls_(calls) {
  for (int i = 0; i < kModelNodes; ++i) nodes_.insert(NodeName(i));
}

// --- what Berth asks

Status SimApi::Bind(const BindOrder& order, bool leads) {
  if (!leads && world_.planted != Planted::kOpenFence) {
    return Fail(Errc::kUnavailable, "another one leads");
  }
  auto found = pods_.find(order.pod.id.uid);
  if (found == pods_.end() && world_.planted == Planted::kIgnoresUids) {
    found = std::ranges::find_if(pods_, [&order](const auto& pod) {
      return pod.second.pod.Request().id.name == order.pod.id.name;
    });
  }
  if (found == pods_.end()) return Fail(Errc::kNotFound, "the pod is gone");
  SimPod& pod = found->second;
  if (!pod.node.empty()) {
    if (pod.node == order.placement.node) return {};
    return Fail(Errc::kConflict, "bound elsewhere");
  }
  if (world_.planted == Planted::kSaysBoundTooEarly && world_.dice.Chance(2)) return {};
  const int luck = world_.disturbed ? world_.dice.Below(100) : 99;
  if (luck < 2) return Fail(Errc::kConflict, "refused");
  if (luck < 4) return Fail(Errc::kUnavailable, "no answer, and not done");
  if (!leads) world_.Violation("order: a Berth that does not lead has bound " + found->first);
  Take(pod, order.placement);
  if (world_.planted == Planted::kDeniesBindings && luck < 20) {
    return Fail(Errc::kNotFound, "the pod is gone");
  }
  if (luck < 6) return Fail(Errc::kUnavailable, "no answer, and done");
  return {};
}

Result<PodTruth> SimApi::Find(const PodId& id) {
  if (world_.disturbed && world_.dice.Chance(5)) return Fail(Errc::kUnavailable, "no answer");
  const auto found = pods_.find(id.uid);
  if (found == pods_.end()) return Fail(Errc::kNotFound, "the pod is gone");
  const SimPod& pod = found->second;
  PodTruth truth{pod.pod.Request(), std::nullopt};
  if (!pod.node.empty()) truth.placement = pod.pod.On(pod.node, pod.devices);
  return truth;
}

Result<std::vector<GangPast>> SimApi::In(const std::string& /*namespace_name*/) {
  if (world_.disturbed && world_.dice.Chance(5)) return Fail(Errc::kUnavailable, "no answer");
  std::vector<GangPast> pasts;
  if (world_.planted == Planted::kForgetsEndedPods) return pasts;
  for (const auto& [name, gang] : gangs_) {
    const auto ended = static_cast<std::int64_t>(gang.ended.size());
    if (ended > 0) pasts.push_back({GangId::Of("berth:default/" + name), ended, true});
  }
  return pasts;
}

void SimApi::Take(SimPod& pod, const Placement& placement) {
  const std::string& uid = pod.pod.Request().id.uid;
  if (!calls_.Asked(uid, placement.node)) {
    world_.Violation("order: nobody has asked to bind " + uid + " to " + placement.node);
  }
  world_.Log("bound", uid, pod.gang, "to", placement.node);
  CheckOnce(pod, placement);
  changed_ = world_.clock.Now();
  for (const DeviceGrant& grant : placement.grants) {
    const bool misplaced = world_.planted == Planted::kBindsTwice && world_.dice.Chance(2);
    pod.devices.push_back(misplaced ? (grant.gpu + 1) % kModelGpus : grant.gpu);
  }
  pod.node = placement.node;
  ++world_.report.bindings;
  if (!pod.gang.empty()) {
    CheckBegin(pod);
    CheckRack(pod);
    gangs_.at(pod.gang).ran = true;
  }
  Tell(Shown(pod));
}

void SimApi::CheckOnce(const SimPod& pod, const Placement& placement) {
  for (const auto& [uid, other] : pods_) {
    if (other.node != placement.node) continue;
    for (const DeviceGrant& grant : placement.grants) {
      if (std::ranges::find(other.devices, grant.gpu) == other.devices.end()) continue;
      world_.Violation("once: GPU " + std::to_string(grant.gpu) + " of " + placement.node +
                       " is given to " + pod.pod.Request().id.name + " and " +
                       other.pod.Request().id.name);
    }
  }
}

// When the first pod of a gang is bound enough others exist, and kube-scheduler waited for their
// binds when it was decided.
void SimApi::CheckBegin(const SimPod& pod) {
  const SimGang& gang = gangs_.at(pod.gang);
  int bound = 0, there = 0;
  Instant joined{};  // when the last of them was created
  for (const std::string& uid : MembersOf(pod.gang)) {
    ++there;
    if (pods_.at(uid).heard) joined = std::max(joined, pods_.at(uid).created);
    bound += pods_.at(uid).node.empty() ? 0 : 1;
  }
  if (bound == gang.minimum) ++world_.report.whole;
  if (bound != 1 || gang.ran) return;
  // A deletion that Berth had not heard of is not its fault.
  if (gang.dying > 0 || gang.heard >= world_.cause) return;
  const bool is_remnant = world_.clock.Now() - joined >= kRemnantAfter;
  if (gang.ran_before && there < gang.minimum && is_remnant) return;
  if (there < gang.minimum) {
    world_.Violation("whole: " + pod.gang + " began with " + std::to_string(there) + " of " +
                     std::to_string(gang.minimum));
  }
  const std::size_t waited = calls_.WaitedIn(world_.cause, pod.gang).size();
  if (waited < static_cast<std::size_t>(gang.minimum)) {
    world_.Violation("order: " + pod.gang + " began when " + std::to_string(waited) +
                     " clients waited for binds of it, not " + std::to_string(gang.minimum));
  }
}

void SimApi::CheckRack(const SimPod& pod) {
  const SimGang& gang = gangs_.at(pod.gang);
  const auto has_rack = [&gang](const SimPod& of) {
    return gang.one_rack || gang.IsInPart(of.pod.Request().id.name);
  };
  if (!has_rack(pod)) return;
  for (const std::string& uid : MembersOf(pod.gang)) {
    const SimPod& other = pods_.at(uid);
    if (other.node.empty() || RackOf(other.node) == RackOf(pod.node) || !has_rack(other)) continue;
    world_.Violation("domain: " + pod.gang + " is on " + other.node + " and " + pod.node);
  }
}

// --- what Berth hears

bool SimApi::Deliver(ClusterState& state, WaitingPods& waiting) {
  if (watch_.empty()) return false;
  const Told event = std::move(watch_.front());
  watch_.pop_front();
  event(state, waiting);
  return true;
}

void SimApi::ListTo(ClusterState& state, WaitingPods& waiting) {
  watch_.clear();
  for (auto& [name, gang] : gangs_) gang.dying = 0;
  for (const std::string& node : nodes_) ShownNode(node)(state, waiting);
  for (const auto& [uid, pod] : pods_) {
    if (!pod.node.empty() && world_.planted == Planted::kForgetsBoundPods) continue;
    Shown(pod, world_.planted != Planted::kForgetsGangs)(state, waiting);
  }
}

void SimApi::Apply(ClusterState& state, const ClusterEvent& event) {
  if (!state.Apply(std::span(&event, 1))) world_.Violation("an event was refused");
}

SimApi::Told SimApi::Shown(const SimPod& pod, bool with_gang) {
  if (pod.node.empty()) {
    auto request = std::make_shared<PodRequest>(pod.pod.Request());
    return [this, request, unschedulable = pod.unschedulable](ClusterState&, WaitingPods& waiting) {
      waiting.Put({.pod = request, .unschedulable = unschedulable});
      const auto found = pods_.find(request->id.uid);
      if (found != pods_.end()) found->second.heard = true;
    };
  }
  PodBound bound{pod.pod.Request(), pod.pod.On(pod.node, pod.devices)};
  bound.leaving = pod.leaving;
  if (!with_gang) bound.pod.gang = {};
  return [this, bound](ClusterState& state, WaitingPods& waiting) {
    Apply(state, bound);
    waiting.Remove(bound.pod.id.uid);
  };
}

SimApi::Told SimApi::ShownNode(const std::string& node) {
  return [this, node](ClusterState& state, WaitingPods&) {
    Apply(state,
          NodeUpserted{ANode(node).Gpus(kModelGpus).Labelled({{"rack", RackOf(node)}}).Spec()});
  };
}

// --- what happens

std::string SimApi::Create(const std::string& name, const std::string& gang, int gpus,
                           int priority) {
  SimPod pod;
  const std::string uid = "uid-" + std::to_string(++created_);
  pod.pod = APod(name).Uid(uid).Whole(gpus);
  pod.gang = gang;
  pod.gpus = gpus;
  pod.priority = gang.empty() ? priority : gangs_.at(gang).priority;
  pod.pod.Priority(pod.priority);
  pod.created = world_.clock.Now();
  if (!gang.empty()) {
    const SimGang& of = gangs_.at(gang);
    const int less = world_.planted == Planted::kSizeTooSmall ? 1 : 0;
    pod.pod.Gang("berth:default/" + gang).GangSize(std::max(of.total - less, 1));
    pod.pod.GangMinimum(std::max(of.minimum - less, 1));
    if (of.one_rack) pod.pod.Requires(0);
    if (of.parted) pod.pod.Parts(of.IsInPart(name) ? "front" : "back", {{{"front"}, 0}});
    if (of.one_per_node) pod.pod.LeftToScheduler({.host_ports = true});
  }
  world_.Log("created", uid, gang);
  Tell(Shown(pod));
  pods_.emplace(uid, std::move(pod));
  return uid;
}

void SimApi::Delete(const std::string& uid) {
  world_.Log("deleted", uid);
  const std::string gang = pods_.at(uid).gang;
  pods_.erase(uid);
  changed_ = world_.clock.Now();
  if (world_.planted == Planted::kHidesDeletions) return;
  if (!gang.empty()) ++gangs_.at(gang).dying;
  Tell([this, uid, gang](ClusterState& state, WaitingPods& waiting) {
    Apply(state, PodGone{uid});
    waiting.Remove(uid);
    if (gang.empty()) return;
    --gangs_.at(gang).dying;
    gangs_.at(gang).heard = world_.report.steps;
  });
}

void SimApi::Succeed(const std::string& uid) {
  const SimPod& pod = pods_.at(uid);
  gangs_.at(pod.gang).ended.insert(pod.pod.Request().id.name);
  ++world_.report.ended;
  Delete(uid);
}

void SimApi::ShowUnschedulable(const std::string& uid) {
  SimPod& pod = pods_.at(uid);
  if (!std::exchange(pod.unschedulable, true)) Tell(Shown(pod));
}

void SimApi::Evict(const std::string& uid, const std::string& preemptor) {
  const auto found = pods_.find(uid);
  if (found == pods_.end()) return;
  SimPod& pod = found->second;
  const SimPod& by = pods_.at(preemptor);
  world_.Log("evicted", uid, pod.gang, "on", pod.node, "for", preemptor, by.gang);
  ++world_.report.evictions;
  if (pod.priority >= by.priority || pod.node.empty()) {
    world_.Violation("evictions: " + uid + " may not be evicted for " + preemptor);
  }
  CheckIsOfUse(by);
  if (pod.leaving) return;
  pod.leaving = true;
  pod.ends = world_.clock.Now() + std::chrono::milliseconds(world_.dice.Below(5000));
  Tell(Shown(pod));
}

// Nobody is evicted for a gang that would not fit even if all of lower priority were gone. What
// Berth has not heard of for long is not its fault.
void SimApi::CheckIsOfUse(const SimPod& preemptor) {
  if (preemptor.gang.empty() || !watch_.empty()) return;
  if (world_.clock.Now() - changed_ < kStale) return;
  const SimGang& gang = gangs_.at(preemptor.gang);
  const std::vector<std::string> uids = MembersOf(preemptor.gang);
  // What is left of one that ran goes alone after a time.
  if (gang.ran && std::cmp_less(uids.size(), gang.minimum)) return;
  int placed = 0;
  for (const std::string& uid : uids) {
    placed += pods_.at(uid).node.empty() || pods_.at(uid).leaving ? 0 : 1;
  }
  const int room = RoomFor(preemptor.gang, gang, gang.priority, false);
  if (room >= gang.minimum - placed - static_cast<int>(gang.ended.size())) return;
  world_.Violation("evictions: in vain for " + preemptor.gang + ", which has " +
                   std::to_string(placed) + " of " + std::to_string(gang.minimum) +
                   " and room for " + std::to_string(room));
}

std::vector<std::string> SimApi::Ended() const {
  std::vector<std::string> ended;
  for (const auto& [uid, pod] : pods_) {
    if (pod.leaving && pod.ends <= world_.clock.Now()) ended.push_back(uid);
  }
  return ended;
}

std::vector<std::string> SimApi::Toggle(const std::string& node) {
  if (nodes_.insert(node).second) {
    Tell(ShownNode(node));
    return {};
  }
  nodes_.erase(node);
  changed_ = world_.clock.Now();
  Tell([this, node](ClusterState& state, WaitingPods&) { Apply(state, NodeRemoved{node}); });
  std::vector<std::string> lost;
  for (const auto& [uid, pod] : pods_) {
    if (pod.node == node) lost.push_back(uid);
  }
  return lost;
}

std::vector<std::string> SimApi::Stranded() const {
  std::vector<std::string> stranded;
  for (const auto& [uid, pod] : pods_) {
    if (!pod.node.empty() && !nodes_.contains(pod.node)) stranded.push_back(uid);
  }
  return stranded;
}

void SimApi::Restore() {
  for (int i = 0; i < kModelNodes; ++i) {
    if (!nodes_.contains(NodeName(i))) Toggle(NodeName(i));
  }
}

// --- what there is

std::vector<std::string> SimApi::MembersOf(const std::string& gang) const {
  std::vector<std::string> uids;
  for (const auto& [uid, pod] : pods_) {
    if (pod.gang == gang) uids.push_back(uid);
  }
  return uids;
}

int SimApi::FreeGpus(const std::string& node, int priority) const {
  int free = kModelGpus;
  for (const auto& [uid, pod] : pods_) {
    if (pod.node == node && pod.priority >= priority) free -= pod.gpus;
  }
  return free;
}

bool SimApi::IsPortTaken(const std::string& node) const {
  return std::ranges::any_of(pods_, [&](const auto& pod) {
    return pod.second.node == node && !pod.second.gang.empty() &&
           gangs_.at(pod.second.gang).one_per_node;
  });
}

int SimApi::RoomFor(const std::string& name, const SimGang& gang, int priority, bool all) const {
  const bool one_rack = gang.one_rack || (all && gang.parted);  // no less than that has room
  std::map<std::string, int> by_rack;
  for (const std::string& node : nodes_) {
    int room = FreeGpus(node, priority) / gang.gpus;
    if (all && gang.one_per_node) room = IsPortTaken(node) ? 0 : std::min(room, 1);
    if (all && gang.dropped == node) room = 0;
    by_rack[one_rack ? RackOf(node) : ""] += room;
  }
  for (const std::string& uid : MembersOf(name)) {
    const std::string& node = pods_.at(uid).node;
    if (one_rack && !node.empty()) return gang.parted ? 0 : by_rack[RackOf(node)];
  }
  int most = 0;
  for (const auto& [rack, room] : by_rack) most = std::max(most, room);
  return most;
}

void SimApi::CheckGangs(bool extras) {
  for (const auto& [name, gang] : gangs_) CheckGang(name, gang, extras);
}

void SimApi::CheckGang(const std::string& name, const SimGang& gang, bool extras) {
  const std::vector<std::string> uids = MembersOf(name);
  int bound = 0;
  for (const std::string& uid : uids) bound += pods_.at(uid).node.empty() ? 0 : 1;
  const int there = static_cast<int>(uids.size()), room = RoomFor(name, gang, kLowest);
  const std::string text = name + " of " + std::to_string(gang.minimum) + " to " +
                           std::to_string(gang.total) + " has " + std::to_string(bound) + " of " +
                           std::to_string(there) + " bound and room for " + std::to_string(room);
  const int ended = static_cast<int>(gang.ended.size());
  const int needed = std::min(std::max(gang.minimum - ended, 1), there);
  if (ended > 0 && bound == 0 && there > 0 && room >= needed) {
    world_.Violation("live: " + text + ", " + std::to_string(ended) + " have ended");
  }
  if (bound > 0 && bound < needed && room >= needed - bound) world_.Violation("live: " + text);
  if (bound == 0 && ended == 0 && there >= gang.minimum && room >= gang.minimum) {
    world_.Violation("live: " + text);
  }
  if (extras && bound > 0 && bound >= gang.minimum && bound < there && room > 0) {
    world_.Violation("live: " + text);
  }
}

}  // namespace berth::test
