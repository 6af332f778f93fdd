// SPDX-License-Identifier: Apache-2.0
#include "server/service/verbs.h"

#include <exception>
#include <utility>

#include "scoring/admission.h"
#include "server/wire/extender/extender_v1.h"

namespace berth {
namespace {

http::HttpResponse Json(std::string body) {
  http::HttpResponse response;
  response.body = std::move(body);
  return response;
}

constexpr std::string_view kNoPod = "Pod: want a pod, got none";
constexpr std::size_t kMostHeldBytes = 1 << 20;  // of a request whose answer is held back
constexpr std::string_view kAllocated =
    "a device was allocated to the pod's claim, which fixes the node";
constexpr std::string_view kNotAllocated =
    "devices for the claims of the pod's gang could not be allocated";

}  // namespace

WorkerPool::WorkerPool(int threads, std::size_t max_waiting) : max_waiting_(max_waiting) {
  {
    const MutexLock lock(mutex_);
    idle_.reserve(static_cast<std::size_t>(threads));
  }
  for (int i = 0; i < threads; ++i) {
    const MutexLock lock(mutex_);
    Worker& worker = workers_.emplace_back();
    threads_.emplace_back([this, &worker] { Run(worker); });
  }
}

WorkerPool::~WorkerPool() {
  {
    const MutexLock lock(mutex_);
    ending_ = true;
    for (Worker& worker : workers_) worker.called.NotifyOne();
  }
  for (std::thread& thread : threads_) thread.join();
}

bool WorkerPool::Submit(Job job) {
  Worker* worker = nullptr;
  {
    const MutexLock lock(mutex_);
    if (waiting_.size() >= max_waiting_) return false;
    waiting_.push_back(std::move(job));
    if (idle_.empty()) return true;
    worker = idle_.back();
    idle_.pop_back();
    worker->is_idle = false;
  }
  worker->called.NotifyOne();
  return true;
}

void WorkerPool::Run(Worker& worker) {
  while (true) {
    Job job;
    {
      const MutexLock lock(mutex_);
      while (waiting_.empty() && !ending_) {
        if (!worker.is_idle) idle_.push_back(&worker);
        worker.is_idle = true;
        worker.called.Wait(mutex_);
      }
      // Woken for nothing, by chance, and there is a job all the same.
      if (std::exchange(worker.is_idle, false)) std::erase(idle_, &worker);
      if (waiting_.empty()) return;
      job = std::move(waiting_.front());
      waiting_.pop_front();
    }
    try {
      job();
    } catch (const std::exception&) {  // out of memory: it costs the job
    }
  }
}

std::function<bool(WorkerPool::Job)> InBackground(WorkerPool& pool) {
  return [&pool](WorkerPool::Job job) {
    return pool.Submit([job = std::move(job)] {
      try {
        job();
      } catch (...) {  // the caller tries again when it needs the result
      }
    });
  };
}

// A pod for whose claims a device may be allocated, and both answers to its filter.
struct Verbs::ClaimingPod {
  PodId id;
  std::vector<std::string> claims;
  std::vector<std::string> nodes;  // that fit
  ClaimWishes wishes;
  std::string fits;
  std::string nowhere;
};

// The same for a pod whose gang gets devices together.
struct Verbs::ClaimingGang {
  GangId gang;
  std::vector<ClaimOrder> orders;
  std::string allocated;  // the answer then
  std::string nowhere;
};

Verbs::Answer Verbs::Malformed(const Error& error) {
  return {CallResult::kBadRequest, http::ErrorResponse(400, error.message)};
}

template <class Handle>
http::HttpResponse Verbs::Timed(Verb verb, const http::HttpRequest& request, Handle handle) {
  metrics_.ObserveArrival(verb, std::chrono::steady_clock::now() - request.began);
  Answer answer = handle();
  wire::ReleaseDecoder();
  if (answer.response.later) return std::move(answer.response);  // counted when it is there
  metrics_.CountCall(verb, answer.result, std::chrono::steady_clock::now() - request.began);
  return std::move(answer.response);
}

http::HttpResponse Verbs::Filter(http::HttpRequest& request) {
  return Timed(Verb::kFilter, request, [&] { return AnswerFilter(request); });
}

http::HttpResponse Verbs::Prioritize(http::HttpRequest& request) {
  return Timed(Verb::kPrioritize, request, [&] { return AnswerPrioritize(request.body); });
}

http::HttpResponse Verbs::Preempt(http::HttpRequest& request) {
  return Timed(Verb::kPreempt, request, [&] { return AnswerPreempt(request.body); });
}

http::HttpResponse Verbs::Bind(http::HttpRequest& request) {
  return Timed(Verb::kBind, request, [&] { return AnswerBind(request); });
}

Verbs::Answer Verbs::AnswerFilter(http::HttpRequest& request) {
  Look look = LookOnce(request.body, request.began, true);
  if (second_look_ != nullptr && look.may_change && request.body.size() <= kMostHeldBytes) {
    return {CallResult::kRefused,
            HeldBack(std::move(request.body), std::move(look), request.began)};
  }
  Note(look);
  return std::move(look.answer);
}

http::HttpResponse Verbs::HeldBack(PaddedText body, Look look, Instant began) {
  struct HeldRequest {
    PaddedText body;
    Look look;
  };
  const auto question =
      std::make_shared<HeldRequest>(HeldRequest{std::move(body), std::move(look)});
  http::HttpResponse response;
  response.later = [this, question, began](const http::Reply& reply) {
    const auto look_again = [this, question, began, reply](bool is_last) {
      try {
        question->look = LookOnce(question->body, began, false);
        if (question->look.may_change && !is_last) return false;
        Conclude(question->look, reply, began);
      } catch (...) {  // the Reply that goes unanswered says 500
      }
      return true;
    };
    if (!second_look_->Hold(question->look.for_evicted, look_again)) {
      Conclude(question->look, reply, began);
    }
  };
  return response;
}

void Verbs::Note(const Look& look) {
  if (second_look_ == nullptr || !look.pod) return;
  if (look.answer.result == CallResult::kOk || look.gang_wakes) {
    second_look_->Found(*look.pod);
  } else if (auto pod = extender_.Remembered(*look.pod)) {
    second_look_->Refused(std::move(pod), look.snapshot, look.kept_out);
  }
}

void Verbs::Conclude(Look& look, const http::Reply& reply, Instant began) {
  Note(look);
  if (look.answer.response.later) return look.answer.response.later(reply);  // counted there
  metrics_.CountCall(Verb::kFilter, look.answer.result, std::chrono::steady_clock::now() - began);
  reply(std::move(look.answer.response));
}

Verbs::Look Verbs::LookOnce(PaddedText& body, Instant began, bool is_first) {
  const Extender::Moment now = extender_.Now();
  const std::shared_ptr<const Snapshot>& snapshot = now.snapshot;
  // A claim may be for us to allocate: then it matters which nodes there are.
  const auto leaves = [this, &now](const wire::ExtenderArgs& args) {
    return extender_.FitsAnywhere(now, *args.pod) &&
           (args.pod->claims.empty() || allocator_ == nullptr);
  };
  const auto args = wire::DecodeExtenderArgs(body, rules_, snapshot->names(), leaves);
  if (!args) return {Malformed(args.error())};
  if (!args->pod) return {{CallResult::kRefused, Json(wire::EncodeFilterError(kNoPod))}};
  if (args->nodes_unread) {
    extender_.PassBy(now, *args->pod);
    return {{CallResult::kOk, Json(wire::EncodeFilterAll(*args))}};
  }
  const FilterAnswer filtered =
      extender_.Filter(now, *args->pod, args->known, !args->unknown.empty(), !is_first);
  std::string answer = wire::EncodeFilterResult(*args, snapshot->names(), filtered);
  Look look{.answer = {},
            .may_change = filtered.may_change,
            .for_evicted = filtered.for_evicted,
            .gang_wakes = filtered.gang_wakes,
            .kept_out = filtered.kept_out,
            .pod = args->pod->id,
            .snapshot = snapshot};
  if (allocator_ != nullptr) TellByName(*snapshot, *args, filtered);
  if (!filtered.fits) {
    look.answer = {CallResult::kRefused, Json(std::move(answer))};
    return look;
  }
  if (allocator_ != nullptr && !filtered.allocate.empty()) {
    auto gang = std::make_shared<ClaimingGang>(ClaimingGang{
        args->pod->gang.id, filtered.allocate,
        filtered.goes_on ? std::move(answer)
                         : wire::EncodeFilterNowhere(*args, snapshot->names(), kAllocated),
        wire::EncodeFilterNowhere(*args, snapshot->names(), kNotAllocated)});
    look.answer = {CallResult::kOk, AfterAllocation(gang, began)};
    return look;
  }
  if (args->pod->claims.empty() || allocator_ == nullptr) {
    look.answer = {CallResult::kOk, Json(std::move(answer))};
    return look;
  }
  auto pod = std::make_shared<ClaimingPod>(
      ClaimingPod{args->pod->id,
                  args->pod->claims,
                  {},
                  {args->pod->shape, {}},
                  std::move(answer),
                  wire::EncodeFilterNowhere(*args, snapshot->names(), kAllocated)});
  std::vector<NodeIndex> fitting;
  for (std::size_t i = 0; i < filtered.reasons.size(); ++i) {
    if (filtered.reasons[i] != Reason::kFits) continue;
    fitting.push_back(args->known[i]);
    pod->nodes.emplace_back(snapshot->names().name(args->known[i]));
  }
  pod->wishes.priorities = [now, fitting = std::move(fitting)](const RequestShape& shape) {
    return now.policy->engine->Prioritize(now.snapshot, shape, fitting);
  };
  look.answer = {CallResult::kOk, AfterAllocation(pod, began)};
  return look;
}

void Verbs::TellByName(const Snapshot& snapshot, const wire::ExtenderArgs& args,
                       const FilterAnswer& filtered) const {
  const PodRequest& pod = *args.pod;
  if (pod.device_class.empty()) return;
  bool fits = false;
  for (std::size_t i = 0; i < filtered.reasons.size() && filtered.fits && !fits; ++i) {
    fits = filtered.reasons[i] == Reason::kFits && GivesByClaim(snapshot.node(args.known[i]), pod);
  }
  allocator_->ToldByName(pod.id, fits);
}

http::HttpResponse Verbs::AfterAllocation(const std::shared_ptr<const ClaimingPod>& pod,
                                          Instant began) const {
  const auto answer = [&metrics = metrics_, began, pod](const http::Reply& reply, bool allocated) {
    metrics.CountCall(Verb::kFilter, allocated ? CallResult::kRefused : CallResult::kOk,
                      std::chrono::steady_clock::now() - began);
    reply(Json(allocated ? pod->nowhere : pod->fits));
  };
  http::HttpResponse response;
  response.later = [&allocator = *allocator_, &pool = *pool_, pod,
                    answer](const http::Reply& reply) {
    allocator.Ask(pod->id, pod->claims);
    const bool taken = pool.Submit([&allocator, pod, answer, reply] {
      answer(reply, allocator.Allocate(pod->id, pod->claims, pod->nodes, pod->wishes));
    });
    if (taken) return;
    allocator.Leave(pod->id, pod->claims);
    answer(reply, false);
  };
  return response;
}

http::HttpResponse Verbs::AfterAllocation(const std::shared_ptr<const ClaimingGang>& gang,
                                          Instant began) const {
  http::HttpResponse response;
  response.later = [this, gang, began](const http::Reply& reply) {
    const auto answer = [this, gang, began, reply](bool allocated) {
      extender_.Allocated(gang->gang, allocated);
      metrics_.CountCall(Verb::kFilter, allocated ? CallResult::kOk : CallResult::kRefused,
                         std::chrono::steady_clock::now() - began);
      reply(Json(allocated ? gang->allocated : gang->nowhere));
    };
    const bool taken = pool_->Submit([&allocator = *allocator_, gang, began, answer] {
      bool allocated = false;
      try {
        allocated = allocator.AllocateTogether(gang->orders, began);
      } catch (...) {  // memory has run out
      }
      answer(allocated);
    });
    if (!taken) answer(false);
  };
  return response;
}

Verbs::Answer Verbs::AnswerPrioritize(PaddedText& body) {
  const Extender::Moment now = extender_.Now();
  const auto args = wire::DecodeExtenderArgs(body, rules_, now.snapshot->names());
  if (!args) return Malformed(args.error());
  if (!args->pod) return {CallResult::kRefused, Json("[]")};
  const auto priorities = extender_.Prioritize(now, *args->pod, args->known);
  return {CallResult::kOk,
          Json(wire::EncodeHostPriorityList(*args, now.snapshot->names(), priorities))};
}

Verbs::Answer Verbs::AnswerPreempt(PaddedText& body) {
  const auto args = wire::DecodePreemptionArgs(body, rules_);
  if (!args) return Malformed(args.error());
  const auto kept = extender_.Preempt(extender_.Now(), args->pod, args->nodes);
  return {kept.empty() ? CallResult::kRefused : CallResult::kOk,
          Json(wire::EncodePreemptionResult(kept))};
}

Verbs::Answer Verbs::AnswerBind(http::HttpRequest& http_request) {
  auto request = wire::DecodeBindingArgs(http_request.body);
  if (!request) return Malformed(request.error());
  request->asked = http_request.began;
  Answer answer;
  answer.response.later = [this, request = *std::move(request)](const http::Reply& reply) {
    const auto done = [this, began = *request.asked, reply](const Status& bound) {
      metrics_.CountCall(Verb::kBind, bound ? CallResult::kOk : CallResult::kRefused,
                         std::chrono::steady_clock::now() - began);
      reply(Json(wire::EncodeBindingResult(bound ? "" : bound.error().message)));
    };
    if (!extender_.Bind(request, done, [reply] { return reply.waits(); })) {
      reply(http::ErrorResponse(503, kTooManyBinds));
    }
  };
  return answer;
}

}  // namespace berth
