// SPDX-License-Identifier: Apache-2.0
#include "server/extender/binds/binds_under_way.h"

#include <exception>

#include "base/cleanup.h"

namespace berth {
namespace {

// Where memory ends the answer is lost, and the client learns that by `done` being gone.
void Tell(const BindsUnderWay::Bind& bind, Status bound) {
  try {
    bind.done(std::move(bound));
  } catch (...) {
  }
}

}  // namespace

bool BindsUnderWay::Begin(const Entry& bind) {
  const BindRequest& request = bind->request;
  std::string elsewhere;
  {
    const MutexLock lock(mutex_);
    const auto [entry, is_new] = by_uid_.try_emplace(request.uid, OfPod{request.node, {}});
    OfPod& pod = entry->second;
    if (!is_new && !pod.node.empty() && pod.node != request.node) {
      elsewhere = pod.node;
    } else if (!is_new) {
      if (in_line_ >= kMostInLine) return false;
      pod.line.push_back(bind);
      ++in_line_;
      return true;
    }
  }
  if (!elsewhere.empty()) {
    bind->done(Fail(Errc::kConflict, "pod is being bound to node " + elsewhere));
    return true;
  }
  if (!jobs_) {
    CarryOut(bind);
    return true;
  }
  if (Post(bind)) return true;
  // Nor is there room for those that stand in line by now, and this thread may not block.
  while (const auto next = End(bind->request.uid)) {
    Tell(*next, Fail(Errc::kDeadline, std::string(kTooManyBinds)));
  }
  return false;
}

bool BindsUnderWay::Post(const Entry& bind, Turn turn) {
  try {
    return jobs_ && jobs_([this, bind, turn] { CarryOut(bind, turn); });
  } catch (const std::exception&) {  // out of memory
    return false;
  }
}

void BindsUnderWay::Release(const Entry& bind) {
  if (!Post(bind, Turn::kReleased)) CarryOut(bind, Turn::kReleased);
}

void BindsUnderWay::GoOnWith(const Entry& next) {
  if (next != nullptr && !Post(next)) CarryOut(next);
}

void BindsUnderWay::Answer(const Entry& bind, Status bound) {
  const Entry next = End(bind->request.uid);
  Tell(*bind, std::move(bound));
  GoOnWith(next);
}

void BindsUnderWay::CarryOut(Entry bind, Turn turn) {
  while (bind != nullptr) {
    std::optional<Status> bound;
    try {
      bound = once_(bind, std::exchange(turn, Turn::kAsksGang));
      if (!bound) return;  // held: it is still under way
    } catch (...) {        // the others in line are carried out
    }
    // Before the answer: the client may ask for the next bind of the pod at once.
    Entry next = End(bind->request.uid);
    if (bound) Tell(*bind, *std::move(bound));
    bind = next != nullptr && Post(next) ? nullptr : std::move(next);
  }
}

bool BindsUnderWay::BetweenBinds(const std::string& uid, const std::function<void()>& ask) {
  {
    const MutexLock lock(mutex_);
    if (!by_uid_.try_emplace(uid).second) return false;
  }
  // Also where it throws: with an entry that stayed every later bind of the pod waits.
  const Cleanup end([&] { GoOnWith(End(uid)); });
  ask();
  return true;
}

BindsUnderWay::Entry BindsUnderWay::End(const std::string& uid) {
  const MutexLock lock(mutex_);
  const auto entry = by_uid_.find(uid);
  OfPod& pod = entry->second;
  if (pod.line.empty()) {
    by_uid_.erase(entry);
    return nullptr;
  }
  Entry next = std::move(pod.line.front());
  pod.line.pop_front();
  --in_line_;
  pod.node = next->request.node;
  return next;
}

}  // namespace berth
