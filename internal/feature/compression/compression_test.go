package compression

import (
	"bytes"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"

	"headgate/internal/exchange"
	"headgate/internal/exchange/exchangetest"
	"headgate/internal/proto/header"
	"headgate/internal/schema"
	"headgate/internal/setting/unit"
)

// long is a text that is worth to compress.
var long = strings.Repeat("the quick brown fox jumps over the lazy dog, ", 100)

// inner answers with what it holds, and counts.
type inner struct {
	status int
	fields []string
	length int64 // -2 stands for that of the text
	text   string
	body   exchange.Body // in place of the text
	static bool          // the text is in Response.Text
	asked  int
	ranges []string
}

func (s *inner) Describe() string { return "inner" }

func (s *inner) Respond(ex *exchange.Exchange) *exchange.Answer {
	s.asked++
	s.ranges = append(s.ranges, ex.Request.Header.Get(header.Range))
	rs := &ex.Response
	rs.Reset()
	rs.Status, rs.Length = s.status, s.length
	if s.length == -2 {
		rs.Length = int64(len(s.text))
	}
	for _, line := range s.fields {
		name, value, _ := strings.Cut(line, ": ")
		rs.Header.AddField(name, value)
	}
	switch {
	case s.body != nil:
		rs.Body = s.body
	case s.static:
		rs.Text = []byte(s.text)
	case s.text != "" && ex.Request.Method != "HEAD":
		rs.Body = exchangetest.Body(s.text)
	}
	return nil
}

func settings() *Config { return &Config{Enabled: true, MinSize: unit.Size(1 << 10)} }

// compress returns what a client gets that sends these fields.
func compress(t testing.TB, c *Config, s *inner, method string, fields ...string) (*exchangetest.Front, *exchange.Exchange) {
	t.Helper()
	ex := exchangetest.New(t, exchangetest.Head(method, "/", fields...))
	return exchangetest.Run(t, ex, wrap(c, s, exchangetest.Env(t))), ex
}

// plain decodes a body.
func plain(t testing.TB, coding, body string) string {
	t.Helper()
	var r io.Reader = strings.NewReader(body)
	switch coding {
	case "gzip":
		z, err := gzip.NewReader(r)
		if err != nil {
			t.Fatal(err)
		}
		r = z
	case "br":
		r = brotli.NewReader(r)
	case "zstd":
		z, err := zstd.NewReader(r, zstd.WithDecoderMaxWindow(8<<20))
		if err != nil {
			t.Fatal(err)
		}
		defer z.Close()
		r = z
	}
	b, err := io.ReadAll(r)
	if err != nil {
		t.Fatalf("%s: %v", coding, err)
	}
	return string(b)
}

func html(text string) *inner {
	return &inner{status: 200, fields: []string{"Content-Type: text/html; charset=utf-8"}, length: -2, text: text}
}

func TestEveryAlgorithmComesBackAsItWas(t *testing.T) {
	for _, coding := range usual {
		for _, size := range []int{1 << 10, 40 << 10, 300 << 10} {
			for _, length := range []int64{-2, -1} {
				for _, static := range []bool{false, true} {
					s := html(strings.Repeat(long, size/len(long)+1)[:size])
					s.length, s.static = length, static
					front, ex := compress(t, settings(), s, "GET", "Accept-Encoding: "+coding)
					if front.Field("Content-Encoding") != coding || front.Field("Vary") != "Accept-Encoding" || ex.Response.Length != -1 {
						t.Fatalf("%s, %d bytes: %q", coding, size, front.Fields)
					}
					if got := plain(t, coding, front.Body); got != s.text || len(front.Body) > size/2 {
						t.Errorf("%s, %d bytes, length %d: %d bytes on the wire, %d after", coding, size, length, len(front.Body), len(got))
					}
				}
			}
		}
	}
}

