// SPDX-License-Identifier: Apache-2.0
#include "node/pods/own_pods.h"

#include <utility>

namespace berth::node {
namespace {

std::string KeyOf(const OwnPod& pod) { return pod.namespace_name + "/" + pod.name; }

}  // namespace

OwnPods::OwnPods(std::string node, std::function<void()> on_change)
    : node_(std::move(node)), on_change_(std::move(on_change)) {}

void OwnPods::ListBegins() { listed_.clear(); }

void OwnPods::Listed(const PaddedText& object) { Put(object, false); }

void OwnPods::ListEnds() {
  {
    const MutexLock lock(mutex_);
    std::erase_if(pods_, [this](const auto& entry) { return !listed_.contains(entry.first); });
    synced_ = true;
  }
  listed_.clear();
  Told();
}

void OwnPods::Changed(const PaddedText& object) {
  Put(object, true);
  listed_.clear();
  Told();
}

void OwnPods::Deleted(const PaddedText& object) {
  const Result<OwnPod> pod = ParseOwnPod(object.view(), node_);
  if (!pod) return;
  {
    const MutexLock lock(mutex_);
    pods_.erase(KeyOf(*pod));
  }
  Told();
}

void OwnPods::Put(const PaddedText& object, bool news) {
  Result<OwnPod> pod = ParseOwnPod(object.view(), node_);
  if (!pod) return;
  std::string key = KeyOf(*pod);
  const MutexLock lock(mutex_);
  if (pods_.size() >= kMostPods && !pods_.contains(key)) return;
  listed_.insert(key);
  OwnPodPtr& place = pods_[std::move(key)];
  if (place && place->uid == pod->uid) {
    pod->bound = place->bound;
  } else if (news) {
    pod->bound = Instant::clock::now();
  }
  place = std::make_shared<const OwnPod>(*std::move(pod));
}

void OwnPods::Told() {
  {
    const MutexLock lock(mutex_);
    ++version_;
    failed_until_ = {};
    changed_.NotifyAll();
  }
  if (on_change_) on_change_();
}

void OwnPods::Failed(Instant until) {
  const MutexLock lock(mutex_);
  failed_until_ = until;
}

OwnPods::Pods OwnPods::All() const {
  const MutexLock lock(mutex_);
  return pods_;
}

bool OwnPods::Live() const {
  const MutexLock lock(mutex_);
  return synced_ && Instant::clock::now() >= failed_until_;
}

bool OwnPods::NewsExpected() const {
  const Instant now = Instant::clock::now();
  const MutexLock lock(mutex_);
  return now >= failed_until_ && (synced_ || now < made_ + kFirstList);
}

std::uint64_t OwnPods::Version() const {
  const MutexLock lock(mutex_);
  return version_;
}

void OwnPods::WaitForChange(std::uint64_t version, Instant until) const {
  const MutexLock lock(mutex_);
  while (version_ == version && Instant::clock::now() < until) {
    changed_.WaitUntil(mutex_, until);
  }
}

}  // namespace berth::node
