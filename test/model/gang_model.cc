// SPDX-License-Identifier: Apache-2.0
#include "test/model/gang_model.h"

#include <algorithm>
#include <chrono>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "cluster/state/snapshot.h"
#include "server/extender/gangs/roster/gang_limits.h"
#include "test/model/sim_api.h"
#include "test/model/sim_calls.h"
#include "test/model/sim_scheduler.h"
#include "test/support/wire_fixture.h"

namespace berth::test {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr Duration kHold = seconds(50);
// In a minute in which nothing changes a pod is looked at so often at most. More than once, because
// what is left of a gang is woken with its others.
constexpr int kMostLooksInAMinute = 20;

class HalfClock final : public Clock {
 public:
  explicit HalfClock(const Clock& clock) : clock_(clock) {}
  [[nodiscard]] Instant Now() const override {
    return Instant(clock_.Now().time_since_epoch() / 2);
  }
  [[nodiscard]] WallTime Wall() const override { return clock_.Wall(); }

 private:
  const Clock& clock_;
};

// One process of Berth, and its way to the API server.
class SimBerth final : public PodBinder {
 public:
  SimBerth(int number, SimApi& api, const int& leader)
      : number_(number), api_(api), leader_(leader) {}

  Status Bind(const BindOrder& order) override { return api_.Bind(order, leader_ == number_); }
  Result<PodTruth> Find(const PodId& id) override { return api_.Find(id); }
  [[nodiscard]] int number() const { return number_; }

  ClusterState state;
  WaitingPods waiting;
  NodeDomains domains{{{"rack", {"rack"}}}};
  GangTable gangs{{state, waiting, domains}};
  std::optional<Extender> extender;

 private:
  const int number_;
  SimApi& api_;
  const int& leader_;
};

class LogSink final : public DecisionSink {
 public:
  explicit LogSink(SimWorld& world) : world_(world) {}
  void Record(const Decision& /*decision*/) override {}
  void Record(const GangNews& news) override { world_.Log("news of", news.gang.name, news.text); }

 private:
  SimWorld& world_;
};

class Model final : public PodWaker {
 public:
  Model(std::uint64_t seed, Planted planted, std::vector<std::string>* log)
      : world_(seed, planted) {
    world_.log = log;
    StartBerth();
  }

  ModelReport Run(std::uint64_t steps) {
    ModelReport& report = world_.report;
    for (; report.steps < steps && report.violation.empty(); ++report.steps) {
      world_.cause = report.steps;
      Step();
    }
    if (report.violation.empty()) Settle();
    if (report.violation.empty()) EndAll();
    report.next_random = world_.dice.Below(1 << 30);
    report.end = world_.clock.Now();
    return report;
  }

  bool Wake(const PodId& pod) override {
    scheduler_.Woken(pod.uid);
    return true;
  }

 private:
  struct Job {
    int berth = 0;
    std::uint64_t posted = 0;  // in which step
    std::function<void()> run;
  };

  [[nodiscard]] int Below(int n) { return world_.dice.Below(n); }

  // --- Berth

  void StartBerth() {
    leader_ = ++berths_;
    world_.Log("Berth", leader_, "leads");
    berth_ = std::make_unique<SimBerth>(leader_, api_, leader_);
    const Clock& clock = world_.planted == Planted::kSlowClock
                             ? static_cast<const Clock&>(half_clock_)
                             : world_.clock;
    berth_->extender.emplace(
        Extender::Parts{.state = berth_->state,
                        .binder = *berth_,
                        .sink = sink_,
                        .clock = clock,
                        .domains = &berth_->domains,
                        .behind_scheduler = true,
                        .gangs = &berth_->gangs,
                        .waiting = &berth_->waiting,
                        .waker = this,
                        .history = &api_},
        Extender::Policy{
            .engine = engine_, .reservation_time = seconds(30), .gangs = {{"berth"}, kHold}});
    berth_->extender->BindOn([this, number = leader_](std::function<void()> job) {
      if (world_.planted == Planted::kLosesJobs && ++posted_ % 25 == 0) return true;
      jobs_.push_back({number, world_.cause, std::move(job)});
      return true;
    });
    api_.ListTo(berth_->state, berth_->waiting);
    berth_->extender->TakeOverGangs();
  }
  // The process ends: its connections break, and what it had begun is not done.
  void End(std::unique_ptr<SimBerth>& berth) {
    if (berth == nullptr) return;
    std::erase_if(jobs_, [&berth](const Job& job) { return job.berth == berth->number(); });
    const std::set<std::string> unanswered = calls_.EndAll(berth->number());
    berth.reset();
    for (const std::string& uid : unanswered) scheduler_.Retry(uid);
  }
  void KillBerth() {
    ++world_.report.restarts;
    End(berth_);
    StartBerth();
  }
  // Another one leads. The one that did may not have noticed; it goes on with what it has begun.
  void HandOver() {
    ++world_.report.handovers;
    End(deposed_);
    deposed_ = std::move(berth_);
    if (world_.dice.Chance(50)) {
      deposed_->extender->LetGoOfGangs({Errc::kUnavailable, "another one leads"});
    }
    StartBerth();
  }