func TestWhatIsNotCompressed(t *testing.T) {
	with := func(change func(*inner), fields ...string) *inner {
		s := html(long)
		s.fields = append(s.fields, fields...)
		if change != nil {
			change(s)
		}
		return s
	}
	kind := func(name string) func(*inner) { return func(s *inner) { s.fields[0] = "Content-Type: " + name } }
	for _, c := range []struct {
		name    string
		s       *inner
		request []string
		varies  bool
	}{
		{"short", with(func(s *inner) { s.text = "short" }), nil, false},
		{"short, length unknown", with(func(s *inner) { s.text, s.length = "short", -1 }), nil, false},
		{"encoded", with(nil, "Content-Encoding: br"), nil, false},
		{"no-transform", with(nil, "Cache-Control: public, No-Transform"), nil, false},
		{"no-transform asked for", with(nil), []string{"Cache-Control: no-transform"}, false},
		{"partial", with(func(s *inner) { s.status = 206 }, "Content-Range: bytes 0-1/2"), nil, false},
		{"no content", with(func(s *inner) { s.status, s.text = 204, "" }), nil, false},
		{"with a digest", with(nil, "Repr-Digest: sha-256=:x:"), nil, false},
		{"image", with(kind("image/png")), nil, false},
		{"event stream", with(kind("text/event-stream")), nil, false},
		{"gRPC", with(kind("application/grpc+proto")), nil, false},
		{"no type", with(func(s *inner) { s.fields = nil }), nil, false},
		{"no coding that we make", with(nil), []string{"Accept-Encoding: deflate, gzip;q=0, br;q=0, zstd;q=0"}, true},
		{"none wanted", with(nil), []string{"Accept-Encoding: identity, *;q=0"}, true},
	} {
		request := c.request
		if len(request) == 0 || !strings.HasPrefix(request[0], "Accept-Encoding") {
			request = append([]string{"Accept-Encoding: gzip, br, zstd"}, request...)
		}
		front, _ := compress(t, settings(), c.s, "GET", request...)
		if front.Body != c.s.text || (front.Field("Vary") == "Accept-Encoding") != c.varies {
			t.Errorf("%s: %q, %.20q", c.name, front.Fields, front.Body)
		}
	}
	if front, _ := compress(t, settings(), html(long), "GET"); front.Body != long || front.Field("Vary") != "Accept-Encoding" {
		t.Errorf("without Accept-Encoding: %q", front.Fields)
	}
}

func TestHeadTellsOfTheCoding(t *testing.T) {
	s := html(long)
	s.fields = append(s.fields, `ETag: "x"`, "Accept-Ranges: bytes", "Vary: Cookie", "Content-Length: 4500")
	front, ex := compress(t, settings(), s, "GET", "Accept-Encoding: gzip")
	want := []string{"Content-Type: text/html; charset=utf-8", `ETag: W/"x"`, "Vary: Cookie", "Vary: Accept-Encoding", "Content-Encoding: gzip"}
	if !slices.Equal(front.Fields, want) {
		t.Errorf("%q, want %q", front.Fields, want)
	}
	head, hex := compress(t, settings(), s, "HEAD", "Accept-Encoding: gzip")
	if !slices.Equal(head.Fields, want) || head.Body != "" || hex.Response.Length != ex.Response.Length {
		t.Errorf("HEAD: %q, want %q", head.Fields, want)
	}
	for _, vary := range []string{"Vary: *", "Vary: Cookie, accept-encoding"} {
		s := html(long)
		s.fields = append(s.fields, vary, `ETag: W/"x"`)
		front, _ := compress(t, settings(), s, "GET", "Accept-Encoding: gzip")
		if !slices.Contains(front.Fields, vary) || slices.Contains(front.Fields, "Vary: Accept-Encoding") || front.Field("ETag") != `W/"x"` {
			t.Errorf("%q", front.Fields)
		}
	}
}

func TestRevalidationNamesTheClientsTag(t *testing.T) {
	for _, c := range []struct{ asked, tag, want string }{
		{`W/"x"`, `"x"`, `W/"x"`},
		{`"y", W/"x"`, `"x"`, `W/"x"`},
		{`"x"`, `"x"`, `"x"`},
		{`W/"x"`, `W/"x"`, `W/"x"`},
	} {
		s := &inner{status: 304, length: -1, fields: []string{"ETag: " + c.tag}}
		front, _ := compress(t, settings(), s, "GET", "Accept-Encoding: gzip", "If-None-Match: "+c.asked)
		if front.Status != 304 || front.Field("ETag") != c.want {
			t.Errorf("%s for %s: %q, want %s", c.tag, c.asked, front.Fields, c.want)
		}
	}
}

// rangedOnce answers a range with 206 and the whole with 200.
type rangedOnce struct{ inner }

