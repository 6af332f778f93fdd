// SPDX-License-Identifier: Apache-2.0
//
// Access to a Kubernetes API server: from a kubeconfig file, or from the files that Kubernetes
// mounts into every pod.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace berth {

// Plain values; "" = not given. PEM texts are not checked here; their user reports what is wrong.
struct ClusterAccess {
  std::string server;  // "https://10.0.0.1:6443", "https://[fd00::1]:6443", maybe with a path
  std::string ca_pem;  // whom to trust; "" = whom the system trusts
  std::string client_certificate_pem;
  std::string client_key_pem;
  std::string token;            // used where there is no token_file
  std::string token_file;       // to be read again and again: tokens rotate
  std::string tls_server_name;  // the name to be checked and sent; "" = the server's
  bool insecure_skip_tls_verify = false;
  std::string default_namespace = "default";
};

// One kubeconfig (lists of files as in KUBECONFIG are not merged). `context` "" = its
// current-context. Paths in it are relative to its folder; the files that they name are read,
// except the token's. Unknown keys are ignored, as kubectl does; unsupported ones (exec,
// auth-provider, passwords, impersonation, proxy-url) are refused. Error: kInvalidArgument
// "PATH:LINE: users[admin].user.exec: not supported, ..."; kNotFound for a file that cannot be
// read.
Result<ClusterAccess> LoadKubeconfig(const std::string& path, std::string_view context = "");

// The same of a text. `origin` is its path, in errors and for relative paths.
Result<ClusterAccess> ParseKubeconfig(const std::string& text, const std::string& origin,
                                      std::string_view context = "");

inline constexpr std::string_view kServiceAccountFolder =
    "/var/run/secrets/kubernetes.io/serviceaccount";

// Inside of a pod: host and port are its KUBERNETES_SERVICE_HOST and _PORT, and no DNS is needed;
// the folder holds token, ca.crt and namespace. Error: kNotFound for a file that cannot be read.
Result<ClusterAccess> InClusterAccess(
    const std::string& host, const std::string& port,
    const std::string& folder = std::string(kServiceAccountFolder));

}  // namespace berth
