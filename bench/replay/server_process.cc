// SPDX-License-Identifier: Apache-2.0
#include "bench/replay/server_process.h"

#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <utility>

#include "bench/replay/report.h"
#include "cluster/cluster_state.h"
#include "config/print.h"
#include "server/wire/cluster_file.h"

namespace berth::replay {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kAnnouncement = "berth: listening on http://";

Result<std::string> MakeFolder() {
  std::string pattern = (fs::temp_directory_path() / "berth-replay-XXXXXX").string();
  if (mkdtemp(pattern.data()) == nullptr) {
    return Fail(Errc::kUnavailable, pattern + ": cannot be made");
  }
  return pattern;
}

Status WriteInputs(const std::string& folder, Config config, const std::vector<NodeSpec>& nodes) {
  ClusterState state;
  std::vector<ClusterEvent> events;
  for (const NodeSpec& node : nodes) events.emplace_back(NodeUpserted{node});
  BERTH_TRY_STATUS(state.Apply(events));
  config.server.listen = "127.0.0.1:0";
  config.log_level = "warn";
  BERTH_TRY_STATUS(WriteOutput(folder + "/cluster.json", wire::EncodeCluster(state.Everything())));
  return WriteOutput(folder + "/config.yaml", PrintConfig(config));
}

// The first line of the child's output, or all its output if it has ended.
std::string ReadLine(int descriptor) {
  std::string line;
  char c = 0;
  while (read(descriptor, &c, 1) == 1 && c != '\n') line += c;
  return line;
}

[[noreturn]] void RunChild(const std::string& binary, const std::string& folder, int output) {
  prctl(PR_SET_PDEATHSIG, SIGTERM);  // a killed replay leaves no server behind
  dup2(output, STDOUT_FILENO);
  const std::string cluster = folder + "/cluster.json", config = folder + "/config.yaml";
  execl(binary.c_str(), binary.c_str(), "serve", "--cluster", cluster.c_str(), "--config",
        config.c_str(), static_cast<char*>(nullptr));
  std::perror(binary.c_str());
  _exit(127);
}

}  // namespace

Result<ServerProcess> ServerProcess::Start(const std::string& binary, const Config& config,
                                           const std::vector<NodeSpec>& nodes) {
  ServerProcess server;
  BERTH_TRY(server.folder_, MakeFolder());
  BERTH_TRY_STATUS(WriteInputs(server.folder_, config, nodes));
  int ends[2];
  if (pipe(ends) != 0) return Fail(Errc::kUnavailable, "no pipe can be made");
  server.pid_ = fork();
  if (server.pid_ == 0) RunChild(binary, server.folder_, ends[1]);
  close(ends[1]);
  const std::string line = ReadLine(ends[0]);
  close(ends[0]);
  if (!line.starts_with(kAnnouncement)) {
    return Fail(Errc::kUnavailable, binary + " serve did not start: " + line);
  }
  server.address_ = line.substr(kAnnouncement.size());
  return server;
}

ServerProcess::ServerProcess(ServerProcess&& other) noexcept
    : pid_(std::exchange(other.pid_, -1)),
      folder_(std::exchange(other.folder_, "")),
      address_(std::move(other.address_)) {}

ServerProcess::~ServerProcess() {
  if (pid_ > 0) {
    kill(pid_, SIGTERM);
    waitpid(pid_, nullptr, 0);
  }
  std::error_code ignored;
  if (!folder_.empty()) fs::remove_all(folder_, ignored);
}

std::string BerthBinaryBeside() {
  std::error_code code;
  const fs::path self = fs::read_symlink("/proc/self/exe", code);
  return code ? "berth" : (self.parent_path() / "berth").string();
}

}  // namespace berth::replay
