// SPDX-License-Identifier: Apache-2.0
#include "test/model/sim_scheduler.h"

#include <algorithm>
#include <chrono>
#include <memory>

#include "scoring/reason.h"

namespace berth::test {

using std::chrono::milliseconds;

void SimScheduler::Deleted(const std::string& uid) {
  pending_.erase(uid);
  asleep_.erase(uid);
  texts_.erase(uid);
  looks_.erase(uid);
  nominated_.erase(uid);
  WakeAll();
}

void SimScheduler::Woken(const std::string& uid) {
  if (world_.planted != Planted::kNeverWakes) asleep_.erase(uid);
}

void SimScheduler::WakeAll() {
  if (world_.planted != Planted::kNeverWakes) asleep_.clear();
}

void SimScheduler::Retry(const std::string& uid) {
  assumed_.erase(uid);
  const auto pod = api_.pods().find(uid);
  if (pod == api_.pods().end() || !pod->second.node.empty()) return;
  pending_[uid] = world_.clock.Now() + milliseconds(1000 + world_.dice.Below(1000));
  WakeAll();  // a pod that was assumed is gone
}

void SimScheduler::Restart() {
  world_.Log("kube-scheduler starts anew");
  calls_.EndAll();
  assumed_.clear();
  asleep_.clear();
  pending_.clear();
  for (const auto& [uid, pod] : api_.pods()) {
    if (pod.node.empty()) Created(uid);
  }
}

int SimScheduler::MostLooks() const {
  int most = 0;
  for (const auto& [uid, looks] : looks_) most = std::max(most, looks);
  return most;
}

std::string SimScheduler::NextPod() {
  std::vector<std::string> ready;
  for (const auto& [uid, not_before] : pending_) {
    if (not_before <= world_.clock.Now() && !asleep_.contains(uid)) ready.push_back(uid);
  }
  if (ready.empty()) return "";
  return ready[static_cast<std::size_t>(world_.dice.Below(static_cast<int>(ready.size())))];
}

int SimScheduler::FreeGpus(const std::string& node, const std::string& uid_of_asker) const {
  int free = api_.FreeGpus(node);
  const int priority = api_.pods().at(uid_of_asker).priority;
  for (const auto& [uid, there] : nominated_) {
    if (there != node || uid == uid_of_asker || assumed_.contains(uid)) continue;
    const auto pod = api_.pods().find(uid);
    if (pod == api_.pods().end() || !pod->second.node.empty()) continue;
    if (pod->second.priority >= priority) free -= pod->second.gpus;
  }
  for (const auto& [uid, assumed] : assumed_) {
    const auto pod = api_.pods().find(uid);
    if (assumed != node || pod == api_.pods().end() || !pod->second.node.empty()) continue;
    free -= pod->second.gpus;
  }
  return free;
}

bool SimScheduler::IsLeft(const SimPod& pod, const std::string& node) {
  if (pod.gang.empty() || api_.gangs().at(pod.gang).dropped != node) return true;
  ++world_.report.dropped;
  return false;
}

bool SimScheduler::HasPort(const std::string& uid) const {
  const auto pod = api_.pods().find(uid);
  return pod != api_.pods().end() && !pod->second.gang.empty() &&
         api_.gangs().at(pod->second.gang).one_per_node;
}

std::vector<NodeIndex> SimScheduler::Offered(const Snapshot& snapshot, const SimPod& pod) {
  std::vector<NodeIndex> offered;
  const bool has_port = HasPort(pod.pod.Request().id.uid);
  for (const std::string& node : api_.nodes()) {
    const auto is_assumed = [&](const auto& other) {
      return other.second == node && HasPort(other.first);
    };
    if (has_port && (api_.IsPortTaken(node) || std::ranges::any_of(assumed_, is_assumed))) continue;
    const NodeIndex index = snapshot.names().Find(node);
    if (index == kNoNode) continue;
    if (FreeGpus(node, pod.pod.Request().id.uid) >= pod.gpus) offered.push_back(index);
  }
  if (world_.planted == Planted::kOffersOneNode && !offered.empty()) {
    offered = {
        offered[static_cast<std::size_t>(world_.dice.Below(static_cast<int>(offered.size())))]};
  }
  return offered;
}

void SimScheduler::Schedule(Extender& berth, int number_of_berth) {
  const std::string uid = NextPod();
  if (uid.empty()) return;
  ++looks_[uid];
  const SimPod& pod = api_.pods().at(uid);
  const Extender::Moment now = berth.Now();
  const std::shared_ptr<const Snapshot>& snapshot = now.snapshot;
  const std::vector<NodeIndex> offered = Offered(*snapshot, pod);
  if (offered.empty()) {  // its own filters leave no node, so that nobody is asked
    api_.ShowUnschedulable(uid);
    Preempt(berth, uid, {});
    return Refused(uid, "none of the nodes has as many GPUs");
  }
  const FilterAnswer answer = berth.Filter(now, pod.pod.Request(), offered);
  std::string node;
  bool is_dropped = false;
  for (std::size_t i = 0; i < offered.size(); ++i) {
    if (answer.reasons[i] != Reason::kFits) continue;
    const std::string fits(snapshot->names().name(offered[i]));
    if (!IsLeft(pod, fits)) {
      is_dropped = true;
    } else if (node.empty() || world_.dice.Chance(50)) {
      node = fits;
    }
  }
  if (node.empty() && is_dropped) {  // something happens all the time: it is tried again
    pending_[uid] = world_.clock.Now() + milliseconds(4000 + world_.dice.Below(1000));
    return;
  }
  if (!node.empty() && world_.disturbed && world_.dice.Chance(2)) {
    ++world_.report.unbound;
    return Retry(uid);
  }
  if (node.empty()) {
    std::set<std::string> never;
    for (std::size_t i = 0; i < offered.size(); ++i) {
      if (VerdictOf(answer.reasons[i]) != Verdict::kUnresolvable) continue;
      never.emplace(snapshot->names().name(offered[i]));
    }
    Preempt(berth, uid, never);
    std::string text = answer.nowhere;
    for (const Reason reason : answer.reasons) text += "; " + std::string(TextOf(reason));
    return Refused(uid, std::move(text));
  }
  world_.Log("bind of", uid, "to", node, "asked for");
  pending_.erase(uid);
  assumed_[uid] = node;
  nominated_.erase(uid);
  const int number = calls_.Add({uid, pod.gang, node, number_of_berth});
  const PodId& id = pod.pod.Request().id;
  const bool taken = berth.Bind(
      {id.namespace_name, id.name, id.uid, node, world_.clock.Now()},
      [this, number](const Status& bound) { Answered(number, bound); },
      [this, number] { return calls_.at(number).waits; });
  if (!taken) Answered(number, Fail(Errc::kUnavailable, "too many"));
}

void SimScheduler::Refused(const std::string& uid, std::string text) {
  if (world_.planted == Planted::kCountsInTexts) text += " " + std::to_string(++refusals_);
  pending_[uid] = world_.clock.Now() + milliseconds(1000 + world_.dice.Below(1000));
  world_.Log("refused", uid, text);
  std::string& last = texts_[uid];
  if (text == last) asleep_.insert(uid);
  last = text;
}

std::vector<std::string> SimScheduler::VictimsOn(const std::string& node,
                                                 const std::string& uid) const {
  const SimPod& pod = api_.pods().at(uid);
  int free = FreeGpus(node, uid);
  if (free >= pod.gpus) return {};
  std::vector<std::pair<int, std::string>> lower;
  for (const auto& [other, there] : api_.pods()) {
    if (there.node != node || there.priority >= pod.priority) continue;
    lower.emplace_back(-there.priority, other);
    free += there.gpus;
  }
  std::vector<std::string> victims;
  if (free < pod.gpus) return victims;
  std::ranges::sort(lower);
  for (const auto& [priority, other] : lower) {  // the dearest are reprieved first
    const int gpus = api_.pods().at(other).gpus;
    if (free - gpus >= pod.gpus) {
      free -= gpus;
    } else {
      victims.push_back(other);
    }
  }
  return victims;
}

void SimScheduler::Preempt(Extender& berth, const std::string& uid,
                           const std::set<std::string>& never) {
  const SimPod& pod = api_.pods().at(uid);
  if (const auto at = nominated_.find(uid); at != nominated_.end()) {
    for (const auto& [other, there] : api_.pods()) {  // it waits for these
      if (there.node == at->second && there.leaving && there.priority < pod.priority) return;
    }
  }
  std::vector<NodeVictims> asked;
  for (const std::string& node : api_.nodes()) {
    if (never.contains(node)) continue;
    std::vector<std::string> victims = VictimsOn(node, uid);
    if (!victims.empty()) asked.push_back({node, std::move(victims)});
  }
  nominated_.erase(uid);
  if (asked.empty()) return;
  const auto kept = berth.Preempt(berth.Now(), pod.pod.Request(), asked);
  if (kept.empty()) return;
  const auto at = static_cast<std::size_t>(world_.dice.Below(static_cast<int>(kept.size())));
  nominated_[uid] = kept[at].node;
  for (const std::string& victim : kept[at].uids) api_.Evict(victim, uid);
}

void SimScheduler::Answered(int number, const Status& bound) {
  SimCall& call = calls_.at(number);
  world_.Log("bind of", call.uid, bound ? "done" : bound.error().message);
  if (++call.answers > 1) world_.Violation("answered: a bind was answered twice");
  if (!call.waits) return;
  calls_.End(call);
  assumed_.erase(call.uid);
  const auto pod = api_.pods().find(call.uid);
  if (pod == api_.pods().end()) return;
  if (!bound) return Retry(call.uid);
  if (pod->second.node != call.node) {
    world_.Violation("truthful: " + call.uid + " is not on " + call.node);
  }
}

}  // namespace berth::test
