package interop

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strings"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	official "google.golang.org/grpc/interop"
	pb "google.golang.org/grpc/interop/grpc_testing"
)

// officialCases are the cases of gRPC's interoperability tests as grpc-go has them,
// by the names that its client knows them by. Left out are those that need
// credentials of Google's cloud, those about load reports to grpc-go's balancer, and
// pick_first_unary, whose question this server does not answer.
var officialCases = map[string]func(context.Context, *grpc.ClientConn){
	"empty_unary":                 service(official.DoEmptyUnaryCall),
	"large_unary":                 service(official.DoLargeUnaryCall),
	"client_streaming":            service(official.DoClientStreaming),
	"server_streaming":            service(official.DoServerStreaming),
	"ping_pong":                   service(official.DoPingPong),
	"empty_stream":                service(official.DoEmptyStream),
	"timeout_on_sleeping_server":  service(official.DoTimeoutOnSleepingServer),
	"cancel_after_begin":          service(official.DoCancelAfterBegin),
	"cancel_after_first_response": service(official.DoCancelAfterFirstResponse),
	"custom_metadata":             service(official.DoCustomMetadata),
	"status_code_and_message":     service(official.DoStatusCodeAndMessage),
	"special_status_message":      service(official.DoSpecialStatusMessage),
	"unimplemented_method":        official.DoUnimplementedMethod,
	"unimplemented_service": func(ctx context.Context, cc *grpc.ClientConn) {
		official.DoUnimplementedService(ctx, pb.NewUnimplementedServiceClient(cc))
	},
}

func service(do func(context.Context, pb.TestServiceClient, ...grpc.CallOption)) func(context.Context, *grpc.ClientConn) {
	return func(ctx context.Context, cc *grpc.ClientConn) { do(ctx, pb.NewTestServiceClient(cc)) }
}

// officialCase tells a run of the test's binary that it is a client, and what it
// does: a case of grpc-go ends its process when it fails.
const officialCase = "HEADGATE_INTEROP_GRPC"

// call runs one case, given as its name, the address, the host and, for TLS, the file
// of the certificate.
func call(words string) int {
	f := strings.Split(words, " ")
	creds := insecure.NewCredentials()
	if len(f) == 4 {
		file, err := os.ReadFile(f[3])
		pool := x509.NewCertPool()
		if err != nil || !pool.AppendCertsFromPEM(file) {
			fmt.Fprintf(os.Stderr, "certificate %s: %v\n", f[3], err)
			return 1
		}
		creds = credentials.NewTLS(&tls.Config{RootCAs: pool})
	}
	cc, err := grpc.NewClient("passthrough:///"+f[1], grpc.WithTransportCredentials(creds), grpc.WithAuthority(f[2]))
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer cc.Close()
	ctx, stop := context.WithTimeout(context.Background(), patience)
	defer stop()
	officialCases[f[0]](ctx, cc)
	return 0
}

// TestGRPCOfficialCases runs grpc-go's own client and server at both ends, over h2c
// and TLS on both sides.
func TestGRPCOfficialCases(t *testing.T) {
	t.Parallel()
	id := newIdentity(t, "h2c", "https")
	g := prepare(t)
	g.put("cert.pem", id.cert)
	g.put("key.pem", id.key)
	plain := officialServer(t)
	secure := officialServer(t, grpc.Creds(credentials.NewServerTLSFromCert(&id.tls)))
	tlsPort, plainPort := free(t), free(t)
	g.start(fmt.Sprintf(`
version: 1
admin: {address: ""}
access_log: {path: stderr}
ports:
  secure: {address: %q, protocol: https}
  plain: {address: %q, protocol: http, h2c: true}
certificates: {main: {cert_file: cert.pem, key_file: key.pem}}
proxies:
  h2c: {virtual_hosts: [h2c], routes: [{servers: [{url: "h2c://%s"}]}]}
  https: {virtual_hosts: [https], routes: [{servers: [{url: "https://%s", tls: {ca_file: cert.pem}}]}]}
`, tlsPort, plainPort, plain, secure))
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for _, host := range []string{"h2c", "https"} {
		for way, rest := range map[string]string{"h2c": plainPort + " " + host, "TLS": tlsPort + " " + host + " " + g.dir + "/cert.pem"} {
			for name := range officialCases {
				t.Run(way+" to "+host+"/"+name, func(t *testing.T) {
					t.Parallel()
					client := exec.CommandContext(within(t), self)
					client.Env = append(os.Environ(), officialCase+"="+name+" "+rest)
					if out, err := client.CombinedOutput(); err != nil {
						t.Errorf("%v\n%s", err, out)
					}
				})
			}
		}
	}
}

// officialServer runs grpc-go's server of its tests and returns its address.
func officialServer(t *testing.T, options ...grpc.ServerOption) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer(options...)
	pb.RegisterTestServiceServer(server, official.NewTestServer())
	done := make(chan struct{})
	go func() { defer close(done); server.Serve(l) }()
	t.Cleanup(func() { server.Stop(); <-done })
	return l.Addr().String()
}
