// SPDX-License-Identifier: Apache-2.0
#include "config/kubeconfig.h"

#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>

#include <gtest/gtest.h>
#include <unistd.h>

namespace berth::kubeconfig_test {
namespace {

constexpr const char* kWhole = R"(apiVersion: v1
kind: Config
preferences: {}
current-context: prod
clusters:
- name: east
  cluster:
    server: https://10.0.0.1:6443
    certificate-authority-data: Q0EgUEVN
    tls-server-name: kubernetes
- name: lab
  cluster:
    server: https://lab.example:6443/k8s
    insecure-skip-tls-verify: true
contexts:
- name: prod
  context: {cluster: east, user: admin, namespace: berth-system}
- name: lab
  context: {cluster: lab, user: robot}
- name: nobody
  context: {cluster: lab}
users:
- name: admin
  user:
    client-certificate-data: Q0VSVA==
    client-key-data: S0VZ
- name: robot
  user: {token: "  secret\n", tokenFile: run/token}
)";

class Kubeconfig : public testing::Test {
 protected:
  Kubeconfig() {
    folder_ = testing::TempDir() + "berth_kubeconfig_" + std::to_string(getpid());
    std::filesystem::create_directories(folder_);
  }
  ~Kubeconfig() override { std::filesystem::remove_all(folder_); }

  std::string Write(const std::string& name, std::string_view text) const {
    std::ofstream(folder_ + "/" + name) << text;
    return folder_ + "/" + name;
  }

