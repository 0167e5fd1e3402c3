package tracing

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"headgate/internal/exchange"
	"headgate/internal/exchange/exchangetest"
	"headgate/internal/testhouse"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const parent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"

// open returns a tracer that keeps nothing for other plans.
func open(t testing.TB, c *Config, log *slog.Logger) *Tracer {
	env := exchangetest.Env(t, nil)
	if log != nil {
		env.Log = log
	}
	env.Keep = func(_ string, open func() exchange.Kept) exchange.Kept { return open() }
	tracer := Open(c, env, &Counts{})
	if tracer.out != nil {
		tracer.out.delay, tracer.out.rest = time.Millisecond, time.Millisecond
	}
	return tracer
}

func TestParentIsReadAsTheStandardSays(t *testing.T) {
	for value, want := range map[string]bool{
		parent: true, "cc" + parent[2:]: true, "cc" + parent[2:] + "-more": true, "cc" + parent[2:] + "more": false,
		"ff" + parent[2:]: false, parent + "-": false, parent + "-01": false, parent[:54]: false, "": false,
		strings.ToUpper(parent): false, strings.Replace(parent, "-", "_", 1): false,
		"00-00000000000000000000000000000000-00f067aa0ba902b7-01": false,
		"00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01": false,
		"00-4bf92f3577b34da6a3ce929d0e0e473x-00f067aa0ba902b7-01": false,
	} {
		c, ok := parse(value)
		if ok != want || ok && hex.EncodeToString(c.trace[:]) != parent[3:35] {
			t.Errorf("%q: %+v, %v; want %v", value, c, ok, want)
		}
	}
}

// parentForm is the form of traceparent as the standard's grammar has it.
var parentForm = regexp.MustCompile(`(?s)^([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-[0-9a-f]{2}(-.*)?$`)

func FuzzParse(f *testing.F) {
	for _, value := range []string{parent, "cc" + parent[2:] + "-more", "", "00-", strings.Repeat("0", parentSize)} {
		f.Add(value)
	}
	f.Fuzz(func(t *testing.T, value string) {
		c, ok := parse(value)
		m := parentForm.FindStringSubmatch(value)
		valid := m != nil && m[1] != "ff" && (m[1] != "00" || m[4] == "") &&
			strings.Trim(m[2], "0") != "" && strings.Trim(m[3], "0") != ""
		if ok != valid {
			t.Fatalf("%q: valid is %v, want %v", value, ok, valid)
		}
		if !ok {
			return
		}
		written := string(c.append(nil))
		again, ok := parse(written)
		if !ok || again != c || written[3:52] != value[3:52] {
			t.Errorf("%q was written as %q", value, written)
		}
	})
}

func TestTraceOfTrustedPeersGoesOn(t *testing.T) {
	filter := open(t, &Config{Enabled: true}, nil).Filter()
	for _, c := range []struct {
		name    string
		trusted bool
		fields  []string
		goesOn  bool
	}{
		{"trusted", true, []string{"Traceparent: " + parent, "tracestate: a=b", "tracestate: c=d"}, true},
		{"not trusted", false, []string{"traceparent: " + parent, "tracestate: a=b"}, false},
		{"broken", true, []string{"traceparent: " + parent + "0", "tracestate: a=b"}, false},
		{"two", true, []string{"traceparent: " + parent, "Traceparent: " + parent, "tracestate: a=b"}, false},
		{"none", true, []string{"tracestate: a=b"}, false},
	} {
		ex := exchangetest.New(t, exchangetest.Head("GET", "/", c.fields...))
		ex.Told.Trusted = c.trusted
		filter.Request(ex)
		var values, states []string
		for _, f := range ex.Request.Header.All() {
			switch {
			case f.Is(traceparent):
				values = append(values, f.Value)
			case f.Is(tracestate):
				states = append(states, f.Value)
			}
		}
		if len(values) != 1 {
			t.Fatalf("%s: %q, want one traceparent", c.name, values)
		}
		got, ok := parse(values[0])
		if !ok || values[0][:3] != "00-" || ex.TraceID != hex.EncodeToString(got.trace[:]) {
			t.Errorf("%s: %q, trace id %s", c.name, values[0], ex.TraceID)
		}
		if on := ex.TraceID == parent[3:35]; on != c.goesOn || on && (len(states) != 2 || got.flags != flagSampled) || !on && len(states) != 0 || values[0][36:52] == parent[36:52] {
			t.Errorf("%s: %q, states %q; want it to go on: %v, from a span of ours", c.name, values[0], states, c.goesOn)
		}
	}
}