  void RunJob() {
    if (jobs_.empty()) return;
    const auto at = jobs_.begin() + Below(static_cast<int>(jobs_.size()));
    const Job job = std::move(*at);
    jobs_.erase(at);
    world_.cause = job.posted;
    job.run();
    world_.cause = world_.report.steps;
  }
  void Deliver() { api_.Deliver(berth_->state, berth_->waiting); }
  void Schedule() { scheduler_.Schedule(*berth_->extender, leader_); }
  void Look() {
    berth_->extender->LookAtGangs();
    if (deposed_ != nullptr) deposed_->extender->LookAtGangs();
  }
  void Pass(Duration time) {
    world_.clock.Advance(time);
    berth_->extender->SettleOverdue();
    berth_->extender->LearnOfGangs();
    calls_.GiveUpLate();
  }

  // kube-scheduler does nothing for some time.
  void Rest() {
    for (int i = Below(80); i > 0; --i) {
      while (!jobs_.empty()) RunJob();
      Pass(seconds(1));
      Look();
    }
  }

  // --- what happens

  void Step() {
    for (const std::string& uid : api_.Stranded()) Delete(uid);
    EndEvicted();
    const int what = Below(1000);
    if (what < 300) return Deliver();
    if (what < 480) return RunJob();
    if (what < 760) return Schedule();
    if (what < 860) return Look();
    if (what < 941) return Pass(milliseconds(Below(400)));
    if (what < 943) return Rest();
    if (what < 968) return CreateSome();
    if (what < 975) return SucceedSome();
    if (what < 990) return DeleteSome();
    if (what < 993) return RestartGang();
    if (what < 996) return ToggleNode();
    if (what < 998) return KillBerth();
    if (what < 999) return HandOver();
    ++world_.report.restarts;
    scheduler_.Restart();
  }
  void EndEvicted() {
    for (const std::string& uid : api_.Ended()) Delete(uid);
  }
  void Create(const std::string& name, const std::string& gang, int gpus, int priority = 0) {
    scheduler_.Created(api_.Create(name, gang, gpus, priority));
  }
  void Delete(const std::string& uid) {
    api_.Delete(uid);
    scheduler_.Deleted(uid);
  }
  // Pods of a gang have the names of those that are missing.
  void CreateMembers(const std::string& name, int most) {
    std::set<std::string> names;
    for (const std::string& uid : api_.MembersOf(name)) {
      names.insert(api_.pods().at(uid).pod.Request().id.name);
    }
    const SimGang gang = api_.gangs().at(name);
    for (int rank = 0; rank < gang.total && most > 0; ++rank) {
      const std::string member = name + "-" + std::to_string(rank);
      if (names.contains(member) || gang.ended.contains(member)) continue;
      Create(member, name, gang.gpus);
      --most;
    }
  }
  void CreateSome() {
    if (api_.pods().size() > 40) return;
    if (world_.dice.Chance(30)) {
      const std::string name = "single-" + std::to_string(++singles_);
      return Create(name, "", 1 + Below(2), 10 * Below(3));
    }
    std::string& name = current_[Below(kModelGangs)];
    if (name.empty() || api_.MembersOf(name).empty()) {
      name = NewGang();
    } else if (api_.gangs().at(name).ran) {
      return;
    }
    CreateMembers(name, world_.dice.Chance(50) ? kModelNodes * kModelGpus : 1);
  }
  std::string NewGang() {
    SimGang gang;
    gang.total = 2 + Below(5);
    gang.minimum = world_.dice.Chance(70) ? gang.total : 2 + Below(gang.total - 1);
    gang.one_rack = world_.dice.Chance(30);
    gang.one_per_node = !gang.one_rack && world_.dice.Chance(25);
    gang.parted = !gang.one_rack && !gang.one_per_node && api_.gangs().size() % 3 == 2;
    if (world_.dice.Chance(20)) gang.dropped = "n" + std::to_string(Below(kModelNodes));
    gang.priority = 10 * Below(3);
    gang.gpus = 1 + Below(gang.one_rack ? 2 : 3);
    const std::string name = "gang" + std::to_string(api_.gangs().size());
    api_.gangs().emplace(name, gang);
    return name;
  }
  void DeleteSome() {
    if (api_.pods().empty()) return;
    auto pod = api_.pods().begin();
    std::advance(pod, Below(static_cast<int>(api_.pods().size())));
    const std::string gang = pod->second.gang;
    if (gang.empty() || world_.dice.Chance(20)) return Delete(std::string(pod->first));
    for (const std::string& uid : api_.MembersOf(gang)) Delete(uid);
  }
  // A pod of a gang that is whole ends with success; another one may be lost, and is made anew.
  void SucceedSome() {
    const std::string name = current_[Below(kModelGangs)];
    if (name.empty() || !api_.gangs().at(name).ran) return;
    int bound = 0;
    const std::vector<std::string> members = api_.MembersOf(name);
    for (const std::string& uid : members) bound += api_.pods().at(uid).node.empty() ? 0 : 1;
    if (bound < api_.gangs().at(name).minimum) return;
    for (const std::string& uid : members) {
      const bool runs = !api_.pods().at(uid).node.empty() && !api_.pods().at(uid).leaving;
      if (!runs || world_.dice.Chance(30)) continue;
      api_.Succeed(uid);
      scheduler_.Deleted(uid);
    }
    const auto left = api_.MembersOf(name);
    if (left.empty()) return;
    Delete(left.front());
    CreateMembers(name, 1);
    if (world_.dice.Chance(30)) KillBerth();  // it knew that they had run
  }
  // Its controller deletes all of it and creates it anew, under the same names.
  void RestartGang() {
    const std::string name = current_[Below(kModelGangs)];
    if (name.empty()) return;
    const std::vector<std::string> members = api_.MembersOf(name);
    if (members.empty()) return;
    for (const std::string& uid : members) Delete(uid);
    SimGang& gang = api_.gangs().at(name);
    gang.ran_before = gang.ran_before || std::exchange(gang.ran, false);
    gang.ended.clear();
    CreateMembers(name, world_.dice.Chance(50) ? kModelNodes * kModelGpus : 2);
  }
  void ToggleNode() {
    const std::string node = "n" + std::to_string(Below(kModelNodes));
    for (const std::string& uid : api_.Toggle(node)) Delete(uid);
    scheduler_.WakeAll();
  }

