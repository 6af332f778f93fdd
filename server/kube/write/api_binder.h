// SPDX-License-Identifier: Apache-2.0
//
// ApiBinder: binds pods through the API server - one Binding that carries the pod's UID and the
// grants as annotations, so that node and devices are written in one atomic step.
//
// A Binding that the API server refuses for now (429, 5xx, no answer) is sent again until the
// deadline. That is safe: a Binding that was carried out before is answered 409.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "base/result.h"
#include "cluster/state/cluster_event.h"
#include "server/extender/ports/ports.h"
#include "server/kube/lead/write_journal.h"
#include "server/wire/node/node_json.h"
#include "server/wire/pod/pod_rules.h"

namespace berth::kube {

// What the API server has of the pod; errors as PodBinder::Find has them.
Result<PodTruth> FindPod(ApiClient& client, const wire::PodRules& rules, const PodId& id);

// Any thread may call it.
class ApiBinder final : public PodBinder {
 public:
  // Does what agents need before and after the Binding, and calls `bind` at most once in between.
  using Surround =
      std::function<Status(const BindOrder& order, const std::function<Status()>& bind)>;

  // References: they outlive the binder.
  struct Parts {
    WriteContext write;
    const wire::PodRules& rules;
    Surround surround = {};
  };

  explicit ApiBinder(Parts parts) : parts_(std::move(parts)) {}

  Status Bind(const BindOrder& order) override;
  Result<PodTruth> Find(const PodId& id) override;

  struct Stats {
    std::uint64_t retries = 0;
    std::uint64_t in_doubt = 0;  // binds that ended with kUnavailable
  };
  [[nodiscard]] Stats stats() const { return {retries_.load(), in_doubt_.load()}; }

 private:
  Status Post(const BindOrder& order);
  // maybe_done: set when the attempt may have been carried out although it failed.
  Attempt TryOnce(const ApiRequest& request, bool& maybe_done);

  const Parts parts_;
  std::atomic<std::uint64_t> retries_{0};
  std::atomic<std::uint64_t> in_doubt_{0};
};

// The note of a bind on its way (server/kube/lead/write_journal.h): a file of the cluster
// (server/wire/file/cluster_file.h) that has this pod alone.

// Never empty. Of a pod that gets no devices it says only that.
std::string NoteOfBind(const BindOrder& order);

// The pod with its devices; nullopt: it gets none. Error: kInvalidArgument, it is no such note.
Result<std::optional<PodBound>> BindOfNote(const std::string& note, const wire::NodeRules& rules);

}  // namespace berth::kube
