// SPDX-License-Identifier: Apache-2.0
//
// BindsUnderWay: carries binds out, at most one of a pod at a time, as jobs where there are jobs. A
// second bind of the pod to the same node stands in line until the first has ended; one to another
// node is refused. A bind in line is an entry here and holds no thread. One that is held (by its
// gang) is under way until Release or Answer.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "base/clock.h"
#include "base/mutex.h"
#include "base/result.h"
#include "server/extender/ports/ports.h"

namespace berth {

struct BindRequest {
  std::string namespace_name;
  std::string pod_name;
  std::string uid;
  std::string node;
  std::optional<Instant> asked =
      {};  // when the request came; a bind that waits too long is refused
};

// What is said where too many binds wait already.
inline constexpr std::string_view kTooManyBinds = "too many binds under way";

// Called once with what became of the bind, on any thread; destroyed without a call where memory
// ends.
using BindDone = std::function<void(Status)>;

// Any thread may call any function but RunOn. Every bind that begins is answered once.
class BindsUnderWay {
 public:
  struct Bind {
    BindRequest request;  // with a UID
    BindDone done;
    // Whether the client still waits for the answer, if known; none: it does.
    std::function<bool()> waits = {};
  };
  using Entry = std::shared_ptr<const Bind>;
  // Whether a bind still has to ask the pod's gang, or has been released by it.
  enum class Turn { kAsksGang, kReleased };
  // What becomes of the bind. Nothing: it is held, and may be answered by now.
  using BindOnce = std::function<std::optional<Status>(const Entry& bind, Turn)>;

  static constexpr std::size_t kMostInLine = 10'000;  // of all pods together

  explicit BindsUnderWay(BindOnce once) : once_(std::move(once)) {}

  // Where binds are carried out; without that, on the thread that calls Begin. Before all others.
  void RunOn(Jobs jobs) { jobs_ = std::move(jobs); }

  // Carries it out, or has it stand in line. False: too many wait, and it is not answered.
  [[nodiscard]] bool Begin(const Entry& bind) BERTH_EXCLUDES(mutex_);
  // Carries out a bind that was held.
  void Release(const Entry& bind);
  // Ends a bind that was held.
  void Answer(const Entry& bind, Status bound);
  // Calls it while binds of the pod stand in line, which go on also where it throws. False: a bind
  // of the pod is under way, and nothing is called.
  bool BetweenBinds(const std::string& uid, const std::function<void()>& ask)
      BERTH_EXCLUDES(mutex_);

 private:
  struct OfPod {
    std::string node;  // "": the cluster is being asked about the pod
    std::deque<Entry> line;
  };

  // What is under way for the pod has ended. Returns the bind that stands first in line, which is
  // under way from now on; nullptr: none does.
  Entry End(const std::string& uid) BERTH_EXCLUDES(mutex_);
  // Carries the bind out, answers it, and goes on with those that stand in line behind it.
  void CarryOut(Entry bind, Turn turn = Turn::kAsksGang);
  // Has it carried out as a job; false: there is no room, or there are no jobs.
  bool Post(const Entry& bind, Turn turn = Turn::kAsksGang);
  // The bind whose turn it is, if there is one: as a job, else here.
  void GoOnWith(const Entry& next);

  const BindOnce once_;
  Jobs jobs_;
  Mutex mutex_;
  std::unordered_map<std::string, OfPod> by_uid_ BERTH_GUARDED_BY(mutex_);
  std::size_t in_line_ BERTH_GUARDED_BY(mutex_) = 0;
};

}  // namespace berth
