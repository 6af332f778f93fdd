// SPDX-License-Identifier: Apache-2.0
#include "test/model/gang_model.h"

#include <algorithm>
#include <chrono>
#include <numeric>
#include <utility>

#include "test/support/builders.h"
#include "test/support/wire_fixture.h"

namespace berth::test {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr int kNodes = 6, kGpus = 4, kGangs = 5;
constexpr Duration kHttpTimeout = seconds(60), kHold = seconds(50);

// A pod as the API server has it.
struct SimPod {
  APod pod{""};
  std::string gang;  // "" = none
  int gpus = 1;
  std::string node;  // "" = not bound
  std::vector<int> devices;
};

class Dice {
 public:
  explicit Dice(std::uint64_t seed) : random_(seed) {}
  int Below(int n) { return static_cast<int>(random_.Below(static_cast<std::uint64_t>(n))); }
  bool Chance(int percent) { return Below(100) < percent; }

 private:
  Random random_;
};

class Model final : public PodBinder, public PodWaker {
 public:
  Model(std::uint64_t seed, Planted planted) : random_(seed), planted_(planted) {
    for (int i = 0; i < kNodes; ++i) nodes_.insert("n" + std::to_string(i));
    StartBerth();
  }

  ModelReport Run(std::uint64_t steps) {
    for (; report_.steps < steps && report_.violation.empty(); ++report_.steps) Step();
    if (report_.violation.empty()) Settle();
    if (report_.violation.empty()) EndAll();
    return report_;
  }

  // --- what Berth asks of the API server
  Status Bind(const BindOrder& order) override {
    const std::string& uid = order.pod.id.uid;
    const auto found = pods_.find(uid);
    if (found == pods_.end()) return Fail(Errc::kNotFound, "the pod is gone");
    SimPod& pod = found->second;
    if (!pod.node.empty()) {
      if (pod.node == order.placement.node) return {};
      return Fail(Errc::kConflict, "bound elsewhere");
    }
    if (planted_ == Planted::kSaysBoundTooEarly && random_.Chance(2)) return {};
    const int luck = disturbed_ ? random_.Below(100) : 99;
    if (luck < 2) return Fail(Errc::kConflict, "refused");
    if (luck < 4) return Fail(Errc::kUnavailable, "no answer, and not done");
    Take(pod, order.placement);
    if (luck < 6) return Fail(Errc::kUnavailable, "no answer, and done");
    return {};
  }
  Result<PodTruth> Find(const PodId& id) override {
    if (disturbed_ && random_.Chance(5)) return Fail(Errc::kUnavailable, "no answer");
    const auto found = pods_.find(id.uid);
    if (found == pods_.end()) return Fail(Errc::kNotFound, "the pod is gone");
    const SimPod& pod = found->second;
    PodTruth truth{pod.pod.Request(), std::nullopt};
    if (!pod.node.empty()) truth.placement = pod.pod.On(pod.node, pod.devices);
    return truth;
  }
  void Wake(const PodId& pod) override {
    if (planted_ != Planted::kNeverWakes) asleep_.erase(pod.uid);
  }

 private:
  struct Berth {
    ClusterState state;
    WaitingPods waiting;
    NodeDomains domains{TopologyLevels()};
    GangTable gangs{{state, waiting, domains}};
    std::optional<Extender> extender;
  };
  struct Call {  // a bind that kube-scheduler waits for
    std::string uid, node;
    Instant until;
    bool waits = true;
    int answers = 0;
  };

  void Violation(const std::string& what) {
    if (report_.violation.empty()) {
      report_.violation = what + " (step " + std::to_string(report_.steps) + ")";
    }
  }

  // --- the API server

