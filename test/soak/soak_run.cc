// SPDX-License-Identifier: Apache-2.0
#include "test/soak/soak_run.h"

#include <algorithm>
#include <chrono>
#include <numeric>

#include "cluster/state/audit.h"
#include "server/wire/file/cluster_file.h"
#include "test/soak/hostile_pod.h"
#include "test/support/bind_now.h"

namespace berth::test {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr const char* kGhost = "ghost";  // no node of that name comes up

std::vector<NodeIndex> Everywhere(const Snapshot& snapshot) {
  std::vector<NodeIndex> all(snapshot.size());
  std::iota(all.begin(), all.end(), NodeIndex{0});
  return all;
}

bool HasWhatWasGranted(const PodRecord& held, const SoakPod& pod) {
  const auto& grants = held.placement.grants;
  return held.placement.node == pod.node &&
         std::ranges::equal(grants, pod.granted, [](const DeviceGrant& grant, const auto& granted) {
           return grant.gpu == granted.first && grant.milli == granted.second;
         });
}

std::string Difference(const PodRecord& held, const SoakPod& pod) {
  return pod.name + " was bound with " + pod.bound_devices + ", says " + pod.devices +
         " and has in the books " + DevicesText(held.placement) + " on " + held.placement.node;
}

// Its devices are not known, so that the books hold what it asks for, or they are what it asks for.
// On a node that is not there nothing is held, and what is said of it is judged once it is.
bool HoldsItsRequest(const PodRecord& held, const SoakPod& pod) {
  if (pod.node == kGhost) return held.placement.node == kGhost;
  const auto& grants = held.placement.grants;
  const int each = pod.gpus > 0 ? kGpuMilli : pod.milli;
  const bool asks_the_same = pod.gpus > 0
                                 ? held.pod.shape.gpus == GpuAsk(WholeGpus{pod.gpus})
                                 : held.pod.shape.gpus == GpuAsk(GpuShare{.milli = pod.milli});
  if (!asks_the_same || held.placement.node != pod.node || !held.placement.mig.empty())
    return false;
  return grants.empty() ||
         (std::ssize(grants) == std::max(pod.gpus, 1) &&
          std::ranges::all_of(grants, [each](const DeviceGrant& g) { return g.milli == each; }));
}

std::string HeldText(const PodRecord& held, const SoakPod& pod) {
  std::string said = pod.devices;
  for (const auto& [key, value] : pod.says) said += " " + key + "=" + value.substr(0, 200);
  return pod.name + " asks for " + std::to_string(pod.gpus) + " GPUs and " +
         std::to_string(pod.milli) + " milli, says " + said + " and holds " +
         DevicesText(held.placement) + " on " + held.placement.node;
}

// Whether a node with this much taken of each GPU has room for the pod.
bool HasRoom(const std::vector<int>& taken, const SoakPod& pod) {
  const int most = pod.gpus > 0 ? 0 : kGpuMilli - pod.milli;
  const auto fitting = std::ranges::count_if(taken, [most](int milli) { return milli <= most; });
  return fitting >= std::max(pod.gpus, 1);
}

}  // namespace

SoakRun::SoakRun(std::uint64_t seed, std::size_t crowd) : random_(seed), crowd_(crowd) {
  api_.fault = [this](const kube::ApiRequest&) { return SomeFault(); };
  api_.on_the_wire = [this] { OnTheWire(); };
  api_.may_write = [this](int process) {
    return processes_[static_cast<std::size_t>(process)]->leads;
  };
  api_.on_event = [this](const SoakEvent& event) { Trace(event.object); };
  api_.on_bound = [this](const SoakPod& pod) {
    Note(pod.name + " bound: " + pod.devices);
    if (api_.wrong_gpus() > 0)
      Fail(pod.name + " was bound with a GPU that is another: " + pod.devices);
    if (api_.double_grants() == 0) return;
    std::string others;
    for (const auto& [name, other] : api_.pods()) {
      if (other.bound() && other.node == pod.node) others += ' ' + name + ' ' + other.bound_devices;
    }
    Fail("a GPU was given beyond what it has, to " + pod.name + " among" + others);
  };
  for (int i = 0; i < kNodes; ++i) api_.AddNode("n" + std::to_string(i));
  for (int i = 0; i < 2; ++i) {
    processes_[static_cast<std::size_t>(i)] =
        std::make_unique<SoakProcess>(api_, i, clock_, [this](Duration time) {
          clock_.Advance(time);
          OnTheWire();
        });
  }
  leader().leads = true;
  lies_ = HoldsRecordsToTheRequest(leader().rules());
  for (std::size_t i = 0; i < crowd_; ++i) {
    api_.AddPod({.name = "w" + std::to_string(i), .gpus = kSoakGpusPerNode + 1});
  }
}