func TestSampleTakesItsPart(t *testing.T) {
	for percent, want := range map[int][2]int{0: {0, 0}, 1: {30, 230}, 50: {4600, 5400}, 100: {10000, 10000}} {
		tracer, taken := open(t, &Config{Sample: percent}, nil), 0
		for range 10000 {
			if c := newTrace(tracer.reject); c.flags&flagSampled != 0 {
				taken++
			}
		}
		if taken < want[0] || taken > want[1] {
			t.Errorf("%d percent: %d of 10000", percent, taken)
		}
	}
}

// collector is a server of OTLP over HTTP. It decodes what it gets as the standard has
// it, and refuses what is anything else.
type collector struct {
	*httptest.Server
	sync.Mutex
	answers  []func(http.ResponseWriter) // in order; then 200
	spans    []otlpSpan
	attempts int
}

type otlpValue struct {
	StringValue *string `json:"stringValue"`
	IntValue    *string `json:"intValue"`
}

type otlpAttribute struct {
	Key   string    `json:"key"`
	Value otlpValue `json:"value"`
}

type otlpSpan struct {
	TraceID    string          `json:"traceId"`
	SpanID     string          `json:"spanId"`
	Parent     string          `json:"parentSpanId"`
	State      string          `json:"traceState"`
	Flags      uint32          `json:"flags"`
	Name       string          `json:"name"`
	Kind       int             `json:"kind"`
	Start      int64           `json:"startTimeUnixNano,string"`
	End        int64           `json:"endTimeUnixNano,string"`
	Attributes []otlpAttribute `json:"attributes"`
	Status     struct {
		Code int `json:"code"`
	} `json:"status"`
}

func (s *otlpSpan) get(key string) string {
	for _, a := range s.Attributes {
		if a.Key == key && a.Value.StringValue != nil {
			return *a.Value.StringValue
		} else if a.Key == key {
			return "int " + *a.Value.IntValue
		}
	}
	return ""
}

func newCollector(t *testing.T, answers ...func(http.ResponseWriter)) *collector {
	c := &collector{answers: answers}
	c.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		var request struct {
			ResourceSpans []struct {
				Resource struct {
					Attributes []otlpAttribute `json:"attributes"`
				} `json:"resource"`
				ScopeSpans []struct {
					Scope struct {
						Name string `json:"name"`
					} `json:"scope"`
					Spans []otlpSpan `json:"spans"`
				} `json:"scopeSpans"`
			} `json:"resourceSpans"`
		}
		d := json.NewDecoder(bytes.NewReader(body))
		d.DisallowUnknownFields()
		if err == nil {
			err = d.Decode(&request)
		}
		if err != nil || r.Method != "POST" || r.URL.Path != "/v1/traces" || r.Header.Get("Content-Type") != "application/json" {
			t.Errorf("%s %s %q: %v\n%s", r.Method, r.URL, r.Header, err, body)
		}
		c.Lock()
		defer c.Unlock()
		c.attempts++
		if len(c.answers) > 0 {
			answer := c.answers[0]
			c.answers = c.answers[1:]
			answer(w)
			return
		}
		for _, rs := range request.ResourceSpans {
			if len(rs.Resource.Attributes) != 1 || rs.Resource.Attributes[0].Key != "service.name" {
				t.Errorf("resource %+v", rs.Resource)
			}
			for _, ss := range rs.ScopeSpans {
				c.spans = append(c.spans, ss.Spans...)
			}
		}
		io.WriteString(w, `{"partialSuccess":{}}`)
	}))
	t.Cleanup(c.Close)
	return c
}

func status(code int) func(http.ResponseWriter) {
	return func(w http.ResponseWriter) { w.WriteHeader(code) }
}

