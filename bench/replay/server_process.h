// SPDX-License-Identifier: Apache-2.0
//
// ServerProcess: a `berth serve` child process on a free port, as long as the object lives.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "base/result.h"
#include "cluster/node/node.h"
#include "config/config.h"

namespace berth::replay {

class ServerProcess {
 public:
  // Starts `binary` with an embedded cluster and the configuration and waits until it answers.
  // Error: kUnavailable with its output.
  static Result<ServerProcess> Start(const std::string& binary, const Config& config,
                                     const std::vector<NodeSpec>& nodes);
  // The same with the API server at that URL as its cluster. It listens, and may not be ready yet.
  static Result<ServerProcess> StartBefore(const std::string& binary, const Config& config,
                                           const std::string& api_url);
  ~ServerProcess();  // SIGTERM, and waits
  ServerProcess(ServerProcess&& other) noexcept;
  ServerProcess& operator=(ServerProcess&&) = delete;

  [[nodiscard]] const std::string& address() const { return address_; }  // HOST:PORT
  [[nodiscard]] pid_t pid() const { return pid_; }

 private:
  ServerProcess() = default;
  // With that option and that file of the folder.
  Status Run(const std::string& binary, const char* option, const char* file);

  pid_t pid_ = -1;
  std::string folder_;  // temporary; holds what it is started with
  std::string address_;
};

// The `berth` beside the running program.
std::string BerthBinaryBeside();

}  // namespace berth::replay
