package interop

import (
	"bytes"
	"context"
	"crypto/ecdh"
	"crypto/rand"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"net/textproto"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/quic-go/quic-go"
	"github.com/quic-go/quic-go/http3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	pb "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/protobuf/proto"
)

// speaker is a proxy that is asked what it speaks.
type speaker struct {
	plain   string // without TLS
	secure  string // with TLS over TCP, and QUIC over UDP
	proxied string // without TLS, behind a load balancer that sends the PROXY protocol
	trust   *tls.Config
}

// capability is a row of the page "What headgate speaks".
type capability struct {
	group string // the heading of the rows from here on; empty for that of the row before
	name  string
	spec  string
	try   func(ctx context.Context, s *speaker) error // nil where the proxy speaks it
}

// capabilities are in the order of the page.
var capabilities = []capability{
	{"With clients", "HTTP/1.1", "RFC 9112", answers("h1", "/")},
	{"", "HTTP/2 over TLS", "RFC 9113", answers("h2", "/")},
	{"", "HTTP/2 without TLS", "RFC 9113, 3.3", answers("h2c", "/")},
	{"", "HTTP/3", "RFC 9114", answers("h3", "/")},
	{"", "HTTP/3 announced by itself (`Alt-Svc`)", "RFC 7838", announces},
	{"", "PROXY protocol, version 1", "HAProxy's specification", proxyProtocol("PROXY TCP4 192.0.2.7 127.0.0.1 1000 80\r\n")},
	{"", "PROXY protocol, version 2", "HAProxy's specification", proxyProtocol("\r\n\r\n\x00\r\nQUIT\n\x21\x11\x00\x0c\xc0\x00\x02\x07\x7f\x00\x00\x01\x03\xe8\x00\x50")},
	{"TLS", "TLS 1.2", "RFC 5246", handshake(tls.VersionTLS12, 0)},
	{"", "TLS 1.3", "RFC 8446", handshake(tls.VersionTLS13, 0)},
	{"", "Session resumption", "RFC 8446, 2.2", resumes},
	{"", "Post-quantum key exchange, X25519MLKEM768", "RFC 9794", handshake(tls.VersionTLS13, tls.X25519MLKEM768)},
	{"", "Post-quantum key exchange over QUIC", "RFC 9001", postQuantumQUIC},
	{"", "Encrypted Client Hello", "RFC 9849", hidesName(func(ctx context.Context, s *speaker, config *tls.Config) error {
		c, err := (&tls.Dialer{Config: config}).DialContext(ctx, "tcp4", s.secure)
		if err != nil {
			return err
		}
		return c.Close()
	})},
	{"", "Encrypted Client Hello over QUIC", "RFC 9849", hidesName(func(ctx context.Context, s *speaker, config *tls.Config) error {
		config.NextProtos = []string{http3.NextProtoH3}
		c, err := quic.DialAddr(ctx, s.secure, config, nil)
		if err != nil {
			return err
		}
		return c.CloseWithError(0, "")
	})},
	{"Exchanges", "WebSocket over HTTP/1.1", "RFC 6455", opensTunnel(func(_ context.Context, s *speaker) (io.ReadWriteCloser, error) { return webSocket(s.plain) })},
	{"", "WebSocket over HTTP/2", "RFC 8441", opensTunnel(func(ctx context.Context, s *speaker) (io.ReadWriteCloser, error) {
		return webSocket2(ctx, s.secure, s.trust.Clone())
	})},
	{"", "WebSocket over HTTP/3", "RFC 9220", opensTunnel(func(ctx context.Context, s *speaker) (io.ReadWriteCloser, error) {
		return webSocket3(ctx, s.secure, s.trust.Clone())
	})},
	{"", "103 Early Hints over HTTP/1.1", "RFC 8297", hints("h1")},
	{"", "103 Early Hints over HTTP/2", "RFC 8297", hints("h2")},
	{"", "103 Early Hints over HTTP/3", "RFC 8297", hints("h3")},
	{"", "gRPC", "HTTP/2 to the server", grpcCall},
	{"", "gRPC from clients of HTTP/3", "HTTP/2 to the server", grpcCall3},
	{"", "Trailer fields of requests, HTTP/2 to HTTP/1.1", "RFC 9110, 6.5", requestTrailers},
	{"", "Trailer fields of responses, HTTP/1.1 to HTTP/2", "RFC 9110, 6.5", responseTrailers("h2")},
	{"", "Trailer fields of responses, HTTP/1.1 to HTTP/3", "RFC 9110, 6.5", responseTrailers("h3")},
	{"", "Compression with gzip", "RFC 1952", compresses("gzip")},
	{"", "Compression with Brotli", "RFC 7932", compresses("br")},
	{"", "Compression with zstd", "RFC 8878", compresses("zstd")},
	{"With servers", "HTTP/2 over TLS", "RFC 9113", answers("h1", "/h2/")},
	{"", "HTTP/2 without TLS", "RFC 9113, 3.3", answers("h1", "/h2c/")},
	{"", "HTTP/1.1 over a Unix socket", "", answers("h1", "/unix/")},
}

