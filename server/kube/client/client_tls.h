// SPDX-License-Identifier: Apache-2.0
//
// ClientTls: whom we trust and who we are, ready to be put into each new connection's SSL_CTX.
#pragma once

#include <memory>
#include <string>

#include "base/clock.h"
#include "base/mutex.h"
#include "base/result.h"
#include "config/kubeconfig.h"

struct ssl_ctx_st;

namespace berth::kube {

// Any thread may call it. What Apply was given uses the object: keep it for as long.
class ClientTls {
 public:
  // `name` is what the server's certificate must say: an IP address or a DNS name. Error:
  // kInvalidArgument "certificate-authority: ..." for PEM texts that OpenSSL does not take.
  static Result<std::shared_ptr<ClientTls>> Create(const ClusterAccess& access,
                                                   const std::string& name);
  ~ClientTls();

  // TLS 1.2 or later; the CA instead of the system's; the certificate of the client; the name by
  // its alternative names alone (a common name does not count).
  void Apply(ssl_ctx_st* context);

  // Why the last certificate of a server was refused, "" = none was. Taken once.
  [[nodiscard]] std::string TakeProblem();

 private:
  struct Parts;
  explicit ClientTls(std::unique_ptr<Parts> parts);

  const std::unique_ptr<Parts> parts_;
};

// TokenSource: the bearer token of the moment. Kubernetes replaces the token file of a pod long
// before the token in it expires; it is looked at once per second at most.

// Any thread may call it.
class TokenSource {
 public:
  // An empty file name: always `token`. Else what the file holds; while it cannot be read or is
  // empty, what it held last, at first `token`.
  TokenSource(std::string token, std::string file);

  // "" = there is none.
  [[nodiscard]] std::string Current() BERTH_EXCLUDES(mutex_);

  // After the server refused `used`: the file is read now. Whether there is another token to try.
  bool RenewedAfter(const std::string& used) BERTH_EXCLUDES(mutex_);

 private:
  void Read() BERTH_REQUIRES(mutex_);

  const std::string file_;
  Mutex mutex_;
  std::string token_ BERTH_GUARDED_BY(mutex_);
  Instant next_read_ BERTH_GUARDED_BY(mutex_){};
};

}  // namespace berth::kube