func (c *collector) got() []otlpSpan {
	c.Lock()
	defer c.Unlock()
	return c.spans
}

// retire ends a tracer, and waits for its last spans.
func retire(tracer *Tracer) {
	tracer.Retire()
	tracer.out.counts.Wait()
}

// served has a tracer see a request that has ended.
func served(t testing.TB, tracer *Tracer, filter exchange.Filter, code int, fields ...string) *exchange.Exchange {
	ex := exchangetest.New(t, exchangetest.From("10.0.0.1"), exchangetest.Head("GET", "/api/x?a=b", append(fields, "User-Agent: Te\"st")...))
	ex.Place = &exchange.Place{Port: "web", Proxy: "shop", Route: "/api"}
	ex.Told.Trusted = true
	filter.Request(ex)
	ex.Response.Status, ex.Times.End = code, ex.Times.Start+int64(time.Millisecond)
	tracer.Done(ex)
	return ex
}

func TestSpansAreWhatTheConventionsSay(t *testing.T) {
	c := newCollector(t)
	tracer := open(t, &Config{Enabled: true, Sample: 100, ServiceName: "edge", Endpoint: c.URL + "/v1/traces"}, nil)
	tracer.Start()
	filter := tracer.Filter()
	served(t, tracer, filter, 200, "traceparent: "+parent, "tracestate: a=b")
	served(t, tracer, filter, 503)
	served(t, tracer, filter, 404, "traceparent: "+parent[:54]+"0") // not sampled
	retire(tracer)
	spans := c.got()
	if len(spans) != 2 {
		t.Fatalf("%d spans, want 2", len(spans))
	}
	s := spans[0]
	if s.TraceID != parent[3:35] || s.Parent != parent[36:52] || s.State != "a=b" || len(s.SpanID) != 16 || s.Name != "GET /api" || s.Kind != 2 ||
		s.End-s.Start != int64(time.Millisecond) || time.Since(time.Unix(0, s.Start)).Abs() > time.Hour || s.Status.Code != 0 || s.Flags != 0x301 {
		t.Errorf("got %+v", s)
	}
	for key, want := range map[string]string{
		"http.request.method": "GET", "url.path": "/api/x", "url.query": "a=b", "url.scheme": "http", "http.route": "/api",
		"http.response.status_code": "int 200", "network.protocol.version": "1.1", "network.peer.address": "10.0.0.1",
		"client.address": "10.0.0.1", "user_agent.original": `Te"st`, "error.type": "", "headgate.proxy": "shop", "server.port": "int 80",
	} {
		if got := s.get(key); got != want {
			t.Errorf("%s: %q, want %q", key, got, want)
		}
	}
	if s := spans[1]; s.Status.Code != 2 || s.get("error.type") != "503" || s.Parent != "" || s.TraceID == parent[3:35] || s.Flags != 0x103 {
		t.Errorf("of a failure: %+v", s)
	}
}

// A request that no route takes has a span too, which names no route.
func TestWhatNoRouteTakesHasASpan(t *testing.T) {
	c := newCollector(t)
	tracer := open(t, &Config{Enabled: true, Sample: 100, Endpoint: c.URL + "/v1/traces"}, nil)
	tracer.Start()
	ex := exchangetest.New(t, exchangetest.Head("BREW", "/x", "traceparent: "+parent))
	ex.Place = &exchange.Place{Port: "web"}
	tracer.Trace(ex)
	tracer.Done(ex)
	retire(tracer)
	spans := c.got()
	if len(spans) != 1 {
		t.Fatalf("%d spans, want 1", len(spans))
	}
	s := spans[0]
	if s.Name != "HTTP" || s.TraceID == parent[3:35] || s.get("http.route") != "" || s.get("headgate.proxy") != "" || ex.TraceID != s.TraceID {
		t.Errorf("got %+v, trace id %s", s, ex.TraceID)
	}
}