// compressible is longer than what any of the proxies leaves as it is.
var compressible = strings.Repeat("a text that can be compressed. ", 1000)

// speakersServer is the server behind each proxy.
var speakersServer = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
	switch r.URL.Path {
	case "/hints":
		w.Header().Set("Link", "</style.css>; rel=preload; as=style")
		w.WriteHeader(http.StatusEarlyHints)
		w.WriteHeader(http.StatusOK)
	case "/text":
		w.Header().Set("Content-Type", "text/plain")
		io.WriteString(w, compressible)
	case "/trailers":
		io.Copy(io.Discard, r.Body)
		w.Header().Set("Trailer", "X-Last")
		w.WriteHeader(http.StatusOK)
		fmt.Fprint(w, "got ", r.Trailer.Get("X-Sent"))
		w.Header().Set("X-Last", "last")
	case "/client":
		fmt.Fprint(w, r.Header.Get("X-Forwarded-For"))
	default: // a server of HTTP/2 is asked below a path of its own
		fmt.Fprint(w, r.Proto)
	}
})

// speakersServers are the addresses of the servers behind each proxy.
type speakersServers struct {
	plain, h2, h2c, unix, ws, grpc string
	ca                             string // file of the authority of h2
}

// startSpeakersServers starts them.
func startSpeakersServers(t *testing.T, id *identity) *speakersServers {
	t.Helper()
	s := &speakersServers{ws: strings.TrimPrefix(echoUpgrades(t), "http://"), unix: filepath.Join(shortDir(t), "s")}
	start := func(l net.Listener, change func(*httptest.Server)) string {
		server := httptest.NewUnstartedServer(speakersServer)
		server.Listener.Close()
		server.Listener = l
		change(server)
		t.Cleanup(server.Close)
		return l.Addr().String()
	}
	listen := func(network, address string) net.Listener {
		l, err := net.Listen(network, address)
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
	s.plain = start(listen("tcp4", "127.0.0.1:0"), (*httptest.Server).Start)
	start(listen("unix", s.unix), (*httptest.Server).Start)
	os.Chmod(s.unix, 0o777)
	s.h2 = start(listen("tcp4", "127.0.0.1:0"), func(server *httptest.Server) {
		server.EnableHTTP2, server.TLS = true, &tls.Config{Certificates: []tls.Certificate{id.tls}}
		server.StartTLS()
	})
	s.h2c = start(listen("tcp4", "127.0.0.1:0"), func(server *httptest.Server) {
		server.Config.Protocols = new(http.Protocols)
		server.Config.Protocols.SetUnencryptedHTTP2(true)
		server.Start()
	})
	s.grpc, _ = grpcServer(t, "tcp", "127.0.0.1:0", nil)
	s.ca = filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(s.ca, []byte(id.cert), 0o600); err != nil {
		t.Fatal(err)
	}
	return s
}

// client returns a client that speaks one version only.
func (s *speaker) client(version string) (c *http.Client, scheme string, end func()) {
	trust := s.trust.Clone()
	dial := func(address string) func(context.Context, string, string) (net.Conn, error) {
		return func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "tcp4", address)
		}
	}
	switch version {
	case "h3":
		tr := &http3.Transport{TLSClientConfig: trust, Dial: func(ctx context.Context, _ string, tc *tls.Config, qc *quic.Config) (*quic.Conn, error) {
			return quic.DialAddr(ctx, s.secure, tc, qc)
		}}
		return &http.Client{Transport: tr}, "https", func() { tr.Close() }
	case "h2c":
		tr := &http.Transport{Protocols: new(http.Protocols), DialContext: dial(s.plain)}
		tr.Protocols.SetUnencryptedHTTP2(true)
		return &http.Client{Transport: tr}, "http", tr.CloseIdleConnections
	}
	tr := &http.Transport{TLSClientConfig: trust, Protocols: new(http.Protocols), DialContext: dial(s.secure), DisableCompression: true}
	tr.Protocols.SetHTTP2(version == "h2")
	tr.Protocols.SetHTTP1(version == "h1")
	return &http.Client{Transport: tr}, "https", tr.CloseIdleConnections
}

