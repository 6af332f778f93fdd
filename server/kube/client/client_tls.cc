// SPDX-License-Identifier: Apache-2.0
#include "server/kube/client/client_tls.h"

#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <array>
#include <cstdlib>
#include <utility>
#include <vector>

#include "base/file.h"

namespace berth::kube {
namespace {

struct Freed {
  void operator()(BIO* bio) const { BIO_free(bio); }
  void operator()(X509* certificate) const { X509_free(certificate); }
  void operator()(X509_STORE* store) const { X509_STORE_free(store); }
  void operator()(EVP_PKEY* key) const { EVP_PKEY_free(key); }
};
using Certificate = std::unique_ptr<X509, Freed>;

std::string OpensslProblem() {
  std::array<char, 256> text{};
  const unsigned long code = ERR_peek_last_error();
  ERR_clear_error();
  if (code == 0) return "unknown error";
  ERR_error_string_n(code, text.data(), text.size());
  return text.data();
}

std::unique_ptr<BIO, Freed> BioOf(const std::string& text) {
  return std::unique_ptr<BIO, Freed>(BIO_new_mem_buf(text.data(), static_cast<int>(text.size())));
}

// Where OpenSSL has the system's authorities: read once, for all connections. The library would
// parse them anew for each, 140 of them, and list the folder, only to have them replaced by Apply:
// it is shown an empty file.
struct SystemTrust {
  std::string file = Named(X509_get_default_cert_file_env(), X509_get_default_cert_file());
  std::string folder = Named(X509_get_default_cert_dir_env(), X509_get_default_cert_dir());

  SystemTrust() {
    setenv(X509_get_default_cert_file_env(), "/dev/null", 1);
    setenv(X509_get_default_cert_dir_env(), "/dev/null", 1);
  }

  static std::string Named(const char* variable, const char* otherwise) {
    const char* const value = std::getenv(variable);
    return value == nullptr ? otherwise : value;
  }

  static const SystemTrust& Get() {
    static const SystemTrust trust;
    return trust;
  }
};

// No password is asked for.
int NoPassword(char*, int, int, void*) { return 0; }

Result<std::vector<Certificate>> Certificates(const std::string& pem) {
  const auto bio = BioOf(pem);
  std::vector<Certificate> found;
  ERR_clear_error();
  while (X509* certificate = PEM_read_bio_X509(bio.get(), nullptr, NoPassword, nullptr)) {
    found.emplace_back(certificate);
  }
  const bool at_end = ERR_GET_REASON(ERR_peek_last_error()) == PEM_R_NO_START_LINE;
  if (found.empty() || !at_end) {
    return Invalid("want PEM certificates: " + OpensslProblem());
  }
  ERR_clear_error();
  return found;
}

constexpr std::chrono::seconds kReadInterval(1);

}  // namespace

struct ClientTls::Parts {
  std::string name;
  const std::unique_ptr<X509_STORE, Freed> trusted{X509_STORE_new()};
  std::vector<Certificate> chain;  // of the client, its own first
  std::unique_ptr<EVP_PKEY, Freed> key;
  bool insecure = false;

  Mutex mutex;
  std::string problem BERTH_GUARDED_BY(mutex);

  // The name was set by Apply. The library's own check of it is left out: it looks for the text of
  // the header Host, which for an IPv6 address has brackets and a port.
  static int Verify(X509_STORE_CTX* store, void* self) {
    X509_STORE_CTX_set_verify_cb(store, [](int verdict, X509_STORE_CTX*) { return verdict; });
    const int verdict = X509_verify_cert(store);
    if (verdict <= 0) {
      Parts& parts = *static_cast<Parts*>(self);
      const MutexLock lock(parts.mutex);
      parts.problem = X509_verify_cert_error_string(X509_STORE_CTX_get_error(store));
    }
    return verdict;
  }
};

ClientTls::ClientTls(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}
ClientTls::~ClientTls() = default;

Result<std::shared_ptr<ClientTls>> ClientTls::Create(const ClusterAccess& access,
                                                     const std::string& name) {
  auto parts = std::make_unique<Parts>();
  parts->name = name;
  parts->insecure = access.insecure_skip_tls_verify;
  const SystemTrust& system = SystemTrust::Get();
  if (access.ca_pem.empty()) {
    X509_STORE_load_file(parts->trusted.get(), system.file.c_str());  // either may not be there
    X509_STORE_load_path(parts->trusted.get(), system.folder.c_str());
    ERR_clear_error();
  } else {
    BERTH_TRY(const std::vector<Certificate> authorities,
              Within(Certificates(access.ca_pem), "certificate-authority"));
    for (const Certificate& one : authorities) {
      X509_STORE_add_cert(parts->trusted.get(), one.get());
    }
  }
  if (!access.client_certificate_pem.empty()) {
    BERTH_TRY(parts->chain,
              Within(Certificates(access.client_certificate_pem), "client-certificate"));
    const auto bio = BioOf(access.client_key_pem);
    parts->key.reset(PEM_read_bio_PrivateKey(bio.get(), nullptr, NoPassword, nullptr));
    if (parts->key == nullptr) {
      return Invalid("client-key: want an unencrypted PEM key: " + OpensslProblem());
    }
    if (X509_check_private_key(parts->chain[0].get(), parts->key.get()) != 1) {
      return Invalid("client-key: want the key of the client-certificate: " + OpensslProblem());
    }
  }
  return std::shared_ptr<ClientTls>(new ClientTls(std::move(parts)));
}

void ClientTls::Apply(ssl_ctx_st* context) {
  SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION);
  SSL_CTX_set1_cert_store(context, parts_->trusted.get());
  if (!parts_->chain.empty()) {
    SSL_CTX_use_certificate(context, parts_->chain[0].get());
    for (std::size_t i = 1; i < parts_->chain.size(); ++i) {
      SSL_CTX_add1_chain_cert(context, parts_->chain[i].get());
    }
    SSL_CTX_use_PrivateKey(context, parts_->key.get());
  }
  if (parts_->insecure) return;
  X509_VERIFY_PARAM* const wanted = SSL_CTX_get0_param(context);
  X509_VERIFY_PARAM_set_hostflags(wanted, X509_CHECK_FLAG_NEVER_CHECK_SUBJECT);
  if (X509_VERIFY_PARAM_set1_ip_asc(wanted, parts_->name.c_str()) != 1) {
    X509_VERIFY_PARAM_set1_host(wanted, parts_->name.data(), parts_->name.size());
  }
  SSL_CTX_set_cert_verify_callback(context, &Parts::Verify, parts_.get());
}

std::string ClientTls::TakeProblem() {
  const MutexLock lock(parts_->mutex);
  return std::exchange(parts_->problem, "");
}

TokenSource::TokenSource(std::string token, std::string file)
    : file_(std::move(file)), token_(std::move(token)) {}

void TokenSource::Read() {
  next_read_ = std::chrono::steady_clock::now() + kReadInterval;
  const Result<std::string> text = ReadFile(file_);
  if (!text) return;
  // One line; anything else has no place in a header.
  std::string token;
  for (const char c : *text) {
    if (c > ' ' && c < '\x7f') token += c;
  }
  if (!token.empty()) token_ = std::move(token);
}

std::string TokenSource::Current() {
  const MutexLock lock(mutex_);
  if (!file_.empty() && std::chrono::steady_clock::now() >= next_read_) Read();
  return token_;
}

bool TokenSource::RenewedAfter(const std::string& used) {
  const MutexLock lock(mutex_);
  if (!file_.empty()) Read();
  return token_ != used;
}

}  // namespace berth::kube