// A collector gets the fields that the settings name.
func TestCollectorsGetTheirToken(t *testing.T) {
	got := make(chan http.Header, 1)
	at := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { got <- r.Header }))
	defer at.Close()
	tracer := open(t, &Config{Enabled: true, Sample: 100, Endpoint: at.URL, Headers: []Header{{"Authorization", "Bearer secret"}, {"x-org", "a"}}}, nil)
	tracer.Start()
	served(t, tracer, tracer.Filter(), 200)
	retire(tracer)
	if h := <-got; h.Get("Authorization") != "Bearer secret" || h.Get("X-Org") != "a" {
		t.Errorf("got %q", h)
	}
}

// BenchmarkPipeline is what tracing costs a request on its way through a pipeline.
func BenchmarkPipeline(b *testing.B) {
	for _, c := range []struct {
		name            string
		traced, exports bool
		sample          int
	}{{"off", false, false, 0}, {"no endpoint", true, false, 0}, {"1 percent", true, true, 1}, {"all", true, true, 100}} {
		b.Run(c.name, func(b *testing.B) {
			p := &exchange.Pipeline{Source: &exchangetest.Source{Status: 200}, Log: slog.New(slog.DiscardHandler)}
			settings := Config{Enabled: true, Sample: c.sample}
			if c.exports {
				settings.Endpoint = "http://127.0.0.1:1/"
			}
			tracer := open(b, &settings, nil)
			if c.traced {
				p.Filters, p.Done = []exchange.Filter{tracer.Filter()}, []func(*exchange.Exchange){tracer.Done}
			}
			ex := exchangetest.New(b, exchangetest.Head("GET", "/"))
			conn, front, place := ex.Conn, ex.Front, ex.Place
			b.ReportAllocs()
			for b.Loop() {
				ex.Reset(conn, front)
				ex.Place = place
				p.Serve(ex)
				if tracer.out != nil && tracer.out.mu.spans > 100 {
					tracer.out.mu.buf, tracer.out.mu.spans = tracer.out.mu.buf[:0], 0
				}
			}
		})
	}
}

func TestBatchIsTriedAgainUnlessItIsRefused(t *testing.T) {
	later := func(w http.ResponseWriter) {
		w.Header().Set("Retry-After", "Thu, 01 Jan 1970 00:00:00 GMT")
		w.WriteHeader(429)
	}
	for _, c := range []struct {
		name            string
		answers         []func(http.ResponseWriter)
		attempts, spans int
		log             string
	}{
		{"taken", nil, 1, 1, ""},
		{"busy", []func(http.ResponseWriter){status(503), later, status(502), status(504)}, 5, 1, ""},
		{"refused", []func(http.ResponseWriter){status(400)}, 1, 0, "spans lost"},
		{"never", []func(http.ResponseWriter){status(503), status(503), status(503), status(503), status(503), status(503)}, 6, 0, "spans lost"},
		{"in part", []func(http.ResponseWriter){func(w http.ResponseWriter) {
			io.WriteString(w, `{"partialSuccess":{"rejectedSpans":"1","errorMessage":"too old"}}`)
		}}, 1, 0, "too old"},
	} {
		t.Run(c.name, func(t *testing.T) {
			at := newCollector(t, c.answers...)
			log := &testhouse.Log{}
			tracer := open(t, &Config{Enabled: true, Sample: 100, Endpoint: at.URL + "/v1/traces"}, slog.New(slog.NewTextHandler(log, nil)))
			tracer.Start()
			served(t, tracer, tracer.Filter(), 200)
			testhouse.Eventually(t, "the attempts", func() bool { at.Lock(); defer at.Unlock(); return at.attempts >= c.attempts })
			retire(tracer)
			counts, lost := tracer.out.counts, uint64(1)
			if c.log == "" || c.name == "in part" {
				lost = 0
			}
			if counts.Lost.Load() != lost || counts.Sent.Load() != 1-lost {
				t.Errorf("%d sent, %d lost, want %d lost", counts.Sent.Load(), counts.Lost.Load(), lost)
			}
			if len(at.got()) != c.spans || at.attempts != c.attempts || (c.log == "") != (log.String() == "") || !strings.Contains(log.String(), c.log) {
				t.Errorf("%d spans, %d attempts, log %q", len(at.got()), at.attempts, log)
			}
		})
	}
}

