// SPDX-License-Identifier: Apache-2.0
//
// TlsFiles: the certificate, key and client CA files as a server context, renewed when they change
// (Kubernetes renews the files of a mounted secret in place).
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include <boost/asio/ssl/context.hpp>

#include "base/result.h"
#include "server/http/http_server.h"

namespace berth::http {

// One thread.
class TlsFiles {
 public:
  // Errors name the option and the file; kInvalidArgument.
  [[nodiscard]] static Result<TlsFiles> Load(const TlsOptions& options);

  // What new connections use. Never null; the last content that could be loaded.
  [[nodiscard]] const std::shared_ptr<boost::asio::ssl::context>& context() const {
    return context_;
  }

  // When the certificate in use ends, in seconds since 1970.
  [[nodiscard]] std::int64_t expires() const;

  // Reads the files again. nullopt if nothing has changed since the last call; else whether the new
  // content is in use now.
  std::optional<Status> Reload();

 private:
  struct Content {
    std::string certificate;
    std::string key;
    std::string client_ca;
    bool operator==(const Content&) const = default;
  };

  explicit TlsFiles(const TlsOptions& options) : options_(options) {}

  static Result<Content> ReadFiles(const TlsOptions& options);
  static Result<std::shared_ptr<boost::asio::ssl::context>> MakeContext(const TlsOptions& options,
                                                                        const Content& content);

  TlsOptions options_;
  Content tried_;           // of the last successful reading, loadable or not
  std::string read_error_;  // of the last reading; empty: none
  std::shared_ptr<boost::asio::ssl::context> context_;
};

}  // namespace berth::http
