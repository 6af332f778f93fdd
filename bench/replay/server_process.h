// SPDX-License-Identifier: Apache-2.0
//
// ServerProcess: a `berth serve` child process on an embedded cluster and a free port, as long as
// the object lives.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "base/result.h"
#include "cluster/node.h"
#include "config/config.h"

namespace berth::replay {

class ServerProcess {
 public:
  // Starts `binary` with the cluster and the configuration and waits until it answers. Error:
  // kUnavailable with its output.
  static Result<ServerProcess> Start(const std::string& binary, const Config& config,
                                     const std::vector<NodeSpec>& nodes);
  ~ServerProcess();  // SIGTERM, and waits
  ServerProcess(ServerProcess&& other) noexcept;
  ServerProcess& operator=(ServerProcess&&) = delete;

  [[nodiscard]] const std::string& address() const { return address_; }  // HOST:PORT

 private:
  ServerProcess() = default;

  pid_t pid_ = -1;
  std::string folder_;  // temporary; holds the cluster and the configuration
  std::string address_;
};

// The `berth` beside the running program.
std::string BerthBinaryBeside();

}  // namespace berth::replay
