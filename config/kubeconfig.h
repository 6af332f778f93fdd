// SPDX-License-Identifier: Apache-2.0
//
// Access to a Kubernetes API server: from a kubeconfig file, or from the files that Kubernetes
// mounts into every pod.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"

namespace berth {

// Plain values; "" = not given. PEM texts are not checked here; their user reports what is wrong.
struct ClusterAccess {
  std::string server;  // "https://10.0.0.1:6443", "https://[fd00::1]:6443", maybe with a path
  std::string ca_pem;  // trusted CAs; "" = those of the system
  std::string client_certificate_pem;
  std::string client_key_pem;
  std::string token;            // used without a token_file
  std::string token_file;       // to be read repeatedly: tokens rotate
  std::string tls_server_name;  // the name to check and send; "" = the server's
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

// The same for a text. `origin` is its path, for errors and relative paths.
Result<ClusterAccess> ParseKubeconfig(const std::string& text, const std::string& origin,
                                      std::string_view context = "");

inline constexpr std::string_view kServiceAccountFolder =
    "/var/run/secrets/kubernetes.io/serviceaccount";

// Access from inside a pod. Host and port are its KUBERNETES_SERVICE_HOST and _PORT, so no DNS is
// needed; the folder holds token, ca.crt and namespace. Error: kNotFound for a file that cannot be
// read.
Result<ClusterAccess> InClusterAccess(
    const std::string& host, const std::string& port,
    const std::string& folder = std::string(kServiceAccountFolder));

// Standard base64 with padding (RFC 4648 section 4); line breaks are skipped, anything else is
// refused.
std::optional<std::string> DecodeBase64(std::string_view text);

}  // namespace berth