  // --- the end

  // Nothing disturbs any more: what can run runs, and then there is silence.
  void Settle() {
    world_.disturbed = false;
    End(deposed_);
    api_.Restore();
    // What was learned of nodes by chance is forgotten.
    for (int i = 0; i < 200; ++i) {
      while (!jobs_.empty()) RunJob();
      Pass(seconds(10));
      Look();
    }
    scheduler_.WakeAll();
    LetTimePass(gangs::kLongestAbsentPause + seconds(60));  // of those that nobody asked about
    api_.CheckGangs(false);
    // Members beyond the minimum are pods like others: without a line (earmarks) nobody wakes them
    // when a gang gives its plan up, and kube-scheduler tries them after five minutes.
    scheduler_.WakeAll();
    LetTimePass(seconds(60));
    api_.CheckGangs(true);
    for (const GangView& gang : berth_->gangs.Views(world_.clock.Now())) {
      world_.Log("at the end", gang.id.name, gang.state, gang.why);
    }
    scheduler_.ResetLooks();
    LetTimePass(seconds(60));
    if (const int looks = scheduler_.MostLooks(); looks > kMostLooksInAMinute) {
      world_.Violation("quiet: a pod was looked at " + std::to_string(looks) + " times");
    }
  }
  void LetTimePass(Duration time) {
    for (const Instant end = world_.clock.Now() + time;
         world_.clock.Now() < end && world_.report.violation.empty();) {
      EndEvicted();
      for (int i = 0; i < 20; ++i) {
        while (api_.Deliver(berth_->state, berth_->waiting)) {
        }
        Schedule();
        while (!jobs_.empty()) RunJob();
      }
      Look();
      Pass(milliseconds(100));
    }
  }
  void EndAll() {
    while (!api_.pods().empty()) Delete(std::string(api_.pods().begin()->first));
    LetTimePass(seconds(120));
    const std::size_t held = berth_->state.Everything().pods.size();
    if (held > 0) {
      world_.Violation("clean: " + std::to_string(held) + " pods are still in the books");
    }
    for (const GangView& gang : berth_->gangs.Views(world_.clock.Now())) {
      if (gang.planned == 0 && gang.held == 0) continue;
      world_.Violation("clean: a plan is left of " + gang.id.name);
    }
    calls_.CheckNoneWaits();
  }

  SimWorld world_;
  const HalfClock half_clock_{world_.clock};
  LogSink sink_{world_};
  const std::shared_ptr<Engine> engine_ = EngineOf("best-fit");
  SimCalls calls_{world_};
  SimApi api_{world_, calls_};
  SimScheduler scheduler_{world_, calls_, api_};

  std::map<int, std::string> current_;  // the gangs that there are
  int singles_ = 0;
  std::vector<Job> jobs_;
  int posted_ = 0;
  int berths_ = 0, leader_ = 0;
  std::unique_ptr<SimBerth> berth_;
  std::unique_ptr<SimBerth> deposed_;  // led before
};

}  // namespace

ModelReport RunGangModel(std::uint64_t seed, std::uint64_t steps, Planted planted,
                         std::vector<std::string>* log) {
  return Model(seed, planted, log).Run(steps);
}

}  // namespace berth::test