bool SoakRun::Step() {
  TakeStep();
  return failure_.empty();
}

void SoakRun::Fail(const std::string& what) {
  Trace(what);
  if (failure_.empty()) failure_ = "step " + std::to_string(steps_) + ": " + what;
}

void SoakRun::Trace(std::string_view what) {
  for (const char c : what) {
    trace_ = (trace_ ^ static_cast<unsigned char>(c)) * 1'099'511'628'211U;
  }
}

void SoakRun::Note(const std::string& what) {
  Trace(what);
  constexpr std::size_t kMostLines = 500;
  history_.push_back(std::to_string(steps_) +
                     std::string(2U * static_cast<unsigned>(nested_) + 1, ' ') + what);
  if (history_.size() > kMostLines) history_.pop_front();
}

std::string SoakRun::History() const {
  std::string text;
  for (const std::string& line : history_) text += line + '\n';
  return text;
}

const SoakPod* SoakRun::Some(const std::function<bool(const SoakPod&)>& wanted) {
  std::vector<const SoakPod*> found;
  for (const auto& [name, pod] : api_.pods()) {
    if (wanted(pod)) found.push_back(&pod);
  }
  return found.empty() ? nullptr : found[random_.Below(found.size())];
}

bool SoakRun::IsDisputed(const SoakPod& pod) {
  return std::ranges::any_of(leader().state.Disputes(), [&pod](const DeviceDispute& dispute) {
    return dispute.pod.uid == pod.uid();
  });
}

void SoakRun::TakeStep() {
  if (!failure_.empty()) return;
  ++steps_;
  const std::uint64_t dice = random_.Below(1000);
  if (dice < 110) {
    Create();
  } else if (dice < 400) {
    Schedule();
  } else if (dice < 490) {
    Leave();
  } else if (dice < 880) {
    Follow();
  } else if (dice < 910) {
    CutSomething();
  } else if (dice < 950) {
    PassTime();
  } else if (dice < 965) {
    ChangeNode();
  } else if (dice < 980) {
    Harass();
  } else if (dice < 990) {
    Forge();
  } else if (dice < 993) {
    Look();
  } else if (dice < 996) {
    ChangeLeader();
  } else if (nested_ == 0) {
    Calm();
  }
  CheckNothingForgotten();
}

// What happens while a request is under way, or between two of its attempts.
void SoakRun::OnTheWire() {
  if (calm_ || nested_ >= kMostNested) return;
  ++nested_;
  for (std::uint64_t i = random_.Below(12); i > 0; --i) TakeStep();
  --nested_;
}

Fault SoakRun::SomeFault() {
  if (calm_) return Fault::kNone;
  constexpr std::array kFaults = {Fault::kTooMany,   Fault::kInternal,  Fault::kConflict,
                                  Fault::kForbidden, Fault::kNeverCame, Fault::kLostAnswer,
                                  Fault::kLostAnswer};
  const std::uint64_t dice = random_.Below(30);
  return dice < kFaults.size() ? kFaults[dice] : Fault::kNone;
}

// --- the steps

void SoakRun::Create() {
  if (api_.pods().size() >= kMostPods + crowd_ + hostile_) return;
  SoakPod pod{.name = "p" + std::to_string(next_pod_++)};
  if (Chance(30)) {
    pod.gpus = 1 + static_cast<int>(random_.Below(3));
  } else {
    pod.milli = 100 * (1 + static_cast<int>(random_.Below(9)));
  }
  api_.AddPod(std::move(pod));
}

void SoakRun::Schedule() {
  if (!leader().ready()) return;
  const bool asks_crowd = Chance(5);
  const SoakPod* const pod = Some([&](const SoakPod& p) {
    return p.node.empty() && !busy_.contains(p.name) && (asks_crowd || p.gpus <= kSoakGpusPerNode);
  });
  if (pod != nullptr) ScheduleThis(pod->name);
}