  void Take(SimPod& pod, const Placement& placement) {
    for (const DeviceGrant& grant : placement.grants) {
      for (const auto& [uid, other] : pods_) {
        const bool has = std::ranges::find(other.devices, grant.gpu) != other.devices.end();
        if (other.node == placement.node && has) {
          Violation("once: GPU " + std::to_string(grant.gpu) + " of " + placement.node +
                    " is given to " + pod.pod.Request().id.name + " and " +
                    other.pod.Request().id.name);
        }
      }
      const bool misplaced = planted_ == Planted::kBindsTwice && random_.Chance(2);
      pod.devices.push_back(misplaced ? (grant.gpu + 1) % kGpus : grant.gpu);
    }
    pod.node = placement.node;
    ++report_.bindings;
    CheckBegin(pod);
    Show(pod);
  }

  // Whoever begins has enough others that exist.
  void CheckBegin(const SimPod& pod) {
    if (pod.gang.empty()) return;
    int bound = 0, there = 0;
    for (const auto& [uid, other] : pods_) {
      if (other.gang != pod.gang) continue;
      ++there;
      bound += other.node.empty() ? 0 : 1;
    }
    const int size = sizes_.at(pod.gang);
    if (bound == size) ++report_.whole;
    // A deletion that Berth has not heard of yet is not its fault.
    if (bound == 1 && there < size && !ran_.contains(pod.gang) && watch_.empty()) {
      Violation("whole: " + pod.gang + " began with " + std::to_string(there) + " of " +
                std::to_string(size));
    }
    ran_.insert(pod.gang);
  }

  void Show(const SimPod& pod) {
    const PodBound bound{pod.pod.Request(), pod.pod.On(pod.node, pod.devices)};
    watch_.push_back([this, bound] {
      Apply(bound);
      berth_->waiting.Remove(bound.pod.id.uid);
    });
  }
  void ShowWaiting(const SimPod& pod) {
    auto request = std::make_shared<PodRequest>(pod.pod.Request());
    watch_.push_back([this, request] { berth_->waiting.Put({.pod = request}); });
  }
  void ShowGone(const std::string& uid) {
    if (planted_ == Planted::kHidesDeletions) return;
    watch_.push_back([this, uid] {
      Apply(PodGone{uid});
      berth_->waiting.Remove(uid);
    });
  }
  void Apply(const ClusterEvent& event) {
    if (!berth_->state.Apply(std::span(&event, 1))) Violation("an event was refused");
  }

  void Create(const std::string& name, const std::string& gang, int gpus) {
    SimPod pod;
    pod.pod = APod(name + "-" + std::to_string(++created_)).Whole(gpus);
    pod.gang = gang;
    pod.gpus = gpus;
    if (!gang.empty()) {
      const int size = sizes_.at(gang) - (planted_ == Planted::kSizeTooSmall ? 1 : 0);
      pod.pod.Gang("berth:default/" + gang).GangSize(std::max(size, 1));
    }
    const std::string uid = pod.pod.Request().id.uid;
    ShowWaiting(pod);
    pods_.emplace(uid, std::move(pod));
    pending_[uid] = clock_.Now();
  }
  void Delete(const std::string& uid) {
    pods_.erase(uid);
    pending_.erase(uid);
    asleep_.erase(uid);
    ShowGone(uid);
    WakeAll();
  }

  // --- Berth

