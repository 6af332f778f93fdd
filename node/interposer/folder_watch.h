// SPDX-License-Identifier: Apache-2.0
//
// FolderWatch: waits until something is to be done: the kubelet has made its socket anew, a time
// has come, or Wake was called.
#pragma once

#include <cstdint>
#include <string>

#include "base/clock.h"

namespace berth::node {

// Wake: any thread. The others: one thread.
class FolderWatch {
 public:
  // Where the machine has no watches left it looks every second instead.
  explicit FolderWatch(const std::string& folder);
  ~FolderWatch();
  FolderWatch(const FolderWatch&) = delete;
  FolderWatch& operator=(const FolderWatch&) = delete;

  void Wait(Instant until);
  void Wake();

  // Whether another file is the kubelet's socket than at the last call that said so. False while
  // there is none.
  bool KubeletIsNew();
  [[nodiscard]] bool KubeletIsThere() const;

 private:
  struct Identity {
    std::uint64_t inode = 0;
    std::int64_t changed_ns = 0;
    bool operator==(const Identity&) const = default;
  };
  [[nodiscard]] Identity Look() const;

  const std::string socket_;
  const int changes_;  // inotify
  const int wakes_;    // eventfd
  bool watches_ = false;
  Identity last_;
};

}  // namespace berth::node