// A change that replaces the settings holds a lock that others wait for.
func TestRetireDoesNotWaitForAStalledCollector(t *testing.T) {
	reached, let := make(chan struct{}, 1), make(chan struct{})
	at := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		reached <- struct{}{}
		<-let
	}))
	defer at.Close()
	tracer := open(t, &Config{Enabled: true, Sample: 100, Endpoint: at.URL}, nil)
	tracer.Start()
	served(t, tracer, tracer.Filter(), 200)
	<-reached
	tracer.Retire()
	if n := tracer.out.counts.Sent.Load() + tracer.out.counts.Lost.Load(); n != 0 {
		t.Errorf("Retire has waited for the collector: %d spans sent or lost", n)
	}
	close(let)
	tracer.out.counts.Wait()
	if n := tracer.out.counts.Sent.Load(); n != 1 {
		t.Errorf("%d spans sent, want 1", n)
	}
}

func TestWaitingSpansAreBounded(t *testing.T) {
	tracer := open(t, &Config{Enabled: true, Sample: 100, Endpoint: "http://127.0.0.1:1/"}, nil) // nobody sends
	for range 2 * maxWaiting / 1000 {
		served(t, tracer, tracer.Filter(), 200)
		if tracer.out.mu.dropped > 100 {
			break
		}
	}
	if n := tracer.out.counts.Dropped.Load(); n != uint64(tracer.out.mu.dropped) {
		t.Errorf("%d spans are counted as dropped, want %d", n, tracer.out.mu.dropped)
	}
	if n := len(tracer.out.mu.buf); n > maxWaiting || n < maxWaiting/2 || tracer.out.mu.dropped == 0 {
		t.Errorf("%d bytes wait, %d spans were dropped", n, tracer.out.mu.dropped)
	}
}

func TestTextsAreBoundedJSON(t *testing.T) {
	for _, s := range []string{"", "a\"\\\n\x00\x7f", "ä€😀", "\xff\xfe", strings.Repeat("€", 200), strings.Repeat("\xff", 300)} {
		var got string
		b := appendText(nil, s, maxText)
		if err := json.Unmarshal(b, &got); err != nil || len(s) <= maxText && got != strings.ToValidUTF8(s, "\uFFFD") && s != "\xff\xfe" || len(got) > 3*maxText {
			t.Errorf("%q became %s: %v", s, b, err)
		}
	}
}

func BenchmarkRequest(b *testing.B) {
	for name, percent := range map[string]int{"sampled": 100, "one_percent": 1, "not": 0, "off": -1} {
		b.Run(name, func(b *testing.B) {
			off := percent < 0 // what it takes to begin a request
			percent := max(percent, 0)
			tracer := open(b, &Config{Enabled: true, Sample: percent, Endpoint: "http://127.0.0.1:1/"}, nil)
			filter := tracer.Filter()
			ex := exchangetest.New(b, exchangetest.Head("GET", "/"))
			conn, front, place := ex.Conn, ex.Front, ex.Place
			b.ReportAllocs()
			for b.Loop() {
				ex.Reset(conn, front)
				ex.Place = place
				if off {
					continue
				}
				filter.Request(ex)
				tracer.Done(ex)
				if tracer.out.mu.spans > 100 {
					tracer.out.mu.buf, tracer.out.mu.spans = tracer.out.mu.buf[:0], 0
				}
			}
		})
	}
}

func TestTracingAllocatesNothing(t *testing.T) {
	for _, percent := range []int{0, 100} {
		tracer := open(t, &Config{Enabled: true, Sample: percent, Endpoint: "http://127.0.0.1:1/"}, nil)
		filter := tracer.Filter()
		ex := exchangetest.New(t, exchangetest.Head("GET", "/"))
		conn, front, place := ex.Conn, ex.Front, ex.Place
		once := func() {
			ex.Reset(conn, front)
			ex.Place = place
			filter.Request(ex)
			tracer.Done(ex)
			tracer.out.mu.buf, tracer.out.mu.spans = tracer.out.mu.buf[:0], 0
		}
		if n := testing.AllocsPerRun(500, once); n > 0 && !raceEnabled {
			t.Errorf("%d percent: %v allocations a request, want 0", percent, n)
		}
	}
}