// get sends a GET request, and returns the response with its body read.
func (s *speaker) get(ctx context.Context, version, path string, fields ...string) (*http.Response, string, error) {
	return s.send(ctx, version, "GET", path, nil, nil, fields...)
}

// send sends a request, with trailer fields where they are given.
func (s *speaker) send(ctx context.Context, version, method, path string, body io.Reader, trailer http.Header, fields ...string) (*http.Response, string, error) {
	c, scheme, end := s.client(version)
	defer end()
	rq, err := http.NewRequestWithContext(ctx, method, scheme+"://localhost"+path, body)
	if err != nil {
		return nil, "", err
	}
	rq.Trailer = trailer
	for i := 0; i+1 < len(fields); i += 2 {
		rq.Header.Set(fields[i], fields[i+1])
	}
	rs, err := c.Do(rq)
	if err != nil {
		return nil, "", err
	}
	defer rs.Body.Close()
	got, err := io.ReadAll(rs.Body)
	if err == nil && rs.StatusCode != http.StatusOK {
		err = errors.New(rs.Status)
	}
	return rs, string(got), err
}

// answers tries a version with clients, and the one of the server at the path.
func answers(version, path string) func(context.Context, *speaker) error {
	want := "HTTP/1.1"
	if strings.HasPrefix(path, "/h2") {
		want = "HTTP/2.0"
	}
	return func(ctx context.Context, s *speaker) error {
		_, got, err := s.get(ctx, version, path)
		if err == nil && got != want {
			err = fmt.Errorf("the server was asked with %q", got)
		}
		return err
	}
}

// announces tries whether a client of TCP learns of HTTP/3 without a rule for it.
func announces(ctx context.Context, s *speaker) error {
	rs, _, err := s.get(ctx, "h2", "/")
	if err == nil && !strings.Contains(rs.Header.Get("Alt-Svc"), "h3=") {
		err = fmt.Errorf("Alt-Svc: %q", rs.Header.Get("Alt-Svc"))
	}
	return err
}

// proxyProtocol tries a header of it in front of a request.
func proxyProtocol(header string) func(context.Context, *speaker) error {
	return func(ctx context.Context, s *speaker) error {
		c, err := new(net.Dialer).DialContext(ctx, "tcp4", s.proxied)
		if err != nil {
			return err
		}
		defer c.Close()
		if until, ok := ctx.Deadline(); ok {
			c.SetDeadline(until)
		}
		fmt.Fprintf(c, "%sGET /client HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n", header)
		got, err := io.ReadAll(c)
		if err == nil && !bytes.Contains(got, []byte("192.0.2.7")) {
			err = fmt.Errorf("the server was told %q", got)
		}
		return err
	}
}

// handshake tries a version of TLS, and a key exchange where it is not 0.
func handshake(version uint16, exchange tls.CurveID) func(context.Context, *speaker) error {
	return func(ctx context.Context, s *speaker) error {
		config := s.trust.Clone()
		config.MinVersion, config.MaxVersion = version, version
		if exchange != 0 {
			config.CurvePreferences = []tls.CurveID{exchange}
		}
		c, err := (&tls.Dialer{Config: config}).DialContext(ctx, "tcp4", s.secure)
		if err != nil {
			return err
		}
		return c.Close()
	}
}

