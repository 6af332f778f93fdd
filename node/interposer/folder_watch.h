// SPDX-License-Identifier: Apache-2.0
//
// FolderWatch: waits until something is to be done: the kubelet has made its socket anew, a time
// has come, or Wake was called.
#pragma once

#include <cstdint>
#include <string>

#include "base/clock.h"
#include "base/result.h"

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

// AgentFolder: the agent's own folder in the kubelet's folder of device plugins.
//
//   DIR/kubelet.sock                 the kubelet's
//   DIR/berth/kubelet.sock           what plugins register with: a link to run/kubelet.sock
//   DIR/berth/run/kubelet.sock       the worker's socket; while no worker is there, a link to the
//                                    kubelet's, so that plugins that start meanwhile find that
//   DIR/berth/run/plugins            the plugins that the worker stands in for (registrar.h)
//   DIR/berth/run/lock               held by the guard
//
// Plugins watch the folder of the socket that they register with and start anew when it is made
// anew. Hence the links: the worker comes and goes in a folder that nobody watches, and has them
// start anew once it serves.
class AgentFolder {
 public:
  explicit AgentFolder(std::string kubelet_folder);

  // Makes the folders and the link where they are not there. Error: kUnavailable with the path.
  [[nodiscard]] Status Prepare() const;

  // Makes the link of the plugins anew, so that they register again.
  [[nodiscard]] Status ResetPlugins() const;

  // Leads plugins that register to the kubelet.
  [[nodiscard]] Status LeadToKubelet() const;

  [[nodiscard]] const std::string& kubelet_folder() const { return folder_; }
  [[nodiscard]] std::string kubelet_socket() const { return folder_ + "/kubelet.sock"; }
  [[nodiscard]] std::string plugin_socket() const { return folder_ + "/berth/kubelet.sock"; }
  [[nodiscard]] std::string worker_socket() const { return folder_ + "/berth/run/kubelet.sock"; }
  [[nodiscard]] std::string plugin_file() const { return folder_ + "/berth/run/plugins"; }
  [[nodiscard]] std::string lock_file() const { return folder_ + "/berth/run/lock"; }

 private:
  std::string folder_;
};

}  // namespace berth::node
