package compression

import (
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"testing"

	"headgate/internal/exchange"
	"headgate/internal/exchange/exchangetest"
	"headgate/internal/proto/header"
	"headgate/internal/setting/unit"
	"headgate/internal/testhouse"
)

// TestRandomBodies lets bodies of all kinds come in pieces with pauses, break off or end,
// for clients that read in pieces or leave. What a client decodes is what the server has
// sent, all of it where it ended in order; what was sent before a pause is there at the
// pause; nothing is left.
func TestRandomBodies(t *testing.T) {
	env := exchangetest.Env(t)
	testhouse.Lives(t, 1, 40, func(t *testing.T, seed uint64) {
		if wrong := randomBody(t, rand.New(rand.NewPCG(seed, 0)), env); wrong != "" {
			t.Error(wrong)
		}
	})
	if left := shared(env).free.Load(); left != budget {
		t.Errorf("%d bytes of encoders are not given back", budget-left)
	}
}

var errSpoiled = errors.New("the test says so")

// pieces is a body that comes in pieces, with a pause before each.
type pieces struct {
	rest   []string
	here   string
	end    error
	given  int
	closed int
}

func (p *pieces) Ready() bool { return p.here != "" || len(p.rest) == 0 }

func (p *pieces) Read(b []byte) (int, error) {
	if p.here == "" && len(p.rest) > 0 {
		p.here, p.rest = p.rest[0], p.rest[1:]
	}
	n := copy(b, p.here)
	p.here = p.here[n:]
	p.given += n
	if n == 0 {
		return 0, p.end
	}
	return n, nil
}

func (p *pieces) Close() error {
	p.closed++
	return nil
}

func randomBody(t *testing.T, r *rand.Rand, env exchange.Env) string {
	c := &Config{Enabled: true, MinSize: unit.Size([...]int{0, 1, 1 << 10, 100 << 10}[r.IntN(4)])}
	p := &pieces{end: io.EOF}
	var whole strings.Builder
	for range r.IntN(12) {
		n := [...]int{1, 3, 500, 5000, 32 << 10, 70_000}[r.IntN(6)]
		piece := long[:min(n, 40)]
		if r.IntN(2) == 0 {
			noise := make([]byte, n)
			for i := range noise {
				noise[i] = byte(r.Uint32())
			}
			piece = string(noise)
		} else {
			piece = strings.Repeat(piece, n/len(piece)+1)[:n]
		}
		p.rest = append(p.rest, piece)
		whole.WriteString(piece)
	}
	s := &inner{status: 200, length: -1, body: p, fields: []string{"Content-Type: text/html", `ETag: "x"`}}
	if r.IntN(3) == 0 {
		s.length = int64(whole.Len())
	}
	if r.IntN(4) == 0 {
		p.end = errSpoiled
	}
	accepts := [...]string{"gzip", "br", "zstd", "zstd, br;q=0.5, identity;q=0", "gzip;q=0.5, identity;q=0.6", "*", ""}[r.IntN(7)]
	ex := exchangetest.New(t, exchangetest.Head("GET", "/", "Accept-Encoding: "+accepts))
	if answer := wrap(c, s, env).Respond(ex); answer != nil {
		return fmt.Sprint("an answer ", answer.Reason)
	}
	rs := &ex.Response
	coding := rs.Header.Get(header.ContentEncoding)
	wire, err := readLikeAFront(t, r, rs, coding, s.length < 0, p, whole.String())
	if rs.Body != nil {
		rs.Body.Close()
	}
	sent := whole.String()
	what := fmt.Sprintf("%q %q min %d, length %d of %d, end %v, %d pieces", accepts, coding, c.MinSize, s.length, len(sent), p.end, len(p.rest))
	switch {
	case p.closed != 1:
		return fmt.Sprint(what, ": closed ", p.closed, " times")
	case err == errLeft: // by us
		return ""
	case err != nil && err != p.end && err != io.EOF:
		return fmt.Sprint(what, ": ", err)
	case err != p.end && (p.end != io.EOF || err != nil):
		return fmt.Sprintf("%s: ended by %v", what, err)
	case (coding != "") != strings.HasPrefix(rs.Header.Get(header.ETag), "W/"):
		return what + ": tag " + rs.Header.Get(header.ETag)
	case rs.Length >= 0 && rs.Length != int64(len(wire)) && p.end == io.EOF:
		return fmt.Sprintf("%s: a length of %d for %d bytes", what, rs.Length, len(wire))
	}
	got := ""
	switch {
	case p.end == io.EOF:
		got = plain(t, coding, string(wire))
	case coding == "":
		got = string(wire)
	case s.length < brotliBlock || coding != "br":
		got = partly(t, coding, wire)
	default:
		return "" // what br holds back of a block is lost with the end
	}
	if got != sent {
		return fmt.Sprintf("%s: got %d bytes, %d were sent", what, len(got), len(sent))
	}
	return ""
}

// readLikeAFront reads a body as a front does: what is ready, and then it waits.
func readLikeAFront(t *testing.T, r *rand.Rand, rs *exchange.Response, coding string, stream bool, p *pieces, sent string) (wire []byte, err error) {
	b := make([]byte, 1+r.IntN(40_000))
	for rs.Body != nil {
		if !rs.Body.Ready() && stream && coding != "" && r.IntN(4) == 0 {
			if got := partly(t, coding, wire); got != sent[:p.given] {
				return wire, fmt.Errorf("%d bytes at a pause after %d", len(got), p.given)
			}
		}
		if r.IntN(200) == 0 {
			return wire, errLeft
		}
		n, err := rs.Body.Read(b[:1+r.IntN(len(b))])
		wire = append(wire, b[:n]...)
		if err != nil {
			return wire, err
		}
	}
	return wire, io.EOF
}
