// SPDX-License-Identifier: Apache-2.0
//
// ApiNodeHolder: holds nodes by their annotations (wire/node/node_traits.h), with a thread of its
// own. Without the right to write them, that is reported once, and nodes are not held.
#pragma once

#include <functional>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "base/clock.h"
#include "base/mutex.h"
#include "server/extender/ports.h"
#include "server/kube/client/api_client.h"
#include "server/kube/lead/write_journal.h"
#include "server/kube/write/work_queue.h"
#include "server/wire/node/node_traits.h"

namespace berth::kube {

// Any thread may call it.
class ApiNodeHolder final : public NodeHolder {
 public:
  static constexpr std::size_t kMostWaiting = 64;
  // After the API server has refused one it is asked for nothing for so long.
  static constexpr Duration kAfterRefusal = std::chrono::minutes(10);

  // Called on the holder's thread, once for each kind of refusal.
  using OnProblem = std::function<void(const std::string& problem)>;

  // References: they outlive the holder.
  ApiNodeHolder(ApiClient& client, const Clock& clock, const WriteFence& fence,
                OnProblem on_problem);

  [[nodiscard]] std::set<std::string> Held() const override BERTH_EXCLUDES(mutex_);
  // None while another process leads.
  void Hold(const std::string& node, bool hold) override;
  // What the API server has of the node now.
  void Saw(const std::string& node, const wire::NodeHold& hold) BERTH_EXCLUDES(mutex_);

 private:
  using Order = std::pair<std::string, bool>;
  void Post(const Order& order) BERTH_EXCLUDES(mutex_);

  ApiClient& client_;
  const Clock& clock_;
  const WriteFence& fence_;
  const OnProblem on_problem_;
  std::string problem_;   // the kind of the last one that was reported; of the thread alone
  Instant not_before_{};  // the same
  mutable Mutex mutex_;
  std::map<std::string, wire::NodeHold> seen_ BERTH_GUARDED_BY(mutex_);  // none that are empty
  WorkQueue<Order> queue_;
};

}  // namespace berth::kube