  void StartBerth() {
    for (auto& [number, call] : calls_) call.waits = false;  // the connections break
    jobs_.clear();
    berth_.reset();
    watch_.clear();
    berth_ = std::make_unique<Berth>();
    berth_->extender.emplace(
        Extender::Parts{.state = berth_->state,
                        .binder = *this,
                        .sink = sink_,
                        .clock = clock_,
                        .domains = &berth_->domains,
                        .behind_scheduler = true,
                        .gangs = &berth_->gangs,
                        .waiting = &berth_->waiting,
                        .waker = this},
        Extender::Policy{
            .engine = engine_, .reservation_time = seconds(30), .gangs = {{"berth"}, kHold}});
    berth_->extender->BindOn([this](std::function<void()> job) {
      if (planted_ == Planted::kLosesJobs && ++posted_ % 50 == 0) return true;
      jobs_.push_back(std::move(job));
      return true;
    });
    for (const std::string& node : nodes_) Apply(NodeUpserted{ANode(node).Gpus(kGpus).Spec()});
    for (const auto& [uid, pod] : pods_) {
      if (pod.node.empty()) {
        ShowWaiting(pod);
      } else if (planted_ != Planted::kForgetsBoundPods) {
        Show(pod);
      }
    }
    DeliverAll();
    berth_->extender->TakeOverGangs();
  }
  void DeliverAll() {
    while (!watch_.empty()) Deliver();
  }
  void Deliver() {
    if (watch_.empty()) return;
    const auto event = std::move(watch_.front());
    watch_.pop_front();
    event();
  }
  void RunJob() {
    if (jobs_.empty()) return;
    const auto at = jobs_.begin() + random_.Below(static_cast<int>(jobs_.size()));
    const auto job = std::move(*at);
    jobs_.erase(at);
    job();
  }

  // --- kube-scheduler

  [[nodiscard]] int FreeInTree(const std::string& node) const {
    int free = kGpus;
    for (const auto& [uid, pod] : pods_) {
      const auto assumed = assumed_.find(uid);
      const bool is_there = pod.node == node || (pod.node.empty() && assumed != assumed_.end() &&
                                                 assumed->second == node);
      if (is_there) free -= pod.gpus;
    }
    return free;
  }
  void WakeAll() {
    if (planted_ != Planted::kNeverWakes) asleep_.clear();
  }
  void Schedule() {
    std::vector<std::string> ready;
    for (const auto& [uid, not_before] : pending_) {
      if (not_before <= clock_.Now() && !asleep_.contains(uid)) ready.push_back(uid);
    }
    if (ready.empty()) return;
    const std::string uid =
        ready[static_cast<std::size_t>(random_.Below(static_cast<int>(ready.size())))];
    const SimPod& pod = pods_.at(uid);
    const std::shared_ptr<const Snapshot> snapshot = berth_->state.Current();
    std::vector<NodeIndex> offered;
    for (const std::string& node : nodes_) {
      const NodeIndex index = snapshot->names().Find(node);
      if (index != kNoNode && FreeInTree(node) >= pod.gpus) offered.push_back(index);
    }
    const FilterAnswer answer = berth_->extender->Filter(snapshot, pod.pod.Request(), offered);
    std::string node;
    for (std::size_t i = 0; i < offered.size(); ++i) {
      if (answer.reasons[i] != Reason::kFits) continue;
      if (node.empty() || random_.Chance(50)) node = snapshot->names().name(offered[i]);
    }
    if (node.empty()) {
      asleep_.insert(uid);  // until an event
      pending_[uid] = clock_.Now() + milliseconds(1000 + random_.Below(1000));
      return;
    }
    pending_.erase(uid);
    assumed_[uid] = node;
    const int number = ++numbers_;
    calls_[number] = {uid, node, clock_.Now() + kHttpTimeout};
    const PodId& id = pod.pod.Request().id;
    const bool taken = berth_->extender->Bind(
        {id.namespace_name, id.name, id.uid, node, clock_.Now()},
        [this, number](const Status& bound) { Answered(number, bound); },
        [this, number] { return calls_.at(number).waits; });
    if (!taken) Answered(number, Fail(Errc::kUnavailable, "too many"));
  }
  void Answered(int number, const Status& bound) {
    Call& call = calls_.at(number);
    if (++call.answers > 1) Violation("answered: a bind was answered twice");
    if (!call.waits) return;
    call.waits = false;
    const auto pod = pods_.find(call.uid);
    assumed_.erase(call.uid);
    if (pod == pods_.end()) return;
    if (bound) {
      if (pod->second.node != call.node)
        Violation("truthful: " + call.uid + " is not on " + call.node);
      return;
    }
    Retry(call.uid);
  }
  void Retry(const std::string& uid) {
    const auto pod = pods_.find(uid);
    if (pod == pods_.end() || !pod->second.node.empty()) return;
    pending_[uid] = clock_.Now() + milliseconds(1000 + random_.Below(1000));
    WakeAll();  // an assumed pod was deleted
  }
  void GiveUpLate() {
    for (auto& [number, call] : calls_) {
      if (!call.waits || call.until > clock_.Now()) continue;
      Violation("answered: a bind of " + call.uid + " was not answered in time");
    }
    std::erase_if(calls_, [this](const auto& call) {
      return !call.second.waits && call.second.until + kHttpTimeout < clock_.Now();
    });
  }
  void RestartScheduler() {
    ++report_.restarts;
    for (auto& [number, call] : calls_) call.waits = false;
    assumed_.clear();
    asleep_.clear();
    pending_.clear();
    for (const auto& [uid, pod] : pods_) {
      if (pod.node.empty()) pending_[uid] = clock_.Now();
    }
  }

