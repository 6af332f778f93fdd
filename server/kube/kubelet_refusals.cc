// SPDX-License-Identifier: Apache-2.0
#include "server/kube/kubelet_refusals.h"

#include <algorithm>
#include <memory>
#include <span>
#include <utility>

namespace berth::kube {

void KubeletRefusals::Vanished(PodId pod, std::string node) {
  const MutexLock lock(mutex_);
  lost_.push_back({std::move(pod), std::move(node)});
  if (lost_.size() > kMostWaiting) lost_.pop_front();
}

void KubeletRefusals::Runs(const std::string& node) {
  const MutexLock lock(mutex_);
  run_.insert(node);
}

void KubeletRefusals::BeginAnew() {
  const MutexLock lock(mutex_);
  lost_.clear();
  run_.clear();
  begins_anew_ = true;
}

KubeletRefusals::Stats KubeletRefusals::stats() const {
  const MutexLock lock(mutex_);
  return stats_;
}

void KubeletRefusals::Look() {
  std::vector<Lost> lost;
  std::set<std::string> run;
  bool begins_anew = false;
  {
    const MutexLock lock(mutex_);
    begins_anew = std::exchange(begins_anew_, false);
    run.swap(run_);
    const auto some = static_cast<std::ptrdiff_t>(std::min(lost_.size(), kPerLook));
    lost.assign(std::make_move_iterator(lost_.begin()),
                std::make_move_iterator(lost_.begin() + some));
    lost_.erase(lost_.begin(), lost_.begin() + some);
  }
  if (begins_anew) ForgetAll();
  for (const std::string& node : run) {
    const auto trouble = trouble_.find(node);
    if (trouble == trouble_.end()) continue;
    if (trouble->second.closings > 0) {
      parts_.log(false, "node_takes_pods", "node " + node + ": a pod with GPUs runs there again");
    }
    Close(node, false);
    trouble_.erase(trouble);
  }
  const Instant now = parts_.clock.Now();
  AskAbout(lost, now);
  Reopen(now);
  const auto closed = std::ranges::count_if(
      trouble_, [](const auto& entry) { return entry.second.closed_until.has_value(); });
  const MutexLock lock(mutex_);
  stats_.closed = static_cast<std::size_t>(closed);
}

void KubeletRefusals::AskAbout(const std::vector<Lost>& lost, Instant now) {
  for (auto one = lost.begin(); one != lost.end(); ++one) {
    const std::optional<std::string> words = parts_.why_not_admitted(one->pod);
    if (!words) {  // the others would wait as long, and what comes after this look with them
      const MutexLock lock(mutex_);
      lost_.insert(lost_.begin(), one, lost.end());
      return;
    }
    if (!words->empty()) Refused(*one, *words, now);
  }
}

std::optional<KubeletRefusals::Facts> KubeletRefusals::FactsOf(const std::string& node) const {
  const std::shared_ptr<const Snapshot> snapshot = parts_.state.Current();
  const NodeIndex index = snapshot->names().Find(node);
  if (index == kNoNode) return std::nullopt;
  const Node& found = snapshot->node(index);
  return Facts{found.gpus().size(), found.healthy_gpus(),
               found.spec().places.count - found.spec().missing, found.spec().ready};
}

void KubeletRefusals::Refused(const Lost& lost, const std::string& words, Instant now) {
  {
    const MutexLock lock(mutex_);
    ++stats_.refused;
  }
  const std::optional<Facts> facts = FactsOf(lost.node);
  if (!facts) return;
  Trouble& trouble = trouble_[lost.node];
  trouble.facts = *facts;
  ++trouble.refusals;
  std::string text = "node " + lost.node + ": its kubelet refused pod " + lost.pod.full_name() +
                     " (" + words + ")";
  if (trouble.refusals >= kToClose && !trouble.closed_until) {
    const Duration pause = kClosedFor[std::min(trouble.closings++, kClosedFor.size() - 1)];
    trouble.closed_until = now + pause;
    Close(lost.node, true);
    const auto minutes = std::chrono::duration_cast<std::chrono::minutes>(pause).count();
    text += ", " + std::to_string(trouble.refusals) +
            " in a row: no pod with GPUs is bound there for " + std::to_string(minutes) +
            " minutes";
  }
  parts_.log(true, "pod_not_admitted", text);
}

void KubeletRefusals::Reopen(Instant now) {
  for (auto entry = trouble_.begin(); entry != trouble_.end();) {
    auto& [node, trouble] = *entry;
    const std::optional<Facts> facts = FactsOf(node);
    // Closed here and open there: it went, and another one came under its name.
    const bool is_another = facts != trouble.facts || (trouble.closed_until && !IsClosed(node));
    if (trouble.closed_until && (is_another || now >= *trouble.closed_until)) {
      parts_.log(false, "node_is_tried",
                 "node " + node + ": pods with GPUs are bound there again" +
                     (is_another ? ", it has changed" : ""));
      trouble.closed_until.reset();
      Close(node, false);
    }
    entry = is_another ? trouble_.erase(entry) : std::next(entry);
  }
}

void KubeletRefusals::ForgetAll() {
  for (const auto& [node, trouble] : trouble_) {
    if (trouble.closed_until) Close(node, false);
  }
  trouble_.clear();
}

bool KubeletRefusals::IsClosed(const std::string& node) const {
  const std::shared_ptr<const Snapshot> snapshot = parts_.state.Current();
  const NodeIndex index = snapshot->names().Find(node);
  return index != kNoNode && snapshot->node(index).spec().refuses_gpu_pods;
}

void KubeletRefusals::Close(const std::string& node, bool closed) {
  const ClusterEvent event = GpuPodsRefused{node, closed};
  (void)parts_.state.Apply(std::span(&event, 1));  // has no spec: cannot fail
}

}  // namespace berth::kube
