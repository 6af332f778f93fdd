// SPDX-License-Identifier: Apache-2.0
//
// TokenSource: the bearer token of the moment. Kubernetes replaces the token file of a pod long
// before the token in it expires; it is looked at once per second at most.
#pragma once

#include <string>

#include "base/clock.h"
#include "base/mutex.h"

namespace berth::kube {

// Any thread may call it.
class TokenSource {
 public:
  // An empty file name: always `token`. Else what the file holds; while it cannot be read or is
  // empty, what it held last, at first `token`.
  TokenSource(std::string token, std::string file);

  // "" = there is none.
  [[nodiscard]] std::string Current() BERTH_EXCLUDES(mutex_);

  // After the server refused `used`: the file is read now. Whether there is another token to try.
  bool RenewedAfter(const std::string& used) BERTH_EXCLUDES(mutex_);

 private:
  void Read() BERTH_REQUIRES(mutex_);

  const std::string file_;
  Mutex mutex_;
  std::string token_ BERTH_GUARDED_BY(mutex_);
  Instant next_read_ BERTH_GUARDED_BY(mutex_){};
};

}  // namespace berth::kube
