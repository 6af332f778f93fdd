// SPDX-License-Identifier: Apache-2.0
#include "test/support/test_certificates.h"

#include <stdlib.h>

#include <cstdio>
#include <fstream>
#include <random>
#include <stdexcept>

#include <openssl/pem.h>
#include <openssl/x509v3.h>

namespace berth::test {
namespace {

void RequireOpenSsl(bool success, const char* what) {
  if (!success) {
    throw std::runtime_error(std::string("test certificates: ") + what);
  }
}

void SetName(X509_NAME* name, const std::string& text) {
  RequireOpenSsl(X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_UTF8,
                                            reinterpret_cast<const unsigned char*>(text.c_str()),
                                            -1, -1, 0) == 1,
                 "name");
}

void AddExtension(X509* certificate, int id, const char* value) {
  X509_EXTENSION* extension = X509V3_EXT_conf_nid(nullptr, nullptr, id, value);
  RequireOpenSsl(extension != nullptr && X509_add_ext(certificate, extension, -1) == 1, value);
  X509_EXTENSION_free(extension);
}

template <class Write>
std::string TextOf(Write write) {
  BIO* const bio = BIO_new(BIO_s_mem());
  RequireOpenSsl(write(bio) == 1, "write");
  char* bytes = nullptr;
  const long size = BIO_get_mem_data(bio, &bytes);
  std::string text(bytes, static_cast<std::size_t>(size));
  BIO_free(bio);
  return text;
}

template <class Write>
std::string WriteFile(const std::filesystem::path& path, Write write) {
  std::FILE* file = std::fopen(path.c_str(), "w");
  RequireOpenSsl(file != nullptr, "open");
  const bool written = write(file) == 1;
  std::fclose(file);
  RequireOpenSsl(written, "write");
  return path;
}

}  // namespace

Identity MakeIdentity(const std::string& name, const Identity* issuer,
                      const std::string& alternative_names) {
  Identity identity;
  identity.key.reset(EVP_EC_gen("P-256"));
  identity.certificate.reset(X509_new());
  X509* certificate = identity.certificate.get();
  RequireOpenSsl(identity.key != nullptr && certificate != nullptr, "allocation");
  X509_set_version(certificate, 2);
  ASN1_INTEGER_set_uint64(X509_get_serialNumber(certificate), std::random_device()());
  X509_gmtime_adj(X509_getm_notBefore(certificate), -3600);
  X509_gmtime_adj(X509_getm_notAfter(certificate), 3600);
  X509_set_pubkey(certificate, identity.key.get());
  SetName(X509_get_subject_name(certificate), name);
  if (issuer == nullptr) {
    AddExtension(certificate, NID_basic_constraints, "critical,CA:TRUE");
  }
  if (!alternative_names.empty()) {
    AddExtension(certificate, NID_subject_alt_name, alternative_names.c_str());
  }
  const Identity& signer = issuer == nullptr ? identity : *issuer;
  X509_set_issuer_name(certificate, X509_get_subject_name(signer.certificate.get()));
  RequireOpenSsl(X509_sign(certificate, signer.key.get(), EVP_sha256()) > 0, "sign");
  return identity;
}

std::string CertificateText(const Identity& identity) {
  return TextOf([&](BIO* bio) { return PEM_write_bio_X509(bio, identity.certificate.get()); });
}

std::string KeyText(const Identity& identity) {
  return TextOf([&](BIO* bio) {
    return PEM_write_bio_PrivateKey(bio, identity.key.get(), nullptr, nullptr, 0, nullptr, nullptr);
  });
}

TemporaryFolder::TemporaryFolder() {
  std::string name = std::filesystem::temp_directory_path() / "berth-test-XXXXXX";
  RequireOpenSsl(mkdtemp(name.data()) != nullptr, "temporary folder");
  path_ = name;
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

std::string TemporaryFolder::WriteCertificate(const std::string& name,
                                              const Identity& identity) const {
  return WriteFile(path_ / name, [&](std::FILE* file) {
    return PEM_write_X509(file, identity.certificate.get());
  });
}

std::string TemporaryFolder::WriteKey(const std::string& name, const Identity& identity) const {
  return WriteFile(path_ / name, [&](std::FILE* file) {
    return PEM_write_PrivateKey(file, identity.key.get(), nullptr, nullptr, 0, nullptr, nullptr);
  });
}

std::string TemporaryFolder::WriteText(const std::string& name, const std::string& text) const {
  std::ofstream(path_ / name) << text;
  return path_ / name;
}

}  // namespace berth::test
