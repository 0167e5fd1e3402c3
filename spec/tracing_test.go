package spec

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"

	"headgate/internal/testhouse"
)

// traces is a collector that keeps the spans that it gets.
type traces struct {
	sync.Mutex
	spans []struct {
		TraceID, SpanID, ParentSpanID, Name string
	}
}

func (c *traces) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var body struct {
		ResourceSpans []struct {
			ScopeSpans []struct {
				Spans json.RawMessage
			}
		}
	}
	c.Lock()
	defer c.Unlock()
	before := c.spans
	c.spans = nil
	if json.NewDecoder(r.Body).Decode(&body) != nil || json.Unmarshal(body.ResourceSpans[0].ScopeSpans[0].Spans, &c.spans) != nil {
		w.WriteHeader(http.StatusBadRequest)
	}
	c.spans = append(before, c.spans...)
}

// A server gets the span of its request as the parent, in the trace of a trusted peer,
// over every protocol; what a collector gets is that span.
func TestServersAndCollectorsSeeOneTrace(t *testing.T) {
	const trace, peer = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
	for _, way := range transports {
		t.Run(way.name, func(t *testing.T) {
			collector := &traces{}
			at := httptest.NewServer(collector)
			t.Cleanup(at.Close)
			up := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("X-Parent", r.Header.Get("traceparent"))
				w.Header().Set("X-State", r.Header.Get("tracestate"))
			}))
			t.Cleanup(up.Close)
			s := newStage(t, fmt.Sprintf(`version: 1
ports: {web: {address: "127.0.0.1:8080", protocol: http}}
admin: {address: ""}
access_log: {enabled: false}
tracing: {enabled: true, sample: 100, endpoint: "%s/v1/traces"}
proxies:
  p:
    routes:
      - servers: [{url: %q}]
      - {path: /trusted, client_ip: {trusted: [127.0.0.0/8]}, servers: [{url: %q}]}
`, at.URL, up.URL, up.URL), way)
			client := way.roundTripper(t)
			ask := func(path string) (parent, state string) {
				r, _ := http.NewRequest("GET", way.scheme()+"://"+s.addr+path, nil)
				r.Header.Set("Traceparent", "00-"+trace+"-"+peer+"-01")
				r.Header.Set("Tracestate", "a=b")
				rs, err := client.RoundTrip(r)
				if err != nil {
					t.Fatal(err)
				}
				io.Copy(io.Discard, rs.Body)
				rs.Body.Close()
				return rs.Header.Get("X-Parent"), rs.Header.Get("X-State")
			}
			goesOn, state := ask("/trusted")
			if len(goesOn) != 55 || goesOn[:36] != "00-"+trace+"-" || goesOn[36:52] == peer || state != "a=b" {
				t.Errorf("of a trusted peer the server gets %q, %q", goesOn, state)
			}
			begun, state := ask("/")
			if len(begun) != 55 || begun[3:35] == trace || state != "" {
				t.Errorf("of another one the server gets %q, %q", begun, state)
			}
			testhouse.Eventually(t, "two spans", func() bool { collector.Lock(); defer collector.Unlock(); return len(collector.spans) == 2 })
			if collector.spans[0].TraceID != trace { // streams end in any order
				collector.spans[0], collector.spans[1] = collector.spans[1], collector.spans[0]
			}
			for i, want := range []string{goesOn, begun} {
				got := collector.spans[i]
				if got.TraceID != want[3:35] || got.SpanID != want[36:52] || (got.ParentSpanID == peer) != (i == 0) {
					t.Errorf("span %+v, the server got %s", got, want)
				}
			}
		})
	}
}
