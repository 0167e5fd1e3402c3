package h1_test

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"

	"headgate/internal/proto/http1"

	"headgate/internal/proto/uri"
)

// seen is a request as one reader understood it.
type seen struct {
	method, target, host, body string
	fields                     []string // sorted, without those for one connection
}

func (s seen) String() string {
	return fmt.Sprintf("%s %s host %q body %q fields %q", s.method, s.target, s.host, s.body, s.fields)
}

// recorder keeps the requests that were read whole, in order.
type recorder struct {
	sync.Mutex
	all     []seen
	garbage []string
}

func (r *recorder) add(s seen) {
	r.Lock()
	r.all = append(r.all, s)
	r.Unlock()
}

// drain returns what was seen since the last time.
func (r *recorder) drain() (all []seen, garbage []string) {
	r.Lock()
	defer r.Unlock()
	all, garbage = r.all, r.garbage
	r.all, r.garbage = nil, nil
	return all, garbage
}

// differ sends the same bytes through headgate to a strict server, and to
// net/http.
type differ struct {
	proxy    *proxy
	std      string
	through  recorder // what the server behind headgate saw
	standard recorder // what net/http saw
}

func newDiffer(t testing.TB) *differ {
	d := &differ{}
	o := newOrigin(t, func(c *peer, _ int) {
		c.SetDeadline(noDeadline)
		for method := d.record(c); method != ""; method = d.record(c) {
			if method == "HEAD" {
				c.try("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n")
			} else {
				c.ok("ok")
			}
		}
	})
	d.proxy = newProxy(t, o.addr)
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	d.std = ln.Addr().String()
	server := &http.Server{Handler: http.HandlerFunc(d.handle), ErrorLog: log.New(io.Discard, "", 0), MaxHeaderBytes: 32 << 10, DisableGeneralOptionsHandler: true}
	done := make(chan struct{})
	go func() {
		defer close(done)
		server.Serve(ln)
	}()
	t.Cleanup(func() {
		server.Close()
		<-done
	})
	return d
}

// handle is net/http's side.
func (d *differ) handle(w http.ResponseWriter, rq *http.Request) {
	body, err := io.ReadAll(rq.Body)
	if err == nil {
		target := rq.URL.RequestURI()
		if rq.URL.Opaque == "" && rq.RequestURI[0] == '/' || rq.RequestURI == "*" {
			target = rq.RequestURI
		}
		d.standard.add(seen{rq.Method, target, rq.Host, string(body), endToEnd(rq.Header)})
	}
	w.Write([]byte("ok"))
}

// record reads one request, strictly, and returns its method. It returns ""
// when no other can follow.
func (d *differ) record(c *peer) string {
	var head strings.Builder
	for !strings.HasSuffix(head.String(), "\r\n\r\n") {
		line, err := c.r.ReadString('\n')
		head.WriteString(line)
		if err != nil {
			if head.Len() > 0 {
				d.complain("no head: %q", head.String())
			}
			return ""
		}
	}
	var rq http1.RequestHead
	n, err := http1.ParseRequest([]byte(head.String()), &http1.Limits{HeadSize: 1 << 20, URISize: 1 << 20, Fields: 1000}, &rq)
	std, err2 := http.ReadRequest(bufio.NewReader(strings.NewReader(head.String())))
	if err2 != nil && !decodable(rq.Target) {
		std, err2 = &http.Request{Header: http.Header{}}, nil // for the path normaliser to judge
	}
	if n != head.Len() || err != nil || err2 != nil {
		d.complain("not a head: %v, %v: %q", err, err2, head.String())
		return ""
	}
	if rq.ExpectContinue {
		c.try("HTTP/1.1 100 Continue\r\n\r\n")
	}
	body, err := readBody(c, &rq)
	if err != nil {
		return ""
	}
	d.through.add(seen{rq.Method, rq.Target, rq.Authority, body, endToEnd(std.Header)})
	return rq.Method
}

func (d *differ) complain(format string, args ...any) {
	d.through.Lock()
	d.through.garbage = append(d.through.garbage, fmt.Sprintf(format, args...))
	d.through.Unlock()
}

