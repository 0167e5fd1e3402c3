package upstream

import (
	"crypto/x509"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"headgate/internal/exchange"
	"headgate/internal/exchange/exchangetest"
)

// h2cServer is a server that speaks HTTP/2 without TLS.
type h2cServer struct {
	*httptest.Server
	mu    sync.Mutex
	conns map[net.Conn]bool
}

// newH2C runs a server that speaks HTTP/2 until the test ends.
func newH2C(t *testing.T, handler http.HandlerFunc, change ...func(*http.Server)) *h2cServer {
	t.Helper()
	s := &h2cServer{Server: httptest.NewUnstartedServer(handler), conns: map[net.Conn]bool{}}
	s.Config.Protocols = new(http.Protocols)
	s.Config.Protocols.SetUnencryptedHTTP2(true)
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	for _, f := range change {
		f(s.Config)
	}
	s.Config.ConnState = func(nc net.Conn, state http.ConnState) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.conns[nc] = true
	}
	s.Start()
	t.Cleanup(s.Close)
	return s
}

// opened returns how many connections there were.
func (s *h2cServer) opened() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.conns)
}

func (s *h2cServer) target() Target {
	address := s.Listener.Addr().String()
	return Target{URL: "h2c://" + address, Address: address, Authority: address, Weight: 1, HTTP2: true}
}

// echoes answers with what it was sent.
func echoes(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Trailer", "X-Sum")
	w.Header().Set("X-Proto", r.Proto)
	w.Header().Set("X-Host", r.Host)
	w.Header().Set("X-Length", fmt.Sprint(r.ContentLength))
	n, err := io.Copy(flushing{w}, r.Body)
	w.Header().Set("X-Sum", fmt.Sprint(n, err, r.Trailer.Get("X-After")))
}

type flushing struct{ http.ResponseWriter }

func (f flushing) Write(p []byte) (int, error) {
	n, err := f.ResponseWriter.Write(p)
	f.ResponseWriter.(http.Flusher).Flush()
	return n, err
}

func TestSharedConnection(t *testing.T) {
	server := newH2C(t, echoes)
	s := newServers(t, settings, server.target())
	long := strings.Repeat("0123456789abcdef", 1<<16)
	for _, c := range []struct {
		name   string
		option []exchangetest.Option
		body   string
		length string
	}{
		{"nothing", nil, "", "0"},
		{"short", []exchangetest.Option{exchangetest.Head("POST", "/x"), exchangetest.Content("abc")}, "abc", "3"},
		{"long", []exchangetest.Option{exchangetest.Head("PUT", "/x"), exchangetest.Content(long)}, long, fmt.Sprint(len(long))},
		{"pieces", []exchangetest.Option{exchangetest.Head("POST", "/x"), exchangetest.Chunks("a", "b", long, "c")}, "ab" + long + "c", "-1"},
	} {
		ex := exchangetest.New(t, c.option...)
		got := exchangetest.Run(t, ex, s)
		equal(t, c.name+": status", got.Status, 200)
		if got.Body != c.body {
			t.Errorf("%s: %d bytes came back, want %d: %s", c.name, len(got.Body), len(c.body), ex.Cause)
		}
		equal(t, c.name+": length", got.Field("x-length"), c.length)
		equal(t, c.name+": spoken", got.Field("x-proto"), "HTTP/2.0")
		equal(t, c.name+": host", got.Field("x-host"), "example.com")
		equal(t, c.name+": trailers", strings.Join(got.Trailer, ","), fmt.Sprintf("x-sum: %d <nil>", len(c.body)))
	}
	equal(t, "connections", server.opened(), 1)
}

func TestSharedConnectionCarriesManyAtOnce(t *testing.T) {
	server := newH2C(t, echoes, func(s *http.Server) { s.HTTP2 = &http.HTTP2Config{MaxConcurrentStreams: 10} })
	s := newServers(t, settings, server.target())
	var all sync.WaitGroup
	for i := range 100 {
		all.Go(func() {
			text := strings.Repeat(fmt.Sprint(i), 10_000)
			ex := exchangetest.New(t, exchangetest.Head("POST", "/"), exchangetest.Content(text))
			if got := exchangetest.Run(t, ex, s); got.Body != text {
				t.Errorf("request %d: %d %d bytes, want %d: %s", i, got.Status, len(got.Body), len(text), ex.Cause)
			}
		})
	}
	all.Wait()
	if n := server.opened(); n < 1 || n > 30 {
		t.Errorf("%d connections", n)
	}
}

func TestServerThatSpeaksNoHTTP2IsTold(t *testing.T) {
	server := newOdd(t, respondText(fine))
	to := Target{URL: "h2c://x", Address: server.address, Authority: "x", Weight: 1, HTTP2: true}
	s := newServers(t, settings, to)
	ex := exchangetest.New(t)
	equal(t, "status", exchangetest.Run(t, ex, s).Status, exchange.UpstreamInvalid.Status())
	if !strings.Contains(ex.Cause, "does it speak HTTP/2 without TLS") {
		t.Errorf("cause %q", ex.Cause)
	}
}

// A server that ends its connections again and again loses no request, whatever
// the method: what it has not looked at is sent again.
func TestGoAwayLosesNoRequest(t *testing.T) {
	server := newH2C(t, echoes)
	var asked sync.Map
	server.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if n, _ := asked.LoadOrStore(r.Header.Get("X-Worker"), new(int)); true {
			if *n.(*int)++; *n.(*int)%7 == 0 {
				w.Header().Set("Connection", "close") // says GOAWAY
			}
		}
		echoes(w, r)
	})
	s := newServers(t, settings, server.target())
	var all sync.WaitGroup
	for i := range 20 {
		all.Go(func() {
			for j := range 100 {
				text := fmt.Sprint("request ", i, " ", j)
				option := exchangetest.Content(text)
				if j%2 == 0 {
					option = exchangetest.Chunks(text[:3], text[3:])
				}
				ex := exchangetest.New(t, exchangetest.Head("POST", "/", fmt.Sprint("X-Worker: ", i)), option)
				if got := exchangetest.Run(t, ex, s); got.Status != 200 || got.Body != text {
					t.Errorf("request %d %d: %d %q, want %q: %s", i, j, got.Status, got.Body, text, ex.Cause)
					return
				}
			}
		})
	}
	all.Wait()
	if n := server.opened(); n < 5 {
		t.Errorf("%d connections: the server did not say GOAWAY", n)
	}
}

// A check by connecting offers what requests offer: a server that speaks nothing
// but HTTP/2 over TLS is well.
func TestConnectingToAServerThatSpeaksOnlyHTTP2(t *testing.T) {
	server := httptest.NewUnstartedServer(http.HandlerFunc(echoes))
	server.EnableHTTP2 = true
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.StartTLS()
	t.Cleanup(server.Close)
	server.TLS.NextProtos = []string{"h2"}
	address := server.Listener.Addr().String()
	authorities := x509.NewCertPool()
	authorities.AddCert(server.Certificate())
	to := Target{URL: "https://" + address, Address: address, Authority: address, Weight: 1,
		Secure: &Secure{Name: "127.0.0.1", Authorities: authorities, Key: "test"}}
	s := newServers(t, settings, to)
	if err := s.list[0].pool.try(10 * time.Second); err != nil {
		t.Error(err)
	}
	equal(t, "status", exchangetest.Run(t, exchangetest.New(t), s).Status, 200)
}
