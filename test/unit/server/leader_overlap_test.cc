// SPDX-License-Identifier: Apache-2.0
//
// Two electors on one API server, stepping out of phase: at no moment does one of them lead, or
// have a write on its way, while the other does.
#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include <gtest/gtest.h>

#include "base/random.h"
#include "bench/replay/time/sim_clock.h"
#include "server/kube/lead/leader_elector.h"
#include "test/support/fake_api_server.h"

namespace berth::kube::leader_overlap_test {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

const std::string kLeases = "/apis/coordination.k8s.io/v1/leases";
constexpr Duration kTick = milliseconds(50);
constexpr Duration kLease = seconds(15);

// What happens, when it does: time passes in one place, and who waits lets the others go on.
class World {
 public:
  explicit World(std::uint64_t seed) : random(seed) {}

  void At(Instant when, std::function<void()> what) { events_.emplace(when, std::move(what)); }
  void In(Duration time, std::function<void()> what) { At(clock.Now() + time, std::move(what)); }
  void Run(Duration time) {
    for (const Instant end = clock.Now() + time; clock.Now() < end;) {
      clock.Advance(kTick);
      after_tick();
      while (!events_.empty() && events_.begin()->first <= clock.Now()) {
        const auto what = std::move(events_.begin()->second);
        events_.erase(events_.begin());
        what();
        after_tick();
      }
    }
  }
  [[nodiscard]] Duration Between(Duration least, Duration most) {
    return least + std::chrono::duration_cast<Duration>((most - least) * random.Unit());
  }
  [[nodiscard]] bool OneIn(int count) { return random.Unit() * count < 1; }

  SimClock clock;
  Random random;
  std::function<void()> after_tick = [] {};

 private:
  std::multimap<Instant, std::function<void()>> events_;
};

// A network between a process and the API server: requests and answers take their time, are lost,
// or arrive when nobody waits for them any more.
class SlowClient final : public ApiClient {
 public:
  SlowClient(World& world, ApiClient& server) : world_(world), server_(server) {}

  Result<ApiResponse> Send(const ApiRequest& request) override {
    const Duration there = Delay(), back = Delay();
    if (there > request.timeout) {
      world_.In(there, [this, request] { (void)server_.Send(request); });
    }
    if (there + back > request.timeout) {
      if (there <= request.timeout) {
        world_.Run(there);
        (void)server_.Send(request);
        world_.Run(request.timeout - there);
      } else {
        world_.Run(request.timeout);
      }
      return Fail(Errc::kUnavailable, "no answer");
    }
    world_.Run(there);
    auto response = server_.Send(request);
    world_.Run(back);
    return response;
  }
  Result<ApiResponse> Stream(const std::string&, Duration, const std::stop_token&,
                             const StreamSink&) override {
    return Fail(Errc::kUnavailable, "no streams here");
  }

 private:
  Duration Delay() {
    if (world_.OneIn(20)) return world_.Between(seconds(1), seconds(9));
    return world_.Between(milliseconds(0), milliseconds(200));
  }

  World& world_;
  ApiClient& server_;
};

// One process: it steps, writes while it may, and is asked to hand over now and then.
class Process {
 public:
  Process(World& world, ApiClient& server, std::string identity)
      : world_(world), client_(world, server), identity_(std::move(identity)) {
    Start();
  }

  [[nodiscard]] bool leads() const { return elector_->leading(); }
  [[nodiscard]] int writes() const { return writes_; }
  int terms = 0, releases = 0, kept = 0;

 private:
  void Start() {
    elector_ = std::make_shared<LeaderElector>(
        client_, world_.clock, LeaderElector::Options{"ns", "berth", identity_, kLease});
    ends_ = world_.clock.Now() + world_.Between(seconds(20), seconds(200));
    world_.In(world_.Between(milliseconds(0), seconds(3)), [this] { Step(); });
    world_.In(world_.Between(milliseconds(0), seconds(1)), [this, of = elector_] { Write(of); });
  }
  void Step() {
    if (world_.clock.Now() >= ends_) {
      const bool led = elector_->leading();
      const bool released = elector_->Release().has_value();
      if (led) ++(released ? releases : kept);
      // A pod that takes its place has another name.
      identity_ += "'";
      world_.In(world_.Between(milliseconds(0), seconds(5)), [this] { Start(); });
      return;
    }
    const bool led = elector_->leading();
    (void)elector_->Step();
    if (!led && elector_->leading()) ++terms;
    world_.In(elector_->RetryPeriod() + world_.Between(milliseconds(0), milliseconds(300)),
              [this] { Step(); });
  }
  // A Binding: on its way for as long as its request may take.
  void Write(const std::shared_ptr<LeaderElector>& of) {
    auto write = std::make_shared<FencedWrite>(*of);
    const Instant now = world_.clock.Now(), end = of->WritableUntil();
    if (now < end) {
      ++writes_;
      const Duration longest = world_.OneIn(8) ? seconds(10) : seconds(1);
      const Duration takes =
          std::min<Duration>(world_.Between(milliseconds(0), longest), end - now);
      world_.In(takes, [this, of, write]() mutable {
        --writes_;
        write.reset();
      });
    }
    if (of == elector_) {
      world_.In(world_.Between(milliseconds(10), seconds(4)), [this, of] { Write(of); });
    }
  }

  World& world_;
  SlowClient client_;
  std::string identity_;
  std::shared_ptr<LeaderElector> elector_;
  Instant ends_;
  int writes_ = 0;
};

struct Totals {
  int terms = 0, releases = 0, kept = 0;
  Duration led{}, overlap{};
};

void RunOnce(std::uint64_t seed, bool deletes, Totals& totals) {
  World world(seed);
  test::FakeApiServer server;
  Process a(world, server, "a"), b(world, server, "b");
  world.after_tick = [&] {
    const bool a_acts = a.leads() || a.writes() > 0, b_acts = b.leads() || b.writes() > 0;
    if (a_acts || b_acts) totals.led += kTick;
    if (a_acts && b_acts) totals.overlap += kTick;
  };
  const std::function<void()> remove = [&] {
    server.Delete(kLeases, "ns/berth");
    world.In(world.Between(seconds(30), seconds(120)), remove);
  };
  if (deletes) world.In(seconds(40), remove);
  world.Run(std::chrono::minutes(10));
  for (const Process* const process : {&a, &b}) {
    totals.terms += process->terms;
    totals.releases += process->releases;
    totals.kept += process->kept;
  }
}

TEST(LeaderOverlap, TwoNeverLeadOrWriteAtOnceWhateverTheirPhases) {
  Totals totals;
  for (std::uint64_t seed = 0; seed < 30; ++seed) RunOnce(seed, false, totals);
  EXPECT_EQ(totals.overlap, Duration::zero());
  EXPECT_GT(totals.terms, 150);
  EXPECT_GT(totals.releases, 15);
  EXPECT_GT(totals.kept, 15) << "a write was on its way";
  EXPECT_GT(totals.led, std::chrono::hours(2));
}

TEST(LeaderOverlap, NorWhenTheLeaseIsDeletedNowAndThen) {
  Totals totals;
  for (std::uint64_t seed = 1000; seed < 1030; ++seed) RunOnce(seed, true, totals);
  EXPECT_EQ(totals.overlap, Duration::zero());
  EXPECT_GT(totals.terms, 150);
  EXPECT_GT(totals.led, std::chrono::hours(1));
}

}  // namespace
}  // namespace berth::kube::leader_overlap_test
