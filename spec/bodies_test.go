package spec

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/quic-go/quic-go/http3"
)

// roundTripper returns a client of a program's for a way to headgate.
func (tr transport) roundTripper(t *testing.T) http.RoundTripper {
	insecure := &tls.Config{InsecureSkipVerify: true}
	if tr.http3 {
		h := &http3.Transport{TLSClientConfig: insecure}
		t.Cleanup(func() { h.Close() })
		return h
	}
	protocols := &http.Protocols{}
	protocols.SetHTTP1(!tr.http2)
	protocols.SetHTTP2(tr.http2)
	h := &http.Transport{TLSClientConfig: insecure, Protocols: protocols, ExpectContinueTimeout: patience}
	t.Cleanup(h.CloseIdleConnections)
	return h
}

// onEach plays a configuration before a server of net/http, over every protocol.
func onEach(t *testing.T, server http.HandlerFunc, settings string, play func(*testing.T, http.RoundTripper, string)) {
	for _, way := range transports {
		t.Run(way.name, func(t *testing.T) {
			up := httptest.NewServer(server)
			t.Cleanup(up.Close)
			s := newStage(t, fmt.Sprintf(`version: 1
ports: {web: {address: "127.0.0.1:8080", protocol: http}}
admin: {address: ""}
access_log: {enabled: false}
proxies: {p: {%s, routes: [{servers: [{url: %q}]}]}}
`, settings, up.URL), way)
			play(t, way.roundTripper(t), way.scheme()+"://"+s.addr+"/")
		})
	}
}

// paced is a body of pieces with pauses between them.
type paced struct {
	pieces int
	pause  time.Duration
	ticks  *time.Ticker
}

func (p *paced) Read(b []byte) (int, error) {
	if p.ticks == nil {
		p.ticks = time.NewTicker(p.pause)
	}
	<-p.ticks.C
	if p.pieces--; p.pieces < 0 {
		p.ticks.Stop()
		return 0, io.EOF
	}
	b[0] = 'x'
	return 1, nil
}

// An upload that makes progress is never killed, however long it takes and whatever
// request_timeout says; the time for the response begins when it is through.
func TestUploadsThatMakeProgressLive(t *testing.T) {
	server := func(w http.ResponseWriter, r *http.Request) {
		b, err := io.ReadAll(r.Body)
		fmt.Fprint(w, len(b), err)
	}
	onEach(t, server, "request_timeout: 150ms", func(t *testing.T, client http.RoundTripper, url string) {
		for _, length := range []int64{-1, 20} {
			r, _ := http.NewRequest("POST", url, &paced{pieces: 20, pause: 30 * time.Millisecond})
			r.ContentLength = length
			answer, err := client.RoundTrip(r)
			if err != nil {
				t.Fatalf("length %d: %v", length, err)
			}
			body, _ := io.ReadAll(answer.Body)
			answer.Body.Close()
			if answer.StatusCode != 200 || string(body) != "20 <nil>" {
				t.Errorf("length %d: status %d, %s; want all 20 bytes after 600 ms", length, answer.StatusCode, body)
			}
		}
	})
}

// A server that has the whole body and does not answer gets 504, and a body of the
// response may take longer than that.
func TestRequestTimeoutIsTheTimeToTheHead(t *testing.T) {
	server := func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		if r.Method == "POST" {
			<-r.Context().Done()
			return
		}
		w.WriteHeader(200)
		http.NewResponseController(w).Flush()
		io.Copy(w, &paced{pieces: 10, pause: 40 * time.Millisecond})
	}
	onEach(t, server, "request_timeout: 150ms", func(t *testing.T, client http.RoundTripper, url string) {
		r, _ := http.NewRequest("POST", url, strings.NewReader("body"))
		answer, err := client.RoundTrip(r)
		if err != nil || answer.StatusCode != 504 {
			t.Fatalf("%v, %v; want 504", answer, err)
		}
		answer.Body.Close()
		r, _ = http.NewRequest("GET", url, nil)
		if answer, err = client.RoundTrip(r); err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close()
		if body, err := io.ReadAll(answer.Body); len(body) != 10 || err != nil {
			t.Errorf("%d bytes, %v; want 10 after 400 ms", len(body), err)
		}
	})
}

