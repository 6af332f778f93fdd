// SPDX-License-Identifier: Apache-2.0
#include "node/interposer/agent_folder.h"

#include <cstdio>
#include <filesystem>
#include <system_error>
#include <utility>

namespace berth::node {
namespace {

namespace fs = std::filesystem;

Status Failed(const std::string& path, const std::error_code& code) {
  return Fail(Errc::kUnavailable, path + ": " + code.message());
}

// In one step, so that there is always something at the path.
Status LinkAnew(const std::string& path, const std::string& target) {
  const std::string next = path + ".new";
  std::error_code code;
  fs::remove(next, code);
  fs::create_symlink(target, next, code);
  if (code) return Failed(next, code);
  fs::rename(next, path, code);
  if (code) return Failed(path, code);
  return {};
}

}  // namespace

AgentFolder::AgentFolder(std::string kubelet_folder) : folder_(std::move(kubelet_folder)) {}

Status AgentFolder::Prepare() const {
  const std::string run = folder_ + "/berth/run";
  std::error_code code;
  fs::create_directories(run, code);
  if (code) return Failed(run, code);
  const std::string target = fs::read_symlink(plugin_socket(), code).string();
  if (!code && target == "run/kubelet.sock") return {};
  return ResetPlugins();
}

Status AgentFolder::ResetPlugins() const {
  std::error_code code;
  // Some plugins wait for it to go and to come again.
  fs::remove(plugin_socket(), code);
  fs::create_symlink("run/kubelet.sock", plugin_socket(), code);
  if (code) return Failed(plugin_socket(), code);
  return {};
}

Status AgentFolder::LeadToKubelet() const {
  return LinkAnew(worker_socket(), "../../kubelet.sock");
}

}  // namespace berth::node