  // --- what happens

  void Step() {
    const int what = random_.Below(1000);
    if (what < 300) return Deliver();
    if (what < 480) return RunJob();
    if (what < 760) return Schedule();
    if (what < 860) return Look();
    if (what < 950) return Pass(milliseconds(random_.Below(400)));
    if (what < 975) return CreateSome();
    if (what < 993) return DeleteSome();
    if (what < 996) return CutNode();
    if (what < 998) {
      ++report_.restarts;
      StartBerth();
      return RetryAll();
    }
    RestartScheduler();
  }
  // Whoever waited for an answer when Berth was killed gets an error.
  void RetryAll() {
    for (const auto& [uid, node] : std::exchange(assumed_, {})) Retry(uid);
  }
  void Look() { berth_->extender->LookAtGangs(); }
  void Pass(Duration time) {
    clock_.Advance(time);
    berth_->extender->SettleOverdue();
    GiveUpLate();
  }
  void CreateSome() {
    if (pods_.size() > 40) return;
    if (random_.Chance(30)) return Create("single", "", 1 + random_.Below(2));
    std::string& gang = current_[random_.Below(kGangs)];
    const auto is_there = [&gang](const auto& pod) { return pod.second.gang == gang; };
    if (gang.empty() || std::ranges::none_of(pods_, is_there)) {
      gang = "gang" + std::to_string(sizes_.size());
      sizes_[gang] = 2 + random_.Below(5);
      gpus_[gang] = 1 + random_.Below(3);
    } else if (ran_.contains(gang)) {
      return;
    }
    const int missing = sizes_[gang] - static_cast<int>(std::ranges::count_if(pods_, is_there));
    for (int i = random_.Chance(50) ? missing : std::min(missing, 1); i > 0; --i) {
      Create(gang, gang, gpus_[gang]);
    }
  }
  void DeleteSome() {
    if (pods_.empty()) return;
    auto pod = pods_.begin();
    std::advance(pod, random_.Below(static_cast<int>(pods_.size())));
    const std::string gang = pod->second.gang;
    if (gang.empty() || random_.Chance(20)) return Delete(std::string(pod->first));
    for (const std::string& uid : MembersOf(gang)) Delete(uid);
  }
  [[nodiscard]] std::vector<std::string> MembersOf(const std::string& gang) const {
    std::vector<std::string> uids;
    for (const auto& [uid, pod] : pods_) {
      if (pod.gang == gang) uids.push_back(uid);
    }
    return uids;
  }
  // A node goes, with its pods, or comes back.
  void CutNode() {
    const std::string node = "n" + std::to_string(random_.Below(kNodes));
    if (nodes_.insert(node).second) {
      watch_.push_back([this, node] { Apply(NodeUpserted{ANode(node).Gpus(kGpus).Spec()}); });
      return WakeAll();
    }
    nodes_.erase(node);
    watch_.push_back([this, node] { Apply(NodeRemoved{node}); });
    std::vector<std::string> lost;
    for (const auto& [uid, pod] : pods_) {
      if (pod.node == node) lost.push_back(uid);
    }
    for (const std::string& uid : lost) Delete(uid);
  }