void SoakRun::ScheduleThis(std::string name) {
  const std::size_t number = leader_;
  SoakProcess& berth = leader();
  const PodRequest pod = berth.RequestOf(api_.pods().at(name));
  const Extender::Moment now = berth.extender.Now();
  const auto& snapshot = now.snapshot;
  const std::vector<NodeIndex> all = Everywhere(*snapshot);
  const std::vector<Reason> reasons = berth.extender.Filter(now, pod, all).reasons;
  for (const Reason reason : reasons) Trace(TextOf(reason));
  std::vector<NodeIndex> fitting;
  for (const NodeIndex i : all) {
    if (reasons[i] == Reason::kFits) fitting.push_back(i);
  }
  if (fitting.empty()) return;
  const std::string node(snapshot->names().name(fitting[random_.Below(fitting.size())]));
  busy_.insert(name);
  Note("process " + std::to_string(number) + " binds " + name + " to " + node);
  const Status bound = BindNow(berth.extender, {"ns", name, pod.id.uid, node});
  busy_.erase(name);
  Note(name + (bound ? " is said to be bound" : ": " + bound.error().message));
  ++counts_[bound ? "bound" : "bind failed"];
  const auto there = api_.pods().find(name);
  if (!bound || there == api_.pods().end()) return;  // deleted meanwhile
  if (there->second.node != node) Fail(name + " was said to be on " + node + " and is not");
  if (!there->second.over) shown_[number].insert(name);
}

void SoakRun::Leave() {
  const bool bound = Chance(80);
  const SoakPod* const pod = Some([bound](const SoakPod& p) {
    return p.node.empty() != bound && p.gpus <= kSoakGpusPerNode;  // the crowd stays
  });
  if (pod == nullptr) return;
  const std::string name = pod->name;
  if (pod->bound() && Chance(40)) {
    api_.ChangePod(name, [](SoakPod& p) { p.over = true; });
  } else {
    if (pod->hostile) --hostile_;
    api_.DeletePod(name);
  }
  for (auto& shown : shown_) shown.erase(name);
  Note(name + " leaves");
  ++counts_["pods that left"];
}

void SoakRun::Follow() {
  SoakProcess& berth = leader();
  if (Chance(20)) return berth.nodes.Step(random_, false);
  const std::uint64_t lists = berth.pods.lists();
  berth.pods.Step(random_, !calm_);
  if (lists != berth.pods.lists()) {
    ++counts_[busy_.empty() ? "lists" : "lists while binds were under way"];
  }
  if (lists != berth.pods.lists()) Note("a list of pods ends");
  if (!berth.pods.watches()) return;  // what a list shows is booked when the list has ended
  for (const std::string& name : berth.pods.brought()) {
    Note(name + " is shown");
    const auto pod = api_.pods().find(name);
    if (pod != api_.pods().end() && pod->second.bound()) shown_[leader_].insert(name);
  }
  berth.pods.brought().clear();
}

void SoakRun::CutSomething() {
  SoakMirror& mirror = Chance(80) ? leader().pods : leader().nodes;
  if (Chance(60)) api_.Compact();
  mirror.Cut();
  Note("a watch is cut");
  ++counts_["cuts"];
}

void SoakRun::PassTime() {
  clock_.Advance(milliseconds(random_.Below(Chance(10) ? 40'000 : 2'000)));
  // A bind of a pod that is being asked about waits, which nobody can here.
  std::vector<std::string> asked;
  for (const auto& doubt : leader().state.Overdue(clock_.Now())) {
    if (busy_.insert(doubt.pod.name).second) asked.push_back(doubt.pod.name);
  }
  const std::size_t settled = leader().extender.SettleOverdue();
  if (!asked.empty())
    Note("asked about " + asked[0] + " and others, settled " + std::to_string(settled));
  for (const std::string& name : asked) busy_.erase(name);
}

void SoakRun::ChangeNode() {
  const std::string name = "n" + std::to_string(random_.Below(kNodes));
  if (Chance(30)) {
    api_.ChangeNode(name, [](SoakNode& node) { node.ready = !node.ready; });
  } else if (Chance(50)) {
    // Its device plugin starts anew: it shows no GPU at all, or some, and then all of them.
    const int gone =
        Chance(50) ? kSoakGpusPerNode : static_cast<int>(random_.Below(kSoakGpusPerNode));
    api_.ChangeNode(name,
                    [gone](SoakNode& node) { node.gone_gpus = node.gone_gpus > 0 ? 0 : gone; });
    ++counts_["GPUs that flap"];
  } else {
    const int lost = static_cast<int>(random_.Below(2));
    api_.ChangeNode(name, [lost](SoakNode& node) { node.lost_gpus = lost; });
    ++counts_["GPUs lost or found"];
  }
}