func readBody(c *peer, rq *http1.RequestHead) (string, error) {
	switch rq.Framing {
	case http1.Length:
		b := make([]byte, rq.ContentLength)
		_, err := io.ReadFull(c.r, b)
		return string(b), err
	case http1.Chunked:
		b, err := io.ReadAll(httputil.NewChunkedReader(c.r))
		for line := ""; err == nil && line != "\r\n"; {
			line, err = c.r.ReadString('\n')
		}
		return string(b), err
	}
	return "", nil
}

// endToEnd returns the fields that a proxy passes on unchanged.
func endToEnd(h http.Header) []string {
	h = h.Clone()
	for _, v := range h["Connection"] {
		for name := range strings.SplitSeq(v, ",") {
			name = http.CanonicalHeaderKey(strings.TrimSpace(name))
			if strings.HasPrefix(name, "X-Nominated") {
				h.Del(name)
			}
		}
	}
	for _, name := range []string{"Connection", "Keep-Alive", "Proxy-Connection", "Te", "Trailer", "Transfer-Encoding", "Upgrade", "Expect",
		"Content-Length", "Host", "Forwarded", "Via", "X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto",
		"Proxy-Authenticate", "Proxy-Authorization", "Pragma", "Cache-Control", "Http2-Settings", "Proxy-Authentication-Info"} {
		h.Del(name)
	}
	var all []string
	for name, values := range h {
		all = append(all, name+": "+strings.Join(values, "|"))
	}
	slices.Sort(all)
	return all
}

// send writes text, closes our side, and reads to the end.
func (d *differ) send(t testing.TB, address, text string) string {
	nc, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	c := newPeer(t, nc)
	defer c.Close()
	wrote := make(chan struct{})
	go func() {
		defer close(wrote)
		c.try(text)
		c.CloseWrite()
	}()
	got, err := io.ReadAll(c.r)
	<-wrote
	var late net.Error
	if errors.As(err, &late) && late.Timeout() {
		t.Errorf("no end to %.300q after %.100q", text, got)
	}
	return string(got)
}

// compare sends text both ways. What reaches the server must be what net/http
// understands, in the same order, as far as it goes. It returns how many
// requests passed.
func (d *differ) compare(t testing.TB, text string) int {
	got := d.send(t, d.proxy.addr, text)
	d.send(t, d.std, text)
	ours, garbage := d.through.drain()
	std, _ := d.standard.drain()
	for _, g := range garbage {
		t.Errorf("the server got what is no request\n%q\n%s", text, g)
	}
	for i, s := range ours {
		if !decodable(s.target) {
			return i // net/http reads no further
		}
		if i >= len(std) && closesSooner(text) {
			return i
		}
		if i >= len(std) {
			t.Errorf("passed on although net/http refuses it:\n%q\n%v", text, s)
			break
		}
		w := std[i]
		w.target = string(uri.AppendASCII(nil, w.target)) // what is not ASCII is passed on encoded
		if s.method != w.method || s.target != w.target || w.host != "" && s.host != w.host || s.body != w.body || !slices.Equal(s.fields, w.fields) {
			t.Errorf("understood in two ways:\n%q\nus  %v\nstd %v", text, s, w)
		}
	}
	if len(got) > 0 && !strings.HasPrefix(got, "HTTP/1.1 ") {
		t.Errorf("answer to %.300q: %.100q", text, got)
	}
	return len(ours)
}

// closesSooner reports whether net/http may end the connection where others go
// on: at an empty line before a request, which RFC 9112, section 2.2 wants to be
// skipped, and for HTTP/1.0, where it reads the first Connection field only.
func closesSooner(text string) bool {
	return strings.Contains(text, "HTTP/1.0") || strings.HasPrefix(text, "\r\n") || strings.Contains(text, "\n\r\n\r\n") || strings.Contains(text, "hello\r\n")
}

// decodable reports whether a target can be decoded. To judge that is the path
// normaliser's part, which these tests have none of.
func decodable(target string) bool {
	_, err := url.ParseRequestURI(target)
	return err == nil
}
