// SPDX-License-Identifier: Apache-2.0
//
// AgentFolder: the agent's own folder in the kubelet's folder of device plugins.
//
//   DIR/kubelet.sock                 the kubelet's
//   DIR/berth/kubelet.sock           what plugins register with: a link to run/kubelet.sock
//   DIR/berth/run/kubelet.sock       the worker's socket; while no worker is there, a link to the
//                                    kubelet's, so that plugins that start meanwhile find that
//   DIR/berth/run/plugins            the plugins that the worker stands in for (plugin_file.h)
//   DIR/berth/run/lock               held by the guard
//
// Plugins watch the folder of the socket that they register with and start anew when it is made
// anew. Hence the links: the worker comes and goes in a folder that nobody watches.
#pragma once

#include <string>

#include "base/result.h"

namespace berth::node {

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
