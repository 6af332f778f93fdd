// SPDX-License-Identifier: Apache-2.0
//
// Verbs: one HTTP request for a verb -> decode, one call of the Extender, encode.
//
// What is wrong with the request is a 4xx; what is wrong with the pod travels in the verb's own
// error channel with status 200, because kube-scheduler does not read the body of anything else.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <thread>
#include <vector>

#include "base/mutex.h"
#include "server/extender/extender.h"
#include "server/http/http_message.h"
#include "server/service/second_look.h"
#include "server/telemetry/metrics.h"
#include "server/wire/pod/pod_rules.h"

namespace berth {

// WorkerPool: threads for work that blocks, so that the I/O threads never do. A job goes to the
// thread that was busy last: few of many threads work, with what they have in their caches.
//
// Any thread may call it.

class WorkerPool {
 public:
  using Job = std::function<void()>;  // must not throw

  // Requires: threads > 0. Throws what std::thread throws.
  WorkerPool(int threads, std::size_t max_waiting);
  // Runs the jobs that wait, then ends.
  ~WorkerPool();

  // False when max_waiting jobs wait already: the job is dropped.
  [[nodiscard]] bool Submit(Job job) BERTH_EXCLUDES(mutex_);

 private:
  struct Worker {
    CondVar called;
    bool is_idle = false;
  };
  void Run(Worker& worker) BERTH_EXCLUDES(mutex_);

  const std::size_t max_waiting_;
  Mutex mutex_;
  std::deque<Worker> workers_ BERTH_GUARDED_BY(mutex_);  // each for one of threads_
  std::vector<Worker*> idle_ BERTH_GUARDED_BY(mutex_);   // the one that was busy last is the last
  std::deque<Job> waiting_ BERTH_GUARDED_BY(mutex_);
  bool ending_ BERTH_GUARDED_BY(mutex_) = false;
  std::vector<std::thread> threads_;
};

// The pool as a port: runs a job there, or returns false if the pool is full. An exception of a
// job, such as bad_alloc, ends that job alone. The pool outlives the port.
std::function<bool(WorkerPool::Job)> InBackground(WorkerPool& pool);

namespace wire {
struct ExtenderArgs;
}

// Any thread may call it.
class Verbs {
 public:
  // References: they outlive the object.
  Verbs(Extender& extender, const wire::PodRules& rules, Metrics& metrics)
      : extender_(extender), rules_(rules), metrics_(metrics) {}

  // Filters of pods with ResourceClaims that fit somewhere ask the allocator, on the pool. To be
  // called before there are requests; both outlive the object.
  void AllocateClaims(ClaimAllocator& allocator, WorkerPool& pool) {
    allocator_ = &allocator;
    pool_ = &pool;
  }

  // Filters that find no node for a pod get a second look. To be called before there are requests;
  // the object may end when no filter is under way any more.
  void LookTwice(SecondLook& second_look) { second_look_ = &second_look; }

  http::HttpResponse Filter(http::HttpRequest& request);
  http::HttpResponse Prioritize(http::HttpRequest& request);
  http::HttpResponse Preempt(http::HttpRequest& request);
  // The answer comes when the bind is carried out (Extender::BindOn says where).
  http::HttpResponse Bind(http::HttpRequest& request);

 private:
  // Answers and counts.
  struct Answer {
    CallResult result = CallResult::kOk;
    http::HttpResponse response;
  };
  template <class Handle>
  http::HttpResponse Timed(Verb verb, const http::HttpRequest& request, Handle handle);
  static Answer Malformed(const Error& error);

  // What came of one look.
  struct Look {
    Answer answer;
    bool may_change = false;                     // "no", and a newer state may say something else
    bool for_evicted = false;                    // it will: room is being made for the pod
    bool gang_wakes = false;                     // FilterAnswer has it
    std::optional<std::uint64_t> kept_out = {};  // and this
    std::optional<PodId> pod = {};               // empty: Berth does not place it
    std::shared_ptr<const Snapshot> snapshot = nullptr;
  };
  Answer AnswerFilter(http::HttpRequest& request);
  // began: the request.
  Look LookOnce(PaddedText& body, Instant began, bool is_first);
  // For a pod that asks for GPUs by the name of a resource.
  void TellByName(const Snapshot& snapshot, const wire::ExtenderArgs& args,
                  const FilterAnswer& filtered) const;
  http::HttpResponse HeldBack(PaddedText body, Look look, Instant began);
  void Note(const Look& look);  // what became of the pod
  void Conclude(Look& look, const http::Reply& reply, Instant began);
  struct ClaimingPod;
  struct ClaimingGang;
  http::HttpResponse AfterAllocation(const std::shared_ptr<const ClaimingPod>& pod,
                                     Instant began) const;
  http::HttpResponse AfterAllocation(const std::shared_ptr<const ClaimingGang>& gang,
                                     Instant began) const;
  Answer AnswerPrioritize(PaddedText& body);
  Answer AnswerPreempt(PaddedText& body);
  Answer AnswerBind(http::HttpRequest& request);

  Extender& extender_;
  const wire::PodRules& rules_;
  Metrics& metrics_;
  ClaimAllocator* allocator_ = nullptr;
  WorkerPool* pool_ = nullptr;
  SecondLook* second_look_ = nullptr;
};

}  // namespace berth