// A body whose length is above the limit is refused before its sender hears that it
// may send it, and no server hears of it.
func TestTooLargeByLength(t *testing.T) {
	var asked atomic.Int64
	onEach(t, func(http.ResponseWriter, *http.Request) { asked.Add(1) }, "request_body_limit: 10", func(t *testing.T, client http.RoundTripper, url string) {
		for _, expect := range []string{"", "100-continue"} {
			r, _ := http.NewRequest("POST", url, strings.NewReader("12345678901"))
			if expect != "" {
				r.Header.Set("Expect", expect)
			}
			trace := &httptrace.ClientTrace{Got100Continue: func() { t.Error("the client was told to go on") }}
			answer, err := client.RoundTrip(r.WithContext(httptrace.WithClientTrace(context.Background(), trace)))
			if err != nil || answer.StatusCode != 413 {
				t.Fatalf("expect %q: %v, %v; want 413", expect, answer, err)
			}
			answer.Body.Close()
		}
	})
	if asked.Load() > 0 {
		t.Errorf("servers were asked %d times", asked.Load())
	}
}

// endless is a body that goes on until its stream is cut, and counts.
type endless struct{ sent *atomic.Int64 }

func (e endless) Read(b []byte) (int, error) {
	e.sent.Add(int64(len(b)))
	return len(b), nil
}

// A body of unknown length that passes the limit while it streams gets 413 and its
// sender stops; the server sees it break off, never whole.
func TestTooLargeWhileItStreams(t *testing.T) {
	seen := make(chan error, 4)
	server := func(w http.ResponseWriter, r *http.Request) {
		_, err := io.Copy(io.Discard, r.Body)
		seen <- err
		if err == nil {
			w.WriteHeader(200)
		}
	}
	onEach(t, server, "request_body_limit: 100KiB", func(t *testing.T, client http.RoundTripper, url string) {
		var sent atomic.Int64
		r, _ := http.NewRequest("POST", url, endless{&sent})
		r.ContentLength = -1
		answer, err := client.RoundTrip(r)
		var broken *net.OpError
		switch {
		case err == nil:
			answer.Body.Close()
			if answer.StatusCode != 413 {
				t.Errorf("status %d, want 413", answer.StatusCode)
			}
		case !errors.As(err, &broken):
			// Over HTTP/1.1 a client that still writes may see the connection end
			// before it reads the answer.
			t.Errorf("%v, want 413", err)
		}
		select {
		case err := <-seen:
			if err == nil {
				t.Error("the server took the body for whole")
			}
		case <-time.After(patience):
			t.Error("the server still waits for the rest")
		}
		if sent.Load() > 64<<20 {
			t.Errorf("the client sent %d bytes", sent.Load())
		}
	})
}

// A response that is compressed to nearly nothing ends at its server soon after its
// client has left, although hardly a byte has to be sent to notice that.
func TestCompressionEndsWhenTheClientLeaves(t *testing.T) {
	for settings, most := range map[string]int64{"": 64 << 20, ", cache: {memory_limit: 64MiB}": 1 << 30} {
		for _, coding := range []string{"br", "zstd"} {
			var sent atomic.Int64
			ended := make(chan struct{}, 16)
			server := func(w http.ResponseWriter, r *http.Request) {
				defer func() { ended <- struct{}{} }()
				w.Header().Set("Content-Type", "text/plain")
				w.Header().Set("Cache-Control", "max-age=60")
				for p := make([]byte, 64<<10); sent.Load() < 8<<30; {
					n, err := w.Write(p)
					if sent.Add(int64(n)); err != nil {
						return
					}
				}
			}
			t.Run(coding+settings, func(t *testing.T) {
				onEach(t, server, "compression: {}"+settings, func(t *testing.T, client http.RoundTripper, url string) {
					r, _ := http.NewRequest("GET", url, nil)
					r.Header.Set("Accept-Encoding", coding)
					ctx, leave := context.WithCancel(context.Background())
					defer leave()
					answer, err := client.RoundTrip(r.WithContext(ctx))
					if err != nil || answer.Header.Get("Content-Encoding") != coding {
						t.Fatalf("%v, %v", answer, err)
					}
					if _, err := io.ReadFull(answer.Body, make([]byte, 8)); err != nil {
						t.Fatal(err)
					}
					leave()
					answer.Body.Close()
					sent.Store(0)
					select {
					case <-ended:
						if sent.Load() > most {
							t.Errorf("the server sent %d bytes more", sent.Load())
						}
					case <-time.After(patience):
						t.Error("the server still sends")
					}
				})
			})
		}
	}
}