func (s *rangedOnce) Respond(ex *exchange.Exchange) *exchange.Answer {
	s.status, s.text = 200, long
	if ex.Request.Header.Has(header.Range) {
		s.status, s.text = 206, long[100:]
	}
	return s.inner.Respond(ex)
}

func TestPiecesOfTwoBodiesAreNotMixed(t *testing.T) {
	const date = "If-Range: Sun, 06 Nov 1994 08:49:37 GMT"
	for _, c := range []struct {
		name   string
		method string
		fields []string
		status int
	}{
		{"by a date", "GET", []string{"Accept-Encoding: gzip", "Range: bytes=100-", date}, 200},
		{"by a date, never compressed", "GET", []string{"Range: bytes=100-", date}, 206},
		{"by a strong tag", "GET", []string{"Accept-Encoding: gzip", "Range: bytes=100-", `If-Range: "x"`}, 206},
		{"without a condition", "GET", []string{"Accept-Encoding: gzip", "Range: bytes=100-"}, 206},
		{"what is not sent twice", "POST", []string{"Accept-Encoding: gzip", "Range: bytes=100-", date}, 206},
	} {
		s := &rangedOnce{*html(long)}
		ex := exchangetest.New(t, exchangetest.Head(c.method, "/", c.fields...))
		front := exchangetest.Run(t, ex, wrap(settings(), s, exchangetest.Env(t)))
		if front.Status != c.status || (front.Field("Content-Encoding") == "gzip") != (c.status == 200) {
			t.Errorf("%s: %d %q", c.name, front.Status, front.Fields)
		}
	}
}

// paused is a body whose pieces come one by one, with a pause behind each.
type paused struct {
	pieces []string
	there  int // pieces that have come
	end    error
	closed int
}

func (p *paused) Ready() bool { return p.there > 0 }

func (p *paused) Read(b []byte) (int, error) {
	p.there--
	if len(p.pieces) == 0 {
		return 0, p.end
	}
	n := copy(b, p.pieces[0])
	p.pieces = p.pieces[1:]
	return n, nil
}

func (p *paused) Close() error {
	p.closed++
	return nil
}

func TestWhatTheServerFlushedArrivesAtOnce(t *testing.T) {
	for _, coding := range usual {
		pieces := []string{"<html>", strings.Repeat("line of a page\n", 5000), "x", "</html>"}
		p := &paused{pieces: slices.Clone(pieces), end: io.EOF}
		for i, piece := range pieces { // so that a read takes each whole
			if len(piece) > readSize {
				p.pieces = slices.Replace(p.pieces, i, i+1, piece[:readSize], piece[readSize:2*readSize], piece[2*readSize:])
			}
		}
		all := len(p.pieces)
		var sent strings.Builder
		for _, piece := range p.pieces {
			sent.WriteString(piece)
		}
		s := html("")
		s.length, s.body, p.there = -1, p, 1
		ex := exchangetest.New(t, exchangetest.Head("GET", "/", "Accept-Encoding: "+coding))
		if answer := wrap(settings(), s, exchangetest.Env(t)).Respond(ex); answer != nil {
			t.Fatal(answer)
		}
		body := ex.Response.Body
		var wire bytes.Buffer
		want := ""
		for i := range all + 1 {
			if i > 0 {
				p.there = 1
			}
			for body.Ready() {
				var b [1000]byte
				n, err := body.Read(b[:])
				wire.Write(b[:n])
				if err == io.EOF {
					break
				}
			}
			got := partly(t, coding, wire.Bytes())
			if i < all && (len(got) <= len(want) || !strings.HasPrefix(sent.String(), got)) {
				t.Fatalf("%s: after piece %d the client can read %d bytes, before %d", coding, i, len(got), len(want))
			}
			want = got
		}
		if want != sent.String() {
			t.Errorf("%s: the client got %d bytes, want %d", coding, len(want), sent.Len())
		}
		body.Close()
		body.Close()
	}
}

// partly decodes what has come of a body.
func partly(t *testing.T, coding string, wire []byte) string {
	t.Helper()
	var r io.Reader
	src := bytes.NewReader(wire)
	switch coding {
	case "gzip":
		z, err := gzip.NewReader(src)
		if err != nil {
			return ""
		}
		r = z
	case "br":
		r = brotli.NewReader(src)
	case "zstd":
		z, err := zstd.NewReader(src, zstd.WithDecoderConcurrency(1))
		if err != nil {
			t.Fatal(err)
		}
		defer z.Close()
		r = z
	}
	var b bytes.Buffer
	io.Copy(&b, r)
	return b.String()
}

