// SPDX-License-Identifier: Apache-2.0
//
// Certificates for one test, made with OpenSSL's C API (P-256 keys, valid for an hour) and written
// to a temporary folder that goes away with them.
#pragma once

#include <filesystem>
#include <memory>
#include <string>

#include <openssl/evp.h>
#include <openssl/x509.h>

namespace berth::test {

struct OpensslFree {
  void operator()(EVP_PKEY* key) const { EVP_PKEY_free(key); }
  void operator()(X509* certificate) const { X509_free(certificate); }
};

// A key with its certificate.
struct Identity {
  std::unique_ptr<EVP_PKEY, OpensslFree> key;
  std::unique_ptr<X509, OpensslFree> certificate;
};

// A CA if there is no issuer, else what the issuer says of `name`; with alternative names such as
// "DNS:localhost,IP:127.0.0.1", if any.
Identity MakeIdentity(const std::string& name, const Identity* issuer = nullptr,
                      const std::string& alternative_names = "");

// As PEM.
std::string CertificateText(const Identity& identity);
std::string KeyText(const Identity& identity);

class TemporaryFolder {
 public:
  TemporaryFolder();
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  // Each writes (or overwrites) a file and returns its path.
  std::string WriteCertificate(const std::string& name, const Identity& identity) const;
  std::string WriteKey(const std::string& name, const Identity& identity) const;
  std::string WriteText(const std::string& name, const std::string& text) const;

 private:
  std::filesystem::path path_;
};

}  // namespace berth::test