// A tenant creates a pod on a node of its choice, there or not, or writes records of other
// ecosystems beside those of Berth.
void SoakRun::Harass() {
  if (Chance(30)) {
    const SoakPod* const pod = Some([](const SoakPod& p) { return p.bound() && !p.hostile; });
    if (pod == nullptr) return;
    auto records = ForeignRecords(random_, *pod, true);
    Note(pod->name + " says " + (records.empty() ? "nothing" : records.begin()->first));
    api_.ChangePod(pod->name, [&records](SoakPod& changed) { changed.says.merge(records); });
    ++counts_["records beside Berth's"];
    return;
  }
  if (hostile_ >= kMostHostile) return;
  const std::string node = Chance(20) ? kGhost : "n" + std::to_string(random_.Below(kNodes));
  SoakPod pod = HostilePod(random_, "h" + std::to_string(next_pod_++), node, lies_);
  Note(pod.name + " is created on " + node + " with " + pod.devices);
  api_.AddPod(std::move(pod));
  ++hostile_;
  ++counts_["hostile pods"];
}

void SoakRun::SendHostileAway() {
  std::vector<std::string> hostile;
  for (const auto& [name, pod] : api_.pods()) {
    if (pod.hostile) hostile.push_back(name);
  }
  for (const std::string& name : hostile) {
    api_.DeletePod(name);
    for (auto& shown : shown_) shown.erase(name);
  }
  hostile_ = 0;
}

// Somebody writes nonsense, nothing, or other GPUs into the annotation of a pod that the books
// know.
void SoakRun::Forge() {
  const auto is_forged = [](const SoakPod& p) {
    return p.bound() && !p.hostile && p.devices != p.bound_devices;
  };
  if (Some(is_forged) != nullptr) return MendForged();
  const SoakPod* const pod = Some([this](const SoakPod& p) {
    if (p.hostile || IsDisputed(p)) return false;
    const auto held = leader().state.FindPod(p.uid());
    return held && held->state == PodState::kBound && HasWhatWasGranted(*held, p);
  });
  if (pod == nullptr) return;
  std::string devices = pod->bound_devices;
  const std::uint64_t how = random_.Below(4);
  if (how == 0) devices = "nonsense";
  if (how == 1) devices.clear();
  constexpr std::string_view kIndex = "\"index\":";
  if (how == 2) {
    devices[devices.find(kIndex) + kIndex.size()] = static_cast<char>('0' + random_.Below(9));
  }
  api_.ChangePod(pod->name, [&devices](SoakPod& changed) { changed.devices = devices; });
  Note(pod->name + " says " + devices);
  ++counts_["annotations forged or mended"];
}

// Who begins to lead knows nothing better than what annotations say, so that they have to be true.
void SoakRun::MendForged() {
  std::vector<std::string> forged;
  for (const auto& [name, pod] : api_.pods()) {
    if (pod.bound() && !pod.hostile && pod.devices != pod.bound_devices) forged.push_back(name);
  }
  for (const std::string& name : forged) {
    api_.ChangePod(name, [](SoakPod& pod) { pod.devices = pod.bound_devices; });
  }
}

void SoakRun::Look() {
  if (wire::EncodeCluster(leader().state.Everything()).empty()) Fail("there is nothing to see");
  ++counts_["looks"];
}

void SoakRun::ChangeLeader() {
  MendForged();
  leader().leads = false;
  leader_ = 1 - leader_;
  leader().leads = true;
  leader().nodes.Restart();
  leader().pods.Restart();
  Note("process " + std::to_string(leader_) + " leads");
  ++counts_["leaders"];
}

// --- calm

void SoakRun::CatchUp() {
  for (std::size_t i = 0; i < 1000 + 5 * crowd_; ++i) {
    if (leader().ready() && leader().caught_up()) return;
    leader().nodes.Step(random_, false);
    Follow();
  }
  Fail("the lists and watches do not come to an end");
}

void SoakRun::Calm() {
  calm_ = true;
  for (const auto& [name, node] : api_.nodes()) {
    api_.ChangeNode(name, [](SoakNode& changed) {
      changed.lost_gpus = changed.gone_gpus = 0;
      changed.ready = true;
    });
  }
  CatchUp();
  clock_.Advance(seconds(30));  // what is in doubt becomes overdue
  (void)leader().extender.SettleOverdue();
  clock_.Advance(seconds(1));
  CatchUp();
  CheckBesideHostile();
  SendHostileAway();
  CatchUp();
  CheckCalm();
  CheckWaitingPods();
  CheckNobodyWaits();
  calm_ = false;
  Note("a calm ends");
  ++counts_["calms"];
}