func TestBodyIsHeldBackUntilItIsWorthIt(t *testing.T) {
	s := html("")
	s.length = -1
	s.body = exchangetest.Body(long[:500], long[500:1000], long[1000:])
	front, _ := compress(t, settings(), s, "GET", "Accept-Encoding: gzip")
	if got := plain(t, front.Field("Content-Encoding"), front.Body); got != long {
		t.Errorf("%d bytes, want %d", len(got), len(long))
	}
	s.body = exchangetest.Body(long[:500], long[500:1000])
	front, ex := compress(t, settings(), s, "GET", "Accept-Encoding: gzip")
	if front.Body != long[:1000] || front.Field("Content-Encoding") != "" || ex.Response.Length != 1000 {
		t.Errorf("%q, length %d", front.Fields, ex.Response.Length)
	}
	front, _ = compress(t, settings(), html("short"), "GET", "Accept-Encoding: gzip, identity;q=0")
	if got := plain(t, front.Field("Content-Encoding"), front.Body); got != "short" || front.Field("Content-Encoding") != "gzip" {
		t.Errorf("identity refused: %q %q", front.Fields, got)
	}
}

func TestBrokenBodyStaysBroken(t *testing.T) {
	broken := errors.New("reset")
	for _, pieces := range [][]string{{"short"}, {long, long}, nil} {
		for _, length := range []int64{-1, 100000} {
			p := &paused{pieces: slices.Clone(pieces), end: broken, there: 10}
			s := html("")
			s.length, s.body = length, p
			front, _ := compress(t, settings(), s, "GET", "Accept-Encoding: gzip")
			if !errors.Is(front.Err, broken) || p.closed == 0 {
				t.Errorf("%d pieces, length %d: %v, closed %d", len(pieces), length, front.Err, p.closed)
			}
		}
	}
}

func TestWithoutMemoryNothingIsCompressed(t *testing.T) {
	env := exchangetest.Env(t)
	e := shared(env)
	e.free.Store(costs[gzipKind])
	source := wrap(settings(), html(long), env)
	ask := func(s exchange.Source) *exchange.Exchange {
		ex := exchangetest.New(t, exchangetest.Head("GET", "/", "Accept-Encoding: gzip"))
		if answer := s.Respond(ex); answer != nil {
			t.Fatal(answer)
		}
		return ex
	}
	first, second := ask(source), ask(source)
	if got := second.Response.Header.Get(header.ContentEncoding); got != "" || second.Response.Header.Get(header.Vary) == "" {
		t.Errorf("a second coding %q, want none", got)
	}
	if first.Response.Makeshift || !second.Response.Makeshift {
		t.Error("a cache does not hear that a body is not as it should be")
	}
	unknown := html(long)
	unknown.length = -1
	third := ask(wrap(settings(), unknown, env))
	if b, err := io.ReadAll(third.Response.Body); err != nil || string(b) != long {
		t.Errorf("a body that was held back: %d bytes, %v", len(b), err)
	}
	for _, ex := range []*exchange.Exchange{first, second, third} {
		ex.Response.Body.Close()
	}
	if e.free.Load() != costs[gzipKind] {
		t.Errorf("%d bytes free, want %d", e.free.Load(), costs[gzipKind])
	}
	if got := ask(source).Response.Header.Get(header.ContentEncoding); got != "gzip" {
		t.Errorf("when memory is free again: %q", got)
	}
}

func TestSettingsAreChecked(t *testing.T) {
	for _, c := range []struct {
		set  Config
		want string
	}{
		{Config{}, ""},
		{Config{Algorithms: []string{"gzip", "br"}, Types: []string{"text/*", "*+json", "font/ttf"}}, ""},
		{Config{Algorithms: []string{"gzp"}}, `at.algorithms[0]: unknown algorithm "gzp"; did you mean "gzip"?`},
		{Config{Algorithms: []string{"br", "br"}}, "at.algorithms[1]: duplicate entry br"},
		{Config{Types: []string{"html"}}, "at.types[0]: "},
		{Config{Types: []string{"*/*"}}, "at.types[0]: "},
		{Config{Types: []string{"text/html; charset=utf-8"}}, "at.types[0]: "},
	} {
		r := schema.NewReport("", nil)
		c.set.Check(r.Root().Field("at"))
		got := ""
		if !r.Empty() {
			got = r.Problems()[0].Error()
		}
		if (got == "") != (c.want == "") || !strings.HasPrefix(got, c.want) {
			t.Errorf("%+v: %q, want %q", c.set, got, c.want)
		}
	}
}