  std::string folder_;
};

std::string With(std::string_view old_text, std::string_view new_text) {
  std::string text = kWhole;
  const std::size_t at = text.find(old_text);
  EXPECT_NE(at, std::string::npos) << old_text;
  return text.replace(at, old_text.size(), new_text);
}

std::string ErrorOf(const std::string& text, std::string_view context = "") {
  const auto access = ParseKubeconfig(text, "cfg", context);
  return access ? "accepted" : access.error().message;
}

TEST_F(Kubeconfig, ReadsTheCurrentContext) {
  const auto access = LoadKubeconfig(Write("config", kWhole));
  ASSERT_TRUE(access) << access.error().message;
  EXPECT_EQ(access->server, "https://10.0.0.1:6443");
  EXPECT_EQ(access->ca_pem, "CA PEM");
  EXPECT_EQ(access->client_certificate_pem, "CERT");
  EXPECT_EQ(access->client_key_pem, "KEY");
  EXPECT_EQ(access->tls_server_name, "kubernetes");
  EXPECT_EQ(access->default_namespace, "berth-system");
  EXPECT_EQ(access->token, "");
  EXPECT_FALSE(access->insecure_skip_tls_verify);
}

TEST_F(Kubeconfig, ReadsTheContextThatIsAskedFor) {
  const auto access = LoadKubeconfig(Write("config", kWhole), "lab");
  ASSERT_TRUE(access) << access.error().message;
  EXPECT_EQ(access->server, "https://lab.example:6443/k8s");
  EXPECT_EQ(access->token, "secret");
  EXPECT_EQ(access->token_file, folder_ + "/run/token");  // not read here
  EXPECT_EQ(access->default_namespace, "default");
  EXPECT_TRUE(access->insecure_skip_tls_verify);
  EXPECT_TRUE(LoadKubeconfig(Write("config", kWhole), "nobody"));
}

TEST_F(Kubeconfig, ReadsFilesBesideIt) {
  Write("ca.crt", "the ca");
  const std::string absolute = Write("key.pem", "the key");
  Write("cert.pem", "the certificate");
  const std::string path =
      Write("config",
            "current-context: c\ncontexts: [{name: c, context: {cluster: k, user: u}}]\n"
            "clusters: [{name: k, cluster: {server: 'http://h', certificate-authority: ca.crt}}]\n"
            "users: [{name: u, user: {client-certificate: cert.pem, client-key: " +
                absolute + "}}]\n");
  const auto access = LoadKubeconfig(path);
  ASSERT_TRUE(access) << access.error().message;
  EXPECT_EQ(access->ca_pem, "the ca");
  EXPECT_EQ(access->client_certificate_pem, "the certificate");
  EXPECT_EQ(access->client_key_pem, "the key");

  std::filesystem::remove(folder_ + "/ca.crt");
  const auto gone = LoadKubeconfig(path);
  ASSERT_FALSE(gone);
  EXPECT_EQ(gone.error().code, Errc::kNotFound);
  EXPECT_EQ(gone.error().message, path +
                                      ":3: clusters[k].cluster.certificate-authority: " + folder_ +
                                      "/ca.crt: cannot be read: No such file or directory");
  Write("ca.crt", "");
  EXPECT_NE(LoadKubeconfig(path).error().message.find("got an empty file"), std::string::npos);
}

TEST(KubeconfigRefusals, NameThePlace) {
  struct Case {
    const char* description;
    std::string text;
    const char* want;
  };
  const Case cases[] = {
      {"no context", With("current-context: prod", ""),
       "cfg:1: current-context: want the name of a context, got none"},
      {"unknown context", With("current-context: prod", "current-context: dev"),
       "cfg:16: contexts: want one named \"dev\", got none"},
      {"unknown cluster", With("cluster: east,", "cluster: west,"),
       "cfg:6: clusters: want one named \"west\", got none"},
      {"unknown user", With("user: admin,", "user: root,"),
       "cfg:23: users: want one named \"root\", got none"},
      {"no cluster", With("cluster: east, ", ""),
       "cfg:17: contexts[prod].context.cluster: want a text, got none"},
      {"no server", With("    server: https://10.0.0.1:6443\n", ""),
       "cfg:8: clusters[east].cluster.server: want a text, got none"},
      {"a server without scheme", With("https://10.0.0.1", "10.0.0.1"),
       "cfg:8: clusters[east].cluster.server: want https://..., got \"10.0.0.1:6443\""},
      {"bad base64", With("Q0EgUEVN", "Q0EgUEV"),
       "cfg:8: clusters[east].cluster.certificate-authority-data: want base64"},
      {"half a key pair", With("    client-key-data: S0VZ\n", ""),
       "cfg:25: users[admin].user.client-certificate: want it with client-key, got one of the two"},
      {"a proxy", With("tls-server-name: kubernetes", "proxy-url: http://proxy"),
       "cfg:10: clusters[east].cluster.proxy-url: not supported, reach the API server directly"},
      {"exec", With("client-key-data: S0VZ", "exec: {command: aws}"),
       "cfg:26: users[admin].user.exec: not supported, use a token or a client certificate"},
      {"auth-provider", With("client-key-data: S0VZ", "auth-provider: {name: gcp}"),
       "cfg:26: users[admin].user.auth-provider: not supported, use a token or a client "
       "certificate"},
      {"a password", With("client-key-data: S0VZ", "password: p"),
       "cfg:26: users[admin].user.password: not supported, use a token or a client certificate"},
      {"impersonation", With("client-key-data: S0VZ", "as: root"),
       "cfg:26: users[admin].user.as: not supported, use a token or a client certificate"},
      {"the same name twice", With("- name: lab\n  cluster", "- name: east\n  cluster"),
       "cfg:11: clusters[east].name: want it once, got it twice"},
      {"the same key twice", With("tls-server-name: kubernetes", "server: https://other"),
       "cfg:8: clusters[east].cluster.server: want it once, got it twice"},
      {"not a boolean", With("tls-server-name: kubernetes", "insecure-skip-tls-verify: maybe"),
       "cfg:8: clusters[east].cluster.insecure-skip-tls-verify: want true or false, got \"maybe\""},
      {"insecure with a CA", With("tls-server-name: kubernetes", "insecure-skip-tls-verify: true"),
       "cfg:8: clusters[east].cluster.insecure-skip-tls-verify: want it without "
       "certificate-authority, got both"},
      {"a list for a text", With("server: https://10.0.0.1:6443", "server: [a]"),
       "cfg:8: clusters[east].cluster.server: want a text"},
      {"a mapping for a list", "current-context: a\ncontexts: {}\n",
       "cfg:2: contexts: want a list"},
      {"a text for a mapping", With("{cluster: east, user: admin, namespace: berth-system}", "x"),
       "cfg:17: contexts[prod].context.cluster: want it in a mapping"},
      {"no mapping at all", "- a\n", "cfg:1: current-context: want it in a mapping"},
      {"nothing", "", "cfg:1: current-context: want the name of a context, got none"},
      {"no YAML", "a: [", "cfg:1: not YAML: "},
  };
  for (const Case& c : cases) {
    const std::string error = ErrorOf(c.text);
    EXPECT_TRUE(error.starts_with(c.want)) << c.description << ": " << error;
  }
}

// A file that is being written ends anywhere.
TEST(KubeconfigRefusals, SurviveATextThatEndsAnywhere) {
  const std::string whole = kWhole;
  for (const char* context : {"", "prod", "lab"}) {
    for (std::size_t length = 0; length < whole.size(); ++length) {
      const auto access = ParseKubeconfig(whole.substr(0, length), "cfg", context);
      if (access) {
        EXPECT_GT(length, whole.find("users:")) << length;
        continue;
      }
      EXPECT_TRUE(access.error().message.starts_with("cfg:")) << access.error().message;
      EXPECT_GT(access.error().message.size(), 10U);
    }
  }
}

// Whatever byte is damaged: an answer or a message, never an end.
TEST(KubeconfigRefusals, SurviveADamagedByteAnywhere) {
  for (const char damage : {'\0', '{', '"', '&', ':'}) {
    std::string text = kWhole;
    for (char& c : text) {
      const char good = std::exchange(c, damage);
      const auto access = ParseKubeconfig(text, "cfg");
      if (!access) {
        EXPECT_FALSE(access.error().message.empty());
      }
      c = good;
    }
  }
}

TEST_F(Kubeconfig, InAPodTakesWhatIsMounted) {
  Write("token", "abc\n");
  Write("ca.crt", "the ca");
  Write("namespace", "berth-system\n");
  const auto access = InClusterAccess("10.96.0.1", "443", folder_);
  ASSERT_TRUE(access) << access.error().message;
  EXPECT_EQ(access->server, "https://10.96.0.1:443");
  EXPECT_EQ(access->ca_pem, "the ca");
  EXPECT_EQ(access->token_file, folder_ + "/token");
  EXPECT_EQ(access->default_namespace, "berth-system");
  EXPECT_EQ(InClusterAccess("fd00::1", "443", folder_)->server, "https://[fd00::1]:443");

  Write("token", "\n");
  EXPECT_EQ(InClusterAccess("10.96.0.1", "443", folder_).error().message,
            folder_ + "/token: want a token, got none");
  std::filesystem::remove(folder_ + "/token");
  EXPECT_EQ(InClusterAccess("10.96.0.1", "443", folder_).error().code, Errc::kNotFound);
  EXPECT_NE(InClusterAccess("", "443", folder_).error().message.find("KUBERNETES_SERVICE_HOST"),
            std::string::npos);
}

TEST(Base64, TakesTheStandardFormOnly) {
  EXPECT_EQ(DecodeBase64(""), "");
  EXPECT_EQ(DecodeBase64("Zg=="), "f");
  EXPECT_EQ(DecodeBase64("Zm8="), "fo");
  EXPECT_EQ(DecodeBase64("Zm9v"), "foo");
  EXPECT_EQ(DecodeBase64("Zm9v\r\nYmFy\n"), "foobar");
  EXPECT_EQ(DecodeBase64("+/8A"), std::string("\xfb\xff\0", 3));
  for (const char* bad :
       {"Z", "Zg", "Zm8", "Zg=", "=", "Zg==Zg==", "Z g=", "Zm9v=", "Z-9v", "Zg=x"}) {
    EXPECT_FALSE(DecodeBase64(bad)) << bad;
  }
}

}  // namespace
}  // namespace berth::kubeconfig_test