// resumes tries whether a second connection resumes the session of the first.
func resumes(ctx context.Context, s *speaker) error {
	config := s.trust.Clone()
	config.ClientSessionCache = tls.NewLRUClientSessionCache(1)
	resumed := false
	for range 2 {
		c, err := (&tls.Dialer{Config: config}).DialContext(ctx, "tcp4", s.secure)
		if err != nil {
			return err
		}
		if until, ok := ctx.Deadline(); ok {
			c.SetDeadline(until)
		}
		fmt.Fprint(c, "GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
		_, err = io.Copy(io.Discard, c) // the ticket comes with the response
		resumed = c.(*tls.Conn).ConnectionState().DidResume
		c.Close()
		if err != nil {
			return err
		}
	}
	if !resumed {
		return errors.New("a full handshake")
	}
	return nil
}

// postQuantumQUIC tries the key exchange over QUIC.
func postQuantumQUIC(ctx context.Context, s *speaker) error {
	config := s.trust.Clone()
	config.NextProtos, config.CurvePreferences = []string{http3.NextProtoH3}, []tls.CurveID{tls.X25519MLKEM768}
	c, err := quic.DialAddr(ctx, s.secure, config, nil)
	if err != nil {
		return err
	}
	return c.CloseWithError(0, "")
}

// speakersPublicName is the name that clients with Encrypted Client Hello show.
const speakersPublicName = "public.example.com"

// hidesName tries Encrypted Client Hello: a client with an unknown key is offered another, with
// which it hides the name.
func hidesName(connect func(context.Context, *speaker, *tls.Config) error) func(context.Context, *speaker) error {
	return func(ctx context.Context, s *speaker) error {
		config := s.trust.Clone()
		config.MinVersion = tls.VersionTLS13
		config.EncryptedClientHelloConfigList = unknownECH(speakersPublicName)
		config.EncryptedClientHelloRejectionVerify = func(tls.ConnectionState) error { return nil } // the tests' certificate has another name
		err := connect(ctx, s, config)
		var rejected *tls.ECHRejectionError
		if !errors.As(err, &rejected) || len(rejected.RetryConfigList) == 0 {
			return fmt.Errorf("no key is offered: %v", err)
		}
		config.EncryptedClientHelloConfigList = rejected.RetryConfigList
		return connect(ctx, s, config) // a client of crypto/tls fails if its name is not hidden
	}
}

// unknownECH returns an ECHConfigList with a key that no server has (RFC 9849, section 4).
func unknownECH(publicName string) []byte {
	key, err := ecdh.X25519().GenerateKey(rand.Reader)
	if err != nil {
		panic(err) // crypto/rand ends the process instead
	}
	b := append([]byte{7, 0, 0x20, 0, 32}, key.PublicKey().Bytes()...)
	b = append(b, 0, 4, 0, 1, 0, 1, 0, byte(len(publicName)))
	b = append(append(b, publicName...), 0, 0)
	size := binary.BigEndian.AppendUint16
	return append(size(size(size(nil, uint16(len(b)+4)), 0xfe0d), uint16(len(b))), b...)
}

// opensTunnel tries a WebSocket: it opens, and bytes go both ways.
func opensTunnel(open func(context.Context, *speaker) (io.ReadWriteCloser, error)) func(context.Context, *speaker) error {
	return func(ctx context.Context, s *speaker) error {
		c, err := open(ctx, s)
		if err != nil {
			return err
		}
		defer c.Close()
		echoed := make(chan error, 1)
		go func() {
			got, err := lines(c)([]byte("hello"))
			if err == nil && string(got) != "hello" {
				err = fmt.Errorf("got %q", got)
			}
			echoed <- err
		}()
		select {
		case err := <-echoed:
			return err
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// hints tries whether the client gets the 103 of the server before its response.
func hints(version string) func(context.Context, *speaker) error {
	return func(ctx context.Context, s *speaker) error {
		link := ""
		ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{Got1xxResponse: func(code int, h textproto.MIMEHeader) error {
			if code == http.StatusEarlyHints {
				link = h.Get("Link")
			}
			return nil
		}})
		_, _, err := s.get(ctx, version, "/hints")
		if err == nil && link == "" {
			err = errors.New("no 103")
		}
		return err
	}
}

// grpcCall tries a unary call with gRPC's own client.
func grpcCall(ctx context.Context, s *speaker) error {
	c, err := grpc.NewClient("passthrough:///"+s.secure, grpc.WithTransportCredentials(credentials.NewTLS(s.trust.Clone())), grpc.WithAuthority("localhost"))
	if err != nil {
		return err
	}
	defer c.Close()
	rs, err := pb.NewTestServiceClient(c).UnaryCall(ctx, &pb.SimpleRequest{Payload: text(10)})
	if err == nil && len(rs.GetPayload().GetBody()) != 10 {
		err = fmt.Errorf("%d bytes", len(rs.GetPayload().GetBody()))
	}
	return err
}

// grpcCall3 tries a unary call over HTTP/3: its status is in the trailer fields.
func grpcCall3(ctx context.Context, s *speaker) error {
	m, err := proto.Marshal(&pb.SimpleRequest{Payload: text(10)})
	if err != nil {
		return err
	}
	m = append(binary.BigEndian.AppendUint32([]byte{0}, uint32(len(m))), m...)
	rs, _, err := s.send(ctx, "h3", "POST", "/grpc.testing.TestService/UnaryCall", bytes.NewReader(m), nil, "Content-Type", "application/grpc", "Te", "trailers")
	if err == nil && rs.Trailer.Get("Grpc-Status") != "0" {
		err = fmt.Errorf("header fields %v, trailer fields %v", rs.Header, rs.Trailer)
	}
	return err
}

// requestTrailers tries whether the server gets those of a client.
func requestTrailers(ctx context.Context, s *speaker) error {
	_, got, err := s.send(ctx, "h2", "POST", "/trailers", io.MultiReader(strings.NewReader("body")), http.Header{"X-Sent": {"sent"}})
	if err == nil && got != "got sent" {
		err = fmt.Errorf("the server %s", got)
	}
	return err
}

// responseTrailers tries whether a client gets those of the server.
func responseTrailers(version string) func(context.Context, *speaker) error {
	return func(ctx context.Context, s *speaker) error {
		rs, _, err := s.get(ctx, version, "/trailers", "Te", "trailers")
		if err == nil && rs.Trailer.Get("X-Last") != "last" {
			err = fmt.Errorf("trailer fields %v", rs.Trailer)
		}
		return err
	}
}

// compresses tries a coding for text.
func compresses(coding string) func(context.Context, *speaker) error {
	return func(ctx context.Context, s *speaker) error {
		rs, got, err := s.get(ctx, "h1", "/text", "Accept-Encoding", coding)
		if err == nil && (rs.Header.Get("Content-Encoding") != coding || len(got) > len(compressible)/2) {
			err = fmt.Errorf("Content-Encoding: %q, %d bytes", rs.Header.Get("Content-Encoding"), len(got))
		}
		return err
	}
}

// patienceToSpeak bounds a try: some proxies let an unknown request wait.
const patienceToSpeak = 3 * time.Second

// tryAll tries every capability, and returns why those that failed did, by their place.
func (s *speaker) tryAll(ctx context.Context) []error {
	errs := make([]error, len(capabilities))
	for i, c := range capabilities {
		limited, cancel := context.WithTimeout(ctx, patienceToSpeak)
		errs[i] = c.try(limited, s)
		cancel()
	}
	return errs
}

// TestWhatHeadgateSpeaks tries each row of the page against headgate, and the page has what
// it found. With HEADGATE_SPEAKS=write it tries the other proxies, too, and writes the page.
func TestWhatHeadgateSpeaks(t *testing.T) {
	id := newIdentity(t)
	servers := startSpeakersServers(t, id)
	all := []*spoken{askHeadgate(t, id, servers)}
	for i, err := range all[0].errs {
		if err != nil {
			t.Logf("headgate does not speak %s: %v", capabilities[i].name, err)
		}
	}
	if os.Getenv("HEADGATE_SPEAKS") == "write" {
		for _, p := range speakers {
			all = append(all, askSpeaker(t, p, id, servers))
		}
		if err := os.WriteFile(speaksPage, []byte(writeSpeaks(all)), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	page, err := os.ReadFile(speaksPage)
	if err != nil {
		t.Fatal(err)
	}
	for i, c := range capabilities {
		if row := speaksRow(c) + all[0].cell(i); !strings.Contains(string(page), row) {
			t.Errorf("%s has no line %q…; it was %v. HEADGATE_SPEAKS=write writes the page", speaksPage, row, all[0].errs[i])
		}
	}
}
