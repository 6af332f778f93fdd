// SPDX-License-Identifier: Apache-2.0
#include "node/interposer/folder_watch.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>
#include <algorithm>
#include <array>
#include <chrono>
#include <filesystem>
#include <system_error>
#include <utility>

namespace berth::node {
namespace {

constexpr std::chrono::milliseconds kLongestWait = std::chrono::minutes(1);
constexpr std::chrono::milliseconds kWithoutWatch = std::chrono::seconds(1);

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

FolderWatch::FolderWatch(const std::string& folder)
    : socket_(folder + "/kubelet.sock"),
      changes_(inotify_init1(IN_CLOEXEC | IN_NONBLOCK)),
      wakes_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  if (changes_ >= 0) {
    watches_ = inotify_add_watch(changes_, folder.c_str(), IN_CREATE | IN_MOVED_TO) >= 0;
  }
}

FolderWatch::~FolderWatch() {
  if (changes_ >= 0) close(changes_);
  if (wakes_ >= 0) close(wakes_);
}

void FolderWatch::Wait(Instant until) {
  using std::chrono::milliseconds;
  const auto left = std::chrono::ceil<milliseconds>(until - Instant::clock::now());
  const auto wait =
      std::clamp<milliseconds>(left, milliseconds(0), watches_ ? kLongestWait : kWithoutWatch);
  std::array<pollfd, 2> files = {pollfd{changes_, POLLIN, 0}, pollfd{wakes_, POLLIN, 0}};
  if (poll(files.data(), files.size(), static_cast<int>(wait.count())) <= 0) return;
  std::array<char, 4096> events{};
  while (read(changes_, events.data(), events.size()) > 0) {
  }
  std::uint64_t wakes = 0;
  while (read(wakes_, &wakes, sizeof wakes) > 0) {
  }
}

void FolderWatch::Wake() {
  const std::uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = write(wakes_, &one, sizeof one);
}

FolderWatch::Identity FolderWatch::Look() const {
  struct stat found {};
  if (stat(socket_.c_str(), &found) != 0 || !S_ISSOCK(found.st_mode)) return {};
  return {found.st_ino,
          static_cast<std::int64_t>(found.st_ctim.tv_sec) * 1'000'000'000 + found.st_ctim.tv_nsec};
}

bool FolderWatch::KubeletIsNew() {
  const Identity found = Look();
  if (found == Identity{} || found == last_) return false;
  last_ = found;
  return true;
}

bool FolderWatch::KubeletIsThere() const { return Look() != Identity{}; }

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
