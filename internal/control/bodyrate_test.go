package control

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"headgate/internal/testhouse"
)

// drip is a body that comes byte by byte for as long as somebody takes it.
type drip struct{ taken int }

func (d *drip) Read(p []byte) (int, error) {
	if d.taken > 0 {
		<-time.After(20 * time.Millisecond)
	}
	d.taken++
	p[0] = 'x'
	return 1, nil
}

// A body that comes slower than min_body_rate ends with 408, over every protocol,
// although no pause in it is long; without the limit, or at once, it passes.
func TestABodyThatDripsIsRefused(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, rq *http.Request) {
		io.Copy(io.Discard, rq.Body)
	}))
	t.Cleanup(server.Close)
	at := testhouse.Addresses(t, 1)[0]
	h := start(t, through(server.URL, "a "+at+" h2c: true, limits: {body_idle_timeout: 300ms, min_body_rate: 1MiB}"))
	h2 := &http.Client{Transport: &http.Transport{Protocols: new(http.Protocols)}, Timeout: patience}
	h2.Transport.(*http.Transport).Protocols.SetUnencryptedHTTP2(true)
	check := func(name, url string, client *http.Client) {
		t.Helper()
		defer client.CloseIdleConnections()
		status := func(body io.Reader) int {
			rs, err := client.Post(url, "text/plain", body)
			if err != nil {
				t.Errorf("%s: %v", name, err)
				return 0
			}
			io.Copy(io.Discard, rs.Body)
			rs.Body.Close()
			return rs.StatusCode
		}
		if got := status(strings.NewReader(strings.Repeat("x", 100))); got != 200 {
			t.Errorf("%s: a short body got %d, want 200", name, got)
		}
		if got := status(&drip{}); got != 408 {
			t.Errorf("%s: a body that drips got %d, want 408", name, got)
		}
	}
	check("HTTP/1.1", "http://"+at, &http.Client{Timeout: patience})
	check("HTTP/2", "http://"+at, h2)
	h.apply(http3s(through(server.URL, "a "+at+" limits: {body_idle_timeout: 300ms, min_body_rate: 1MiB}")))
	check("HTTP/3", "https://"+at, client3(t))
}
