// SPDX-License-Identifier: Apache-2.0
#include <csignal>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "base/mutex.h"
#include "server/http/http_server.h"
#include "test/support/http_fixture.h"
#include "test/support/test_certificates.h"
#include "test/support/tls_client.h"

namespace berth::http::http_tls_test {
namespace {

using std::chrono::milliseconds;
using test::ConnectTo;
using test::Eventually;
using test::Identity;
using test::LocalOptions;
using test::MakeIdentity;
using test::Post;
using test::RawClient;
using test::Request;
using test::StartServer;
using test::TlsClient;

class HttpTls : public testing::Test {
 protected:
  HttpTls() {
    std::signal(SIGPIPE, SIG_IGN);  // the test client writes to sockets that the server has closed
    options_.tls.emplace();
    options_.tls->certificate_file = folder_.WriteCertificate("tls.crt", server_identity_);
    options_.tls->key_file = folder_.WriteKey("tls.key", server_identity_);
  }

  void RequireClientCertificates() {
    options_.tls->client_ca_file = folder_.WriteCertificate("ca.crt", ca_);
  }

  std::string StartError() const {
    const auto server = HttpServer::Start(options_, test::EchoRoutes());
    return server ? "started" : server.error().message;
  }

  test::TemporaryFolder folder_;
  Identity ca_ = MakeIdentity("test-ca");
  Identity server_identity_ = MakeIdentity("berth", &ca_);
  HttpServerOptions options_ = LocalOptions();
};

bool Answers(TlsClient& client, const std::string& body) {
  return client.Send(Post("/filter", body)) &&
         client.ReadUntil("\r\n\r\n" + body).rfind("HTTP/1.1 200 ", 0) == 0;
}

TEST_F(HttpTls, ServesRequestsOfAllSizes) {
  const auto server = StartServer(options_);
  for (const int version : {TLS1_2_VERSION, TLS1_3_VERSION}) {
    TlsClient client(server->port(), ca_, nullptr, version);
    ASSERT_TRUE(client.connected());
    EXPECT_EQ(client.ServerName(), "berth");
    for (const std::size_t size : {1u, 157'000u, 3u}) {
      EXPECT_TRUE(Answers(client, std::string(size, 'x') + "END")) << size;
    }
  }
}

TEST_F(HttpTls, RefusesOldVersions) {
  const auto server = StartServer(options_);
  TlsClient client(server->port(), ca_, nullptr, TLS1_1_VERSION);
  EXPECT_FALSE(client.connected());
}

TEST_F(HttpTls, SaysGoodbyeWhenItCloses) {
  const auto server = StartServer(options_);
  TlsClient client(server->port(), ca_);
  client.Send(Request("GET", "/healthz", "Connection: close\r\n"));
  EXPECT_NE(client.ReadUntil("").find("\r\n\r\nok"), std::string::npos);
}

TEST_F(HttpTls, SaysWhenTheCertificateInUseEnds) {
  const auto server = StartServer(options_);
  const auto now = std::chrono::system_clock::to_time_t(std::chrono::system_clock::now());
  EXPECT_GT(server->stats().certificate_expires, now + 3000) << "made for an hour";
  EXPECT_LE(server->stats().certificate_expires, now + 3600);
  options_.tls.reset();
  EXPECT_EQ(StartServer(options_)->stats().certificate_expires, 0);
}

TEST_F(HttpTls, LetsTheClientReadThatItsBodyIsTooLarge) {
  options_.max_body_bytes = 10;
  const auto server = StartServer(options_);
  TlsClient client(server->port(), ca_);
  client.Send(Request("POST", "/filter", "Content-Length: 1000000\r\n"));
  client.Send(std::string(100'000, 'x'));
  EXPECT_EQ(client.ReadUntil("\r\n\r\n").rfind("HTTP/1.1 413 ", 0), 0u);
}

TEST_F(HttpTls, AcceptsClientsOfItsCa) {
  RequireClientCertificates();
  const auto server = StartServer(options_);
  const Identity scheduler = MakeIdentity("kube-scheduler", &ca_);
  for (const int version : {TLS1_2_VERSION, TLS1_3_VERSION}) {
    TlsClient client(server->port(), ca_, &scheduler, version);
    EXPECT_TRUE(Answers(client, "hello"));
  }
}

TEST_F(HttpTls, RefusesClientsWithoutAGoodCertificate) {
  RequireClientCertificates();
  const auto server = StartServer(options_);
  const Identity other_ca = MakeIdentity("test-ca");
  const Identity stranger = MakeIdentity("kube-scheduler", &other_ca);
  for (const int version : {TLS1_2_VERSION, TLS1_3_VERSION}) {
    for (const Identity* identity : {static_cast<const Identity*>(nullptr), &stranger}) {
      TlsClient client(server->port(), ca_, identity, version);
      EXPECT_FALSE(Answers(client, "hello"));
    }
  }
  EXPECT_TRUE(test::NobodyConnected(*server));
  EXPECT_EQ(server->stats().requests, 0u);
  EXPECT_EQ(server->stats().tls_handshake_failures, 4u);
}

// A client of TLS 1.3 sends its request before it can know that its certificate was refused. What
// resets the connection then is what it reports in place of the reason.
TEST_F(HttpTls, LetsTheClientReadWhatItsCertificateLacks) {
  RequireClientCertificates();
  const auto server = StartServer(options_);
  const Identity other_ca = MakeIdentity("other-ca");
  const Identity stranger = MakeIdentity("kube-scheduler", &other_ca);
  TlsClient client(server->port(), ca_, &stranger);
  ASSERT_TRUE(client.Send(Request("POST", "/filter", "Content-Length: 100000\r\n")));
  ASSERT_TRUE(Eventually([&] { return server->stats().tls_handshake_failures == 1; }));
  for (int i = 0; i < 10; ++i) {
    EXPECT_TRUE(client.Send(std::string(10'000, 'x'))) << i;
    std::this_thread::sleep_for(milliseconds(1));
  }
  EXPECT_EQ(client.ReadUntil(""), "");
  EXPECT_EQ(client.Failure(), "tlsv1 alert unknown ca");
}

TEST_F(HttpTls, LeavesNothingOfClientsThatOnlyConnect) {
  options_.header_timeout = milliseconds(150);
  const auto server = StartServer(options_);
  std::vector<RawClient> stay;
  for (int i = 0; i < 100; ++i) {
    const RawClient leaves = ConnectTo(*server);
    stay.push_back(ConnectTo(*server));
    stay.back().Send(i % 2 == 0 ? std::string_view() : std::string_view("\x16\x03\x01\x02", 4));
  }
  for (RawClient& client : stay) {
    EXPECT_TRUE(client.ReachesEnd());
  }
  EXPECT_TRUE(test::NobodyConnected(*server));
  EXPECT_EQ(server->stats().timeouts, 100u);
  TlsClient client(server->port(), ca_);
  EXPECT_TRUE(Answers(client, "alive"));
}

TEST_F(HttpTls, ClosesClientsThatSpeakPlainHttp) {
  const auto server = StartServer(options_);
  RawClient client = ConnectTo(*server);
  client.Send(Post("/filter", "{}"));
  EXPECT_EQ(client.ReadToEnd().find("<timeout>"), std::string::npos);
  EXPECT_TRUE(test::NobodyConnected(*server));
}

TEST_F(HttpTls, TimesOutSlowBodies) {
  options_.body_grace = milliseconds(150);
  const auto server = StartServer(options_);
  TlsClient client(server->port(), ca_);
  client.Send(Request("POST", "/filter", "Content-Length: 10\r\n") + "half");
  EXPECT_EQ(client.ReadUntil("\r\n\r\n").rfind("HTTP/1.1 408 ", 0), 0u);
}

TEST_F(HttpTls, NamesTheFileThatKeepsItFromStarting) {
  const std::string certificate = options_.tls->certificate_file;
  const std::string key = options_.tls->key_file;

  options_.tls->certificate_file = "/nowhere/tls.crt";
  EXPECT_EQ(StartError(),
            "tls.certificate_file: /nowhere/tls.crt: cannot be read: No such file or directory");
  options_.tls->certificate_file = "/";  // a folder
  EXPECT_EQ(StartError(), "tls.certificate_file: /: cannot be read: Is a directory");
  options_.tls->certificate_file = folder_.WriteText("bad.crt", "no certificate");
  EXPECT_NE(StartError().find("tls.certificate_file: cannot use "), std::string::npos);
  options_.tls->certificate_file = certificate;

  const Identity other = MakeIdentity("other", &ca_);
  options_.tls->key_file = folder_.WriteKey("other.key", other);
  EXPECT_NE(StartError().find("tls.key_file: cannot use " + options_.tls->key_file),
            std::string::npos)
      << StartError();
  options_.tls->key_file = key;

  options_.tls->client_ca_file = folder_.WriteText("empty.crt", "");
  EXPECT_NE(StartError().find("tls.client_ca_file: cannot use "), std::string::npos);
}

TEST_F(HttpTls, TakesRenewedCertificatesAndKeepsTheLastGoodOnes) {
  Mutex mutex;
  std::vector<std::string> reports;  // "" for a success
  options_.tls->reload_interval = milliseconds(20);
  options_.tls->on_reload = [&](const Status& status) {
    const MutexLock lock(mutex);
    reports.push_back(status ? "" : status.error().message);
  };
  const auto last_report = [&]() -> std::optional<std::string> {
    const MutexLock lock(mutex);
    return reports.empty() ? std::nullopt : std::optional(reports.back());
  };
  const auto server = StartServer(options_);
  TlsClient old_client(server->port(), ca_);
  EXPECT_EQ(old_client.ServerName(), "berth");

  folder_.WriteText("tls.crt", "half a certif");
  EXPECT_TRUE(Eventually(
      [&] { return last_report().value_or("").find("tls.certificate_file: cannot use ") == 0; }));
  TlsClient meanwhile(server->port(), ca_);
  EXPECT_EQ(meanwhile.ServerName(), "berth");
  EXPECT_TRUE(Answers(meanwhile, "hello"));

  const Identity renewed = MakeIdentity("berth-renewed", &ca_);
  folder_.WriteKey("tls.key", renewed);
  folder_.WriteCertificate("tls.crt", renewed);
  EXPECT_TRUE(Eventually([&] { return last_report() == ""; }));
  TlsClient new_client(server->port(), ca_);
  EXPECT_EQ(new_client.ServerName(), "berth-renewed");
  EXPECT_TRUE(Answers(new_client, "hello"));
  EXPECT_TRUE(Answers(old_client, "still here"));
}

TEST_F(HttpTls, DrainsLikePlainHttp) {
  const auto server = StartServer(options_);
  TlsClient client(server->port(), ca_);
  EXPECT_TRUE(Answers(client, "hello"));
  std::thread drain([&] { server->Drain(std::chrono::seconds(60)); });
  EXPECT_TRUE(Eventually([&] { return !ConnectTo(*server).connected(); }));
  client.Send(Post("/filter", "last"));
  EXPECT_NE(client.ReadUntil("last").find("Connection: close\r\n"), std::string::npos);
  drain.join();
}

}  // namespace
}  // namespace berth::http::http_tls_test
