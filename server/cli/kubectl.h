// SPDX-License-Identifier: Apache-2.0
//
// kubectl, as the command line's way to a Berth in a cluster: it has the user's kubeconfig, context
// and credentials, those of exec plugins too, and no other program has to know them.
#pragma once

#include <sys/types.h>

#include <string>
#include <utility>
#include <vector>

#include "base/result.h"

namespace berth {

// Which cluster, and where Berth is in it.
struct KubectlTarget {
  std::string kubeconfig = {}, context = {};   // empty: as kubectl finds them
  std::string service = "berth-system/berth";  // NAMESPACE/NAME of the Service with the port debug
  bool port_forward = false;  // to the Service's pod; else through the API server's Service proxy
};

// A way to Berth, open while the object lives: an address on this machine that kubectl serves.
// What kubectl has to say to the user goes to stderr. Not thread-safe.
class KubectlTunnel {
 public:
  // Error: kInvalidArgument for a service that is none; kUnavailable where there is no kubectl or
  // it does not serve.
  static Result<KubectlTunnel> Open(const KubectlTarget& target);
  ~KubectlTunnel();
  KubectlTunnel(KubectlTunnel&& other) noexcept;
  KubectlTunnel& operator=(KubectlTunnel&&) = delete;

  [[nodiscard]] const std::string& address() const { return address_; }  // HOST:PORT
  // Before the path of a page; empty where the address is Berth's own.
  [[nodiscard]] const std::string& prefix() const { return prefix_; }

 private:
  KubectlTunnel() = default;

  pid_t pid_ = -1;
  int out_ = -1;  // kubectl writes on while it serves
  std::string address_, prefix_;
};

// The namespace of the context. Error: kUnavailable.
Result<std::string> CurrentNamespace(const KubectlTarget& target);

}  // namespace berth