  // --- the end

  // Nothing disturbs any more: what can run runs.
  void Settle() {
    disturbed_ = false;
    for (int i = 0; i < kNodes; ++i) {
      if (nodes_.contains("n" + std::to_string(i))) continue;
      nodes_.insert("n" + std::to_string(i));
      watch_.push_back([this, node = "n" + std::to_string(i)] {
        Apply(NodeUpserted{ANode(node).Gpus(kGpus).Spec()});
      });
    }
    WakeAll();
    LetTimePass(seconds(200));
    for (const auto& [gang, size] : sizes_) {
      const std::vector<std::string> uids = MembersOf(gang);
      int bound = 0;
      for (const std::string& uid : uids) bound += pods_.at(uid).node.empty() ? 0 : 1;
      const int there = static_cast<int>(uids.size());
      int room = 0;
      for (const std::string& node : nodes_) room += FreeInTree(node) / gpus_.at(gang);
      const std::string name = gang + " of " + std::to_string(size) + " has " +
                               std::to_string(bound) + " of " + std::to_string(there) +
                               " bound and room for " + std::to_string(room);
      if (bound > 0 && bound < std::min(size, there) && room >= std::min(size, there) - bound) {
        Violation("whole: " + name);
      }
      if (bound == 0 && there >= size && room >= size) Violation("live: " + name);
    }
  }
  void LetTimePass(Duration time) {
    for (const Instant end = clock_.Now() + time;
         clock_.Now() < end && report_.violation.empty();) {
      for (int i = 0; i < 20; ++i) {
        DeliverAll();
        Schedule();
        while (!jobs_.empty()) RunJob();
      }
      Look();
      Pass(milliseconds(100));
    }
  }
  void EndAll() {
    while (!pods_.empty()) Delete(std::string(pods_.begin()->first));
    LetTimePass(seconds(120));
    const std::size_t held = berth_->state.Everything().pods.size();
    if (held > 0) Violation("clean: " + std::to_string(held) + " pods are still in the books");
    for (const GangView& gang : berth_->gangs.Views(clock_.Now())) {
      if (gang.planned > 0 || gang.held > 0) Violation("clean: a plan is left of " + gang.id.name);
    }
    for (const auto& [number, call] : calls_) {
      if (call.waits) Violation("answered: a bind of " + call.uid + " has no answer");
    }
  }

  Dice random_;
  const Planted planted_;
  SimClock clock_;
  SilentSink sink_;
  const std::shared_ptr<Engine> engine_ = EngineOf("best-fit");
  ModelReport report_;
  bool disturbed_ = true;

  std::set<std::string> nodes_;
  std::map<std::string, SimPod> pods_;       // by UID
  std::map<int, std::string> current_;       // the gangs that there are
  std::map<std::string, int> sizes_, gpus_;  // of all that there were
  std::set<std::string> ran_;                // gangs of which a pod was bound
  int created_ = 0;
  std::deque<std::function<void()>> watch_;  // what Berth has not heard of

  std::map<std::string, Instant> pending_;  // by UID: not before
  std::set<std::string> asleep_;
  std::map<std::string, std::string> assumed_;  // [uid] node
  std::map<int, Call> calls_;
  int numbers_ = 0;

  std::deque<std::function<void()>> jobs_;
  int posted_ = 0;
  std::unique_ptr<Berth> berth_;
};

}  // namespace

ModelReport RunGangModel(std::uint64_t seed, std::uint64_t steps, Planted planted) {
  return Model(seed, planted).Run(steps);
}

}  // namespace berth::test
