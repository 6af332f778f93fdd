// SPDX-License-Identifier: Apache-2.0
//
// TlsClient: a blocking TLS client for tests. Every wait ends after 10 s at the latest.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include <openssl/ssl.h>

#include "test/support/test_certificates.h"

namespace berth::test {

struct SslFree {
  void operator()(SSL_CTX* context) const { SSL_CTX_free(context); }
  void operator()(SSL* ssl) const { SSL_free(ssl); }
};

// Trusts what `ca` signed; shows `identity` if there is one. Not thread-safe.
class TlsClient {
 public:
  TlsClient(std::uint16_t port, const Identity& ca, const Identity* identity = nullptr,
            int max_version = TLS1_3_VERSION);
  ~TlsClient();
  TlsClient(const TlsClient&) = delete;
  TlsClient& operator=(const TlsClient&) = delete;

  // False if the handshake failed (for want of a client certificate only TLS 1.2 says so here).
  [[nodiscard]] bool connected() const { return connected_; }

  // The subject of the server's certificate.
  [[nodiscard]] std::string ServerName() const;

  bool Send(std::string_view bytes);

  // Up to and with the text `end`; what came until then if the server closes.
  std::string ReadUntil(std::string_view end);

  // In OpenSSL's words why the last call failed; empty if it did not, or if only the socket did.
  [[nodiscard]] static std::string Failure();

 private:
  std::unique_ptr<SSL_CTX, SslFree> context_;
  std::unique_ptr<SSL, SslFree> ssl_;
  int socket_ = -1;
  bool connected_ = false;
};

}  // namespace berth::test