// trailing is a body behind which trailers come.
type trailing struct {
	exchange.Body
	list *header.List
}

func (b *trailing) Read(p []byte) (int, error) {
	n, err := b.Body.Read(p)
	if err == io.EOF && b.list.Len() == 0 {
		b.list.AddField("Content-Digest", "sha-256=:1:")
		b.list.AddField("repr-digest", "sha-256=:1:")
		b.list.AddField("X-Sum", "1")
		b.list.AddField("ETag", `"1"`)
	}
	return n, err
}

// Trailers that tell the hash or the strong tag of a body do not hold for it when it
// is compressed, and pass with one that is not.
func TestTrailersAreThoseOfTheCompressedBody(t *testing.T) {
	for coding, want := range map[string]string{
		"gzip":     `X-Sum: 1|ETag: W/"1"`,
		"identity": `Content-Digest: sha-256=:1:|repr-digest: sha-256=:1:|X-Sum: 1|ETag: "1"`,
	} {
		ex := exchangetest.New(t, exchangetest.Head("GET", "/", "Accept-Encoding: "+coding))
		in := html("")
		in.length, in.body = -1, &trailing{exchangetest.Body(long), &ex.Response.Trailer}
		front := exchangetest.Run(t, ex, wrap(settings(), in, exchangetest.Env(t)))
		if got := strings.Join(front.Trailer, "|"); got != want {
			t.Errorf("%s: got the trailers %s, want %s", coding, got, want)
		}
	}
}

// endless is a body that always has more, up to a bound for tests that fail.
type endless struct {
	given int64
	after func(given int64)
}

func (e *endless) Read(p []byte) (int, error) {
	if e.given > 1<<28 {
		return 0, io.EOF
	}
	clear(p)
	e.given += int64(len(p))
	e.after(e.given)
	return len(p), nil
}

func (e *endless) Ready() bool  { return true }
func (e *endless) Close() error { return nil }

// Nobody compresses for a client that has left, although an endless body of little
// content makes nothing that could fail to be sent.
func TestCompressionEndsWithItsClient(t *testing.T) {
	for _, coding := range []string{"gzip", "br", "zstd"} {
		const leaves = 3 << 20
		ex := exchangetest.New(t, exchangetest.Head("GET", "/", "Accept-Encoding: "+coding))
		front := ex.Front.(*exchangetest.Front)
		source := &endless{after: func(given int64) { front.Left = given > leaves }}
		in := html("")
		in.length, in.body = -1, source
		exchangetest.Run(t, ex, wrap(settings(), in, exchangetest.Env(t)))
		if source.given > leaves+2*lookEvery || ex.Reason != exchange.ClientClosed {
			t.Errorf("%s: %d bytes were compressed, %d when the client left; reason %v", coding, source.given, leaves, ex.Reason)
		}
	}
}

// What an endless body of little content comes to is handed on now and then.
func TestLittleIsHandedOn(t *testing.T) {
	for _, coding := range []string{"gzip", "br", "zstd"} {
		ex := exchangetest.New(t, exchangetest.Head("GET", "/", "Accept-Encoding: "+coding))
		source := &endless{after: func(int64) {}}
		in := html("")
		in.length, in.body = -1, source
		if answer := wrap(settings(), in, exchangetest.Env(t)).Respond(ex); answer != nil {
			t.Fatal(answer.Cause)
		}
		body, made, p := ex.Response.Body, 0, make([]byte, 32<<10)
		for source.given < 64<<20 && body.Ready() {
			n, err := body.Read(p)
			if made += n; err != nil {
				t.Fatal(coding, err)
			}
		}
		if made == 0 || source.given > 8<<20 {
			t.Errorf("%s: %d bytes of %d were made before they were handed on", coding, made, source.given)
		}
		body.Close()
	}
}

// wrap is Wrap with settings that give no error.
func wrap(c *Config, inner exchange.Source, env exchange.Env) exchange.Source {
	s, err := Wrap(c, inner, env)
	if err != nil {
		panic(err)
	}
	return s
}