bool SoakRun::End() {
  Calm();
  while (!api_.pods().empty()) api_.DeletePod(api_.pods().begin()->first);
  for (auto& shown : shown_) shown.clear();
  Calm();
  if (!leader().state.Everything().pods.empty()) Fail("pods are held that nobody has");
  return failure_.empty();
}

// --- what must hold

void SoakRun::CheckNothingForgotten() {
  if (!leader().ready()) return;
  for (const std::string& name : shown_[leader_]) {
    const auto held = leader().state.FindPod("uid-" + name);
    if (!held) return Fail(name + " is forgotten");
    const SoakPod& pod = api_.pods().at(name);
    if (held->state != PodState::kBound) continue;
    if (pod.hostile && !HoldsItsRequest(*held, pod)) return Fail(HeldText(*held, pod));
    if (pod.hostile || HasWhatWasGranted(*held, pod)) continue;
    // It cannot believe the GPU of an annotation while another pod may have that: one that it
    // has not heard that it is gone, or one whose bind is in doubt.
    const bool may_differ =
        !leader().pods.caught_up() || (pod.devices == pod.bound_devices && IsDisputed(pod));
    if (!may_differ) return Fail(Difference(*held, pod));
  }
}

// All pods that are there are held as they ask. Those of Berth have what they were given, unless
// another pod claims that GPU.
void SoakRun::CheckBesideHostile() {
  const ClusterState::Contents contents = leader().state.Everything();
  std::size_t there = 0;
  for (const auto& [name, pod] : api_.pods()) there += pod.bound() ? 1U : 0U;
  if (there != contents.pods.size()) {
    Fail(std::to_string(contents.pods.size()) + " pods are held, and " + std::to_string(there) +
         " are there");
  }
  for (const PodRecord& held : contents.pods) {
    const auto pod = api_.pods().find(held.pod.id.name);
    if (pod == api_.pods().end() || !pod->second.bound()) {
      Fail(held.pod.id.name + " is held and is not there");
    } else if (!HoldsItsRequest(held, pod->second)) {
      Fail(HeldText(held, pod->second));
    }
  }
  const AuditReport report = Audit(contents, clock_.Now(), seconds(0));
  if (report.differences + report.orphaned_reservations > 0) Fail("the audit fails");
}

void SoakRun::CheckWaitingPods() {
  std::set<std::string> waiting;
  for (const WaitingPod& pod : leader().waiting.Everybody()) waiting.insert(pod.pod->id.name);
  for (const auto& [name, pod] : api_.pods()) {
    if (pod.node.empty() && !pod.over && waiting.erase(name) == 0) Fail(name + " is not waiting");
  }
  if (!waiting.empty()) Fail(*waiting.begin() + " waits and is not there");
}

void SoakRun::CheckCalm() {
  const ClusterState::Contents contents = leader().state.Everything();
  std::set<std::string> there;
  for (const auto& [name, pod] : api_.pods()) {
    if (pod.bound()) there.insert(pod.uid());
  }
  for (const PodRecord& held : contents.pods) {
    const std::string& uid = held.pod.id.uid;
    if (held.state != PodState::kBound) Fail(uid + " is reserved in a calm");
    const auto pod = api_.pods().find(held.pod.id.name);
    if (there.erase(uid) == 0) {
      Fail(uid + " is held and is not there");
    } else if (!HasWhatWasGranted(held, pod->second)) {
      Fail(Difference(held, pod->second));
    }
  }
  for (const std::string& uid : there) Fail(uid + " is forgotten");
  if (Audit(contents, clock_.Now(), seconds(0)) != AuditReport()) Fail("the audit fails");
}

void SoakRun::CheckNobodyWaits() {
  std::vector<std::string> waiting;
  std::size_t crowd = 0;
  for (const auto& [name, pod] : api_.pods()) {
    const bool is_crowd = pod.gpus > kSoakGpusPerNode;
    if (pod.node.empty() && (!is_crowd || ++crowd <= kMostAsked)) waiting.push_back(name);
  }
  for (const std::string& name : waiting) {
    const SoakPod& pod = api_.pods().at(name);
    const bool has_place = std::ranges::any_of(
        api_.nodes(), [&](const auto& node) { return HasRoom(api_.TakenOn(node.first), pod); });
    ScheduleThis(name);
    if (pod.node.empty() == has_place) {
      Fail(name + (has_place ? " waits beside a place" : " got a place that is taken"));
    }
    CatchUp();
  }
}

}  // namespace berth::test
