// SPDX-License-Identifier: Apache-2.0
//
// The command line reaches a Berth in a cluster through kubectl, which has the user's kubeconfig,
// context and credentials, including exec plugins.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"

namespace berth {

// The cluster, and the Service of Berth in it.
struct KubectlTarget {
  std::string kubeconfig = {}, context = {};   // empty: kubectl's own
  std::string service = "berth-system/berth";  // NAMESPACE/NAME of the Service with the port debug
  bool port_forward = false;  // to the Service's pod; else through the API server's Service proxy
};

// A tunnel to Berth, open while the object lives: kubectl serves an address on this machine.
// kubectl's messages go to stderr. Not thread-safe.
class KubectlTunnel {
 public:
  // Error: kInvalidArgument for a malformed service; kUnavailable if kubectl is missing or does not
  // start.
  static Result<KubectlTunnel> Open(const KubectlTarget& target);
  ~KubectlTunnel();
  KubectlTunnel(KubectlTunnel&& other) noexcept;

  [[nodiscard]] const std::string& address() const { return address_; }  // HOST:PORT
  // To be put before the path of a page; empty with port-forward.
  [[nodiscard]] const std::string& prefix() const { return prefix_; }

 private:
  KubectlTunnel() = default;

  pid_t pid_ = -1;
  int out_ = -1;  // kubectl's stdout; open while it serves
  std::string address_, prefix_;
};

// What kubectl prints on stdout, and on stderr if `aloud`. Error: kUnavailable if it fails or
// prints more than that.
Result<std::string> KubectlPrints(const KubectlTarget& target,
                                  const std::vector<std::string>& arguments, std::size_t most_bytes,
                                  bool aloud);

// The namespace of the context. Error: kUnavailable.
Result<std::string> CurrentNamespace(const KubectlTarget& target);

// Asks a running Berth, for the command line.

// The address of a Berth.
struct ServerAddress {
  // http://HOST:PORT of a Berth, or of its debugListen; HOST:PORT alone means the same.
  std::string url = "http://127.0.0.1:8888";
  std::optional<KubectlTarget> cluster = {};  // if set, used instead of the URL
};

// The body of an answer with status 200, of `who`. Error: as AskServer.
Result<std::string> BodyOf(int status, std::string body, const std::string& who);

// The body of the answer. Error: kInvalidArgument for a malformed address or a request that the
// server refuses, kNotFound for status 404, kUnavailable otherwise.
Result<std::string> AskServer(const ServerAddress& at, const char* method, const std::string& path,
                              const std::string& body = "");

}  // namespace berth
