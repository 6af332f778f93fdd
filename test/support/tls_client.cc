// SPDX-License-Identifier: Apache-2.0
#include "test/support/tls_client.h"

#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <array>

#include <openssl/err.h>

namespace berth::test {
namespace {

int Connect(std::uint16_t port) {
  const int result = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const timeval patience{10, 0};
  setsockopt(result, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
  setsockopt(result, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  connect(result, reinterpret_cast<const sockaddr*>(&address), sizeof address);
  return result;
}

}  // namespace

TlsClient::TlsClient(std::uint16_t port, const Identity& ca, const Identity* identity,
                     int max_version)
    : context_(SSL_CTX_new(TLS_client_method())), socket_(Connect(port)) {
  SSL_CTX_set_max_proto_version(context_.get(), max_version);
  SSL_CTX_set_verify(context_.get(), SSL_VERIFY_PEER, nullptr);
  X509_STORE_add_cert(SSL_CTX_get_cert_store(context_.get()), ca.certificate.get());
  if (identity != nullptr) {
    SSL_CTX_use_certificate(context_.get(), identity->certificate.get());
    SSL_CTX_use_PrivateKey(context_.get(), identity->key.get());
  }
  ssl_.reset(SSL_new(context_.get()));
  SSL_set_fd(ssl_.get(), socket_);
  connected_ = SSL_connect(ssl_.get()) == 1;
}

TlsClient::~TlsClient() { close(socket_); }

std::string TlsClient::ServerName() const {
  const std::unique_ptr<X509, OpensslFree> certificate(SSL_get1_peer_certificate(ssl_.get()));
  std::array<char, 256> name{};
  if (certificate != nullptr) {
    X509_NAME_get_text_by_NID(X509_get_subject_name(certificate.get()), NID_commonName, name.data(),
                              static_cast<int>(name.size()));
  }
  return name.data();
}

bool TlsClient::Send(std::string_view bytes) {
  return connected_ && SSL_write(ssl_.get(), bytes.data(), static_cast<int>(bytes.size())) > 0;
}

std::string TlsClient::ReadUntil(std::string_view end) {
  std::string text;
  std::array<char, 65536> bytes{};
  while (connected_ && (end.empty() || text.find(end) == std::string::npos)) {
    ERR_clear_error();
    const int count = SSL_read(ssl_.get(), bytes.data(), static_cast<int>(bytes.size()));
    if (count <= 0) {
      break;
    }
    text.append(bytes.data(), static_cast<std::size_t>(count));
  }
  return text;
}

std::string TlsClient::Failure() {
  const char* const reason = ERR_reason_error_string(ERR_peek_last_error());
  return reason == nullptr ? "" : reason;
}

}  // namespace berth::test
