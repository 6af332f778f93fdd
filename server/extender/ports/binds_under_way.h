// SPDX-License-Identifier: Apache-2.0
//
// BindsUnderWay: at most one bind of a pod is carried out at a time. A second bind of the pod to
// the same node stands in line until the first has ended; one to another node is refused. A bind in
// line is an entry here and holds no thread.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>

#include "base/clock.h"
#include "base/mutex.h"
#include "base/result.h"

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

// Any thread may call it.
class BindsUnderWay {
 public:
  struct Bind {
    BindRequest request;  // with a UID
    BindDone done;
    // Whether the client still waits for the answer, if known; none: it does.
    std::function<bool()> waits = {};
  };
  using Entry = std::shared_ptr<const Bind>;

  static constexpr std::size_t kMostInLine = 10'000;  // of all pods together

  enum class Outcome {
    kBegins,     // it is under way from now on, until End
    kInLine,     // it is kept here until an End names it
    kElsewhere,  // the pod is being bound to another node, `node`
    kTooMany,    // too many stand in line
  };
  struct Begun {
    Outcome outcome = Outcome::kBegins;
    std::string node = {};
  };
  Begun Begin(const Entry& bind) BERTH_EXCLUDES(mutex_);

  // The cluster is being asked about the pod, until End: binds of the pod stand in line meanwhile.
  // False: one is under way.
  bool BeginToAsk(const std::string& uid) BERTH_EXCLUDES(mutex_);

  // What is under way for the pod has ended. Returns the bind that stands first in line, which is
  // under way from now on; nullptr: none does.
  Entry End(const std::string& uid) BERTH_EXCLUDES(mutex_);

 private:
  struct OfPod {
    std::string node;  // "": the cluster is being asked about the pod
    std::deque<Entry> line;
  };

  Mutex mutex_;
  std::unordered_map<std::string, OfPod> by_uid_ BERTH_GUARDED_BY(mutex_);
  std::size_t in_line_ BERTH_GUARDED_BY(mutex_) = 0;
};

}  // namespace berth
