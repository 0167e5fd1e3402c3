//go:build linux

package main

import (
	"bufio"
	"crypto/tls"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"sync"
	"time"

	"github.com/quic-go/quic-go/http3"
)

// reverseProxyWord makes this program serve as the peer net/http.
const reverseProxyWord = "serve-reverse-proxy"

// reverseProxyPeer is the proxy of Go's standard library, tuned: enough idle
// connections, no compression, buffers used again. It is this program itself.
func reverseProxyPeer() peer {
	self, err := os.Executable()
	if err != nil {
		self = os.Args[0]
	}
	return peer{
		name:    "net/http",
		program: self,
		file:    "upstream",
		config:  func(s setup) string { return s.upstreams[0] },
		argv: func(s setup) []string {
			logFile := ""
			if s.accessLog {
				logFile = "access.log"
			}
			argv := []string{self, reverseProxyWord, s.address, s.upstreams[0], logFile}
			if s.tls {
				argv = append(argv, s.certificate.file, s.certificate.key)
			}
			if s.quic {
				argv = append(argv, "quic")
			}
			return argv
		},
		env: goProcessors,
	}
}

// serveReverseProxy listens on args[0], forwards to args[1], and writes an access
// log to args[2] if that is not empty. With args[3] and args[4], a certificate and
// its key, it speaks TLS, and HTTP/2 over it; with args[5], HTTP/3 too.
func serveReverseProxy(args []string) error {
	if len(args) != 3 && len(args) != 5 && len(args) != 6 {
		return fmt.Errorf("%s wants an address, an upstream, a log file, and maybe a certificate, its key, and a word for HTTP/3", reverseProxyWord)
	}
	l, err := net.Listen("tcp", args[0])
	if err != nil {
		return err
	}
	var handler http.Handler = newReverseProxy(args[1])
	if args[2] != "" {
		file, err := os.Create(args[2])
		if err != nil {
			return err
		}
		handler = &combinedLog{next: handler, out: bufio.NewWriterSize(file, 64<<10)}
	}
	if len(args) == 6 {
		handler = withFixed(handler)
		go func() { _ = http3.ListenAndServeQUIC(args[0], args[3], args[4], handler) }() // the measurement tells of a failure
		args = args[:5]
	}
	server := &http.Server{Handler: handler, ErrorLog: log.New(io.Discard, "", 0)}
	if len(args) == 5 {
		server.TLSConfig = &tls.Config{MinVersion: tls.VersionTLS13}
		return server.ServeTLS(l, args[3], args[4])
	}
	return server.Serve(l)
}

// withFixed answers fixedPath with the hundred bytes.
func withFixed(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != fixedPath {
			next.ServeHTTP(w, r)
			return
		}
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		_, _ = io.WriteString(w, hundredBytes)
	})
}

func newReverseProxy(upstream string) *httputil.ReverseProxy {
	target := &url.URL{Scheme: "http", Host: upstream}
	return &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(target)
			host := r.In.Host
			address, _, _ := net.SplitHostPort(r.In.RemoteAddr)
			scheme := "http"
			if r.In.TLS != nil {
				scheme = "https"
			}
			r.Out.Host = host
			h := r.Out.Header
			h["Forwarded"] = []string{"for=" + address + ", host=" + host + ", proto=" + scheme}
			h["X-Forwarded-For"] = []string{address}
			h["X-Forwarded-Proto"] = []string{scheme}
			h["X-Forwarded-Host"] = []string{host}
			h["Via"] = []string{"proxy"}
		},
		Transport: &http.Transport{
			MaxIdleConns:        1024,
			MaxIdleConnsPerHost: 1024,
			IdleConnTimeout:     time.Hour,
			DisableCompression:  true,
		},
		BufferPool: &buffers{},
		ErrorLog:   log.New(io.Discard, "", 0),
	}
}

// buffers keeps copy buffers of 32 KiB.
type buffers struct{ pool sync.Pool }

// Get returns a buffer.
func (b *buffers) Get() []byte {
	if p, ok := b.pool.Get().(*[]byte); ok {
		return *p
	}
	return make([]byte, 32<<10)
}

// Put takes a buffer back.
func (b *buffers) Put(p []byte) { b.pool.Put(&p) }

// combinedLog writes a line in the combined format for each request.
type combinedLog struct {
	next http.Handler

	mu  sync.Mutex
	out *bufio.Writer // guarded by mu
}

// ServeHTTP serves the request and logs it.
func (c *combinedLog) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	counted := &countingWriter{ResponseWriter: w, status: http.StatusOK}
	began := time.Now()
	c.next.ServeHTTP(counted, r)
	address, _, _ := net.SplitHostPort(r.RemoteAddr)
	c.mu.Lock()
	defer c.mu.Unlock()
	fmt.Fprintf(c.out, "%s - - [%s] \"%s %s %s\" %d %d %q %q\n",
		address, began.Format("02/Jan/2006:15:04:05 -0700"), r.Method, r.RequestURI, r.Proto,
		counted.status, counted.bytes, r.Referer(), r.UserAgent())
}

// countingWriter notes the status and counts the bytes of the body.
type countingWriter struct {
	http.ResponseWriter
	status int
	bytes  int64
}

// WriteHeader notes the status.
func (c *countingWriter) WriteHeader(status int) {
	c.status = status
	c.ResponseWriter.WriteHeader(status)
}

// Write counts.
func (c *countingWriter) Write(p []byte) (int, error) {
	n, err := c.ResponseWriter.Write(p)
	c.bytes += int64(n)
	return n, err
}

// Unwrap lets the reverse proxy flush.
func (c *countingWriter) Unwrap() http.ResponseWriter { return c.ResponseWriter }
