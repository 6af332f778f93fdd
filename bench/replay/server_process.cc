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
#include "cluster/state/cluster_state.h"
#include "config/config.h"
#include "server/wire/file/cluster_file.h"

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

Status WriteConfig(const std::string& folder, Config config) {
  config.server.listen = "127.0.0.1:0";
  config.log_level = "warn";
  return WriteOutput(folder + "/config.yaml", PrintConfig(config));
}

Result<std::string> ClusterText(const std::vector<NodeSpec>& nodes) {
  ClusterState state;
  std::vector<ClusterEvent> events;
  for (const NodeSpec& node : nodes) events.emplace_back(NodeUpserted{node});
  BERTH_TRY_STATUS(state.Apply(events));
  return wire::EncodeCluster(state.Everything());
}

std::string KubeconfigText(const std::string& api_url) {
  return "apiVersion: v1\nkind: Config\ncurrent-context: c\n"
         "contexts: [{name: c, context: {cluster: c, user: u}}]\n"
         "users: [{name: u, user: {}}]\n"
         "clusters: [{name: c, cluster: {server: \"" +
         api_url + "\"}}]\n";
}

// The first line of the child's output, or all its output if it has ended.
std::string ReadLine(int descriptor) {
  std::string line;
  char c = 0;
  while (read(descriptor, &c, 1) == 1 && c != '\n') line += c;
  return line;
}

[[noreturn]] void RunChild(const std::string& binary, const std::string& folder, const char* option,
                           const char* file, int output) {
  prctl(PR_SET_PDEATHSIG, SIGTERM);  // a killed replay leaves no server behind
  dup2(output, STDOUT_FILENO);
  close_range(STDERR_FILENO + 1, ~0U, 0);  // our sockets are not its own
  const std::string input = folder + file, config = folder + "/config.yaml";
  execl(binary.c_str(), binary.c_str(), "serve", option, input.c_str(), "--config", config.c_str(),
        static_cast<char*>(nullptr));
  std::perror(binary.c_str());
  _exit(127);
}

}  // namespace

Status ServerProcess::Run(const std::string& binary, const char* option, const char* file) {
  int ends[2];
  if (pipe(ends) != 0) return Fail(Errc::kUnavailable, "no pipe can be made");
  pid_ = fork();
  if (pid_ == 0) RunChild(binary, folder_, option, file, ends[1]);
  close(ends[1]);
  const std::string line = ReadLine(ends[0]);
  close(ends[0]);
  if (!line.starts_with(kAnnouncement)) {
    return Fail(Errc::kUnavailable, binary + " serve did not start: " + line);
  }
  address_ = line.substr(kAnnouncement.size());
  return {};
}

Result<ServerProcess> ServerProcess::Start(const std::string& binary, const Config& config,
                                           const std::vector<NodeSpec>& nodes) {
  ServerProcess server;
  BERTH_TRY(server.folder_, MakeFolder());
  BERTH_TRY_STATUS(WriteConfig(server.folder_, config));
  BERTH_TRY(const std::string cluster, ClusterText(nodes));
  BERTH_TRY_STATUS(WriteOutput(server.folder_ + "/cluster.json", cluster));
  BERTH_TRY_STATUS(server.Run(binary, "--cluster", "/cluster.json"));
  return server;
}

Result<ServerProcess> ServerProcess::StartBefore(const std::string& binary, const Config& config,
                                                 const std::string& api_url) {
  ServerProcess server;
  BERTH_TRY(server.folder_, MakeFolder());
  BERTH_TRY_STATUS(WriteConfig(server.folder_, config));
  BERTH_TRY_STATUS(WriteOutput(server.folder_ + "/kubeconfig", KubeconfigText(api_url)));
  BERTH_TRY_STATUS(server.Run(binary, "--kubeconfig", "/kubeconfig"));
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
