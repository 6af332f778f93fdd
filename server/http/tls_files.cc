// SPDX-License-Identifier: Apache-2.0
#include "server/http/tls_files.h"

#include <ctime>
#include <string_view>
#include <utility>

#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <boost/asio/buffer.hpp>
#include <boost/system/error_code.hpp>

#include "base/file.h"

namespace berth::http {
namespace {

namespace asio = boost::asio;
using boost::system::error_code;

Result<std::string> ReadPart(std::string_view option, const std::string& path) {
  Result<std::string> text = ReadFile(path);
  if (!text) return Invalid(std::string(option) + ": " + text.error().message);
  return text;
}

tl::unexpected<Error> CannotUse(std::string_view option, const std::string& path,
                                const error_code& code) {
  return Invalid(std::string(option) + ": cannot use " + path + ": " + code.message());
}

// The context's settings that do not depend on files. TLS 1.2 is what Go, and so Kubernetes, starts
// at.
Status Configure(asio::ssl::context& context) {
  error_code code;
  context.set_options(asio::ssl::context::default_workarounds | asio::ssl::context::no_sslv2 |
                          asio::ssl::context::no_sslv3 | asio::ssl::context::no_tlsv1 |
                          asio::ssl::context::no_tlsv1_1 | asio::ssl::context::no_compression,
                      code);
  SSL_CTX* const native = context.native_handle();
  if (code || SSL_CTX_set_min_proto_version(native, TLS1_2_VERSION) != 1) {
    return Fail(Errc::kInternal, "tls: cannot set the protocol versions");
  }
  // Clients keep their connections; resumption would only bypass a renewed client CA.
  SSL_CTX_set_options(native, SSL_OP_NO_TICKET | SSL_OP_NO_RENEGOTIATION);
  SSL_CTX_set_session_cache_mode(native, SSL_SESS_CACHE_OFF);
  // Thousands of idle connections need no record buffers. A record that is tried again may lie
  // elsewhere, and a write may end with it (transport.cc).
  SSL_CTX_set_mode(native, SSL_MODE_RELEASE_BUFFERS | SSL_MODE_ENABLE_PARTIAL_WRITE |
                               SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
  // Without this an encrypted key would make the process ask for its password on the terminal.
  context.set_password_callback(
      [](std::size_t, asio::ssl::context::password_purpose) { return std::string(); }, code);
  return {};
}

}  // namespace

Result<TlsFiles> TlsFiles::Load(const TlsOptions& options) {
  TlsFiles files(options);
  BERTH_TRY(files.tried_, ReadFiles(options));
  BERTH_TRY(files.context_, MakeContext(options, files.tried_));
  return files;
}

std::int64_t TlsFiles::expires() const {
  const X509* const certificate = SSL_CTX_get0_certificate(context_->native_handle());
  tm end{};
  if (ASN1_TIME_to_tm(X509_get0_notAfter(certificate), &end) != 1) return 0;
  return timegm(&end);
}

std::optional<Status> TlsFiles::Reload() {
  Result<Content> content = ReadFiles(options_);
  if (!content) {
    if (std::exchange(read_error_, content.error().message) == content.error().message) {
      return std::nullopt;
    }
    return tl::unexpected(std::move(content).error());
  }
  read_error_.clear();
  if (*content == tried_) {
    return std::nullopt;
  }
  tried_ = *std::move(content);
  Result<std::shared_ptr<asio::ssl::context>> context = MakeContext(options_, tried_);
  if (!context) {
    return tl::unexpected(std::move(context).error());
  }
  context_ = *std::move(context);
  return Status();
}

Result<TlsFiles::Content> TlsFiles::ReadFiles(const TlsOptions& options) {
  Content content;
  BERTH_TRY(content.certificate, ReadPart("tls.certificate_file", options.certificate_file));
  BERTH_TRY(content.key, ReadPart("tls.key_file", options.key_file));
  if (!options.client_ca_file.empty()) {
    BERTH_TRY(content.client_ca, ReadPart("tls.client_ca_file", options.client_ca_file));
  }
  return content;
}

Result<std::shared_ptr<asio::ssl::context>> TlsFiles::MakeContext(const TlsOptions& options,
                                                                  const Content& content) {
  auto context = std::make_shared<asio::ssl::context>(asio::ssl::context::tls_server);
  BERTH_TRY_STATUS(Configure(*context));
  error_code code;
  context->use_certificate_chain(asio::buffer(content.certificate), code);
  if (code) {
    return CannotUse("tls.certificate_file", options.certificate_file, code);
  }
  // Also checks that the key belongs to the certificate.
  context->use_private_key(asio::buffer(content.key), asio::ssl::context::pem, code);
  if (code) {
    return CannotUse("tls.key_file", options.key_file, code);
  }
  if (!options.client_ca_file.empty()) {
    context->add_certificate_authority(asio::buffer(content.client_ca), code);
    if (code) {
      return CannotUse("tls.client_ca_file", options.client_ca_file, code);
    }
    context->set_verify_mode(asio::ssl::verify_peer | asio::ssl::verify_fail_if_no_peer_cert, code);
    if (code) {
      return CannotUse("tls.client_ca_file", options.client_ca_file, code);
    }
  }
  return context;
}

}  // namespace berth::http
