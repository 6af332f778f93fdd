// SPDX-License-Identifier: Apache-2.0
//
// OpenClaims: the ResourceClaims that the watch shows: what those without devices ask for, and
// where the devices of the others are. Claims of one template share what they ask for.
//
// Requests to the API server know more than the watch, which is late: an allocation that was there
// before such an answer (Outdate) counts no more when the watch comes to show it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "cluster/claims/device_claim.h"

namespace berth {

struct KnownClaim {
  std::int64_t version = 0;  // the object's; 0 = it was not said
  bool allocated = false;
  std::string node = {};  // allocated: of its devices; "" = not known
  // The UID of the pod for whose extended resources kube-scheduler made and allocated it; "" = it
  // is another one.
  std::string made_for = {};
  // nullptr: it is allocated, or kube-scheduler's to allocate, or there was no room to keep it.
  std::shared_ptr<const DeviceClaim> asks = nullptr;
};

// Any thread may call any function.
class OpenClaims {
 public:
  // About what is kept of what claims ask for, each content counted once. Of those beyond it
  // nothing is kept but that they are there.
  static constexpr std::size_t kMostBytes = std::size_t{32} << 20;

  // Claims whose newest state the watch has yet to show. Of those beyond it, what the watch shows
  // counts though it may be old.
  static constexpr std::size_t kMostAwaited = 4096;

  explicit OpenClaims(std::size_t most_bytes = kMostBytes) : most_bytes_(most_bytes) {}

  using Shown = std::vector<std::pair<std::string, KnownClaim>>;  // by "namespace/name"

  // Adds them, or replaces those of that name. replace_all: there are no others.
  void Put(Shown claims, bool replace_all) BERTH_EXCLUDES(mutex_);
  void Remove(const std::string& claim) BERTH_EXCLUDES(mutex_);

  // Something newer than what was before this version of the claim is known: older ones, shown or
  // to be shown, have no devices.
  void Outdate(const std::string& claim, std::int64_t version) BERTH_EXCLUDES(mutex_);

  // The newest that the watch has shown of it; nullopt: never, or it is gone.
  [[nodiscard]] std::optional<KnownClaim> Find(const std::string& claim) const
      BERTH_EXCLUDES(mutex_);
  // Whether kube-scheduler has made a claim for what the pod asks for by the name of a resource:
  // one in its namespace says so. pod: "namespace/UID".
  [[nodiscard]] bool IsMadeFor(const std::string& pod) const BERTH_EXCLUDES(mutex_);
  [[nodiscard]] std::size_t bytes() const BERTH_EXCLUDES(mutex_);

 private:
  struct Content {
    std::shared_ptr<const DeviceClaim> asks;
    std::size_t claims = 0;
    std::size_t bytes = 0;
  };
  using Contents = std::list<Content>;
  struct Entry {
    KnownClaim known;
    Contents::iterator content;  // end: it keeps none
  };

  void Drop(const std::string& claim) BERTH_REQUIRES(mutex_);
  // Of what the watch shows now.
  void Judge(const std::string& claim, KnownClaim& known) BERTH_REQUIRES(mutex_);
  // Of that content, a known one if it is among the newest; end: there is no room for it.
  Contents::iterator Keep(std::shared_ptr<const DeviceClaim> asks) BERTH_REQUIRES(mutex_);

  const std::size_t most_bytes_;
  mutable Mutex mutex_;
  std::map<std::string, Entry> claims_ BERTH_GUARDED_BY(mutex_);
  // The oldest version that counts, of claims that the watch has yet to show as new as that.
  std::map<std::string, std::int64_t> awaited_ BERTH_GUARDED_BY(mutex_);
  Contents contents_ BERTH_GUARDED_BY(mutex_);  // the newest first
  // So many claims, by "namespace/UID".
  std::map<std::string, int> made_for_ BERTH_GUARDED_BY(mutex_);
  std::size_t bytes_ BERTH_GUARDED_BY(mutex_) = 0;
};

}  // namespace berth
