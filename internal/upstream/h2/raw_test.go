package h2

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
	"golang.org/x/net/http2/hpack"

	"headgate/internal/exchange"
	"headgate/internal/exchange/exchangetest"
	"headgate/internal/proto/http2"
	"headgate/internal/testhouse"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const patience = time.Minute

// rawServer is a server that a test plays frame by frame.
type rawServer struct {
	t    testing.TB
	conn net.Conn
	enc  *hpack.Encoder
	mem  bytes.Buffer
}

// frame is what the client sent.
type frame struct {
	http2.Frame
	payload []byte
}

// meet returns a connection and the server at its other end. The server has
// greeted with SETTINGS, of which more may be given.
func meet(t testing.TB, settings Settings, more ...uint32) (*Conn, *rawServer) {
	t.Helper()
	s, c, err := tryMeet(t, settings, func(s *rawServer) {
		b := http2.AppendFrame(nil, len(more)/2*http2.SettingSize, http2.FrameSettings, 0, 0)
		for i := 0; i < len(more); i += 2 {
			b = http2.AppendSetting(b, http2.Setting(more[i]), more[i+1])
		}
		s.send(b)
	})
	if err != nil {
		t.Fatal(err)
	}
	return c, s
}

// tryMeet opens a connection to a server that greets as it likes.
func tryMeet(t testing.TB, settings Settings, greet func(*rawServer)) (*rawServer, *Conn, error) {
	t.Helper()
	near, far := testhouse.Pair(t)
	far.SetDeadline(time.Now().Add(patience))
	s := &rawServer{t: t, conn: far}
	s.enc = hpack.NewEncoder(&s.mem)
	greet(s)
	settings.Name = "test"
	if settings.IdleTimeout == 0 {
		settings.IdleTimeout = time.Minute
	}
	c, err := Open(near, false, time.Now().Add(patience), settings)
	t.Cleanup(func() { c.Close() })
	if err == nil {
		preface := make([]byte, len(http2.Preface))
		if _, err := io.ReadFull(far, preface); err != nil || string(preface) != http2.Preface {
			t.Fatalf("preface %q, %v", preface, err)
		}
	}
	return s, c, err
}

func (s *rawServer) send(b []byte) { s.conn.Write(b) }

// next returns the next frame that is not SETTINGS or WINDOW_UPDATE.
func (s *rawServer) next() (f frame) {
	for {
		head := make([]byte, http2.FrameHeaderSize)
		if _, err := io.ReadFull(s.conn, head); err != nil {
			return frame{Frame: http2.Frame{Type: 0xff}}
		}
		f.Frame = http2.ParseFrame(head)
		f.payload = make([]byte, f.Length)
		io.ReadFull(s.conn, f.payload)
		if f.Type != http2.FrameSettings && f.Type != http2.FrameWindowUpdate {
			return f
		}
	}
}

// block returns a field block of names and values.
func (s *rawServer) block(fields ...string) []byte {
	s.mem.Reset()
	for i := 0; i < len(fields); i += 2 {
		s.enc.WriteField(hpack.HeaderField{Name: fields[i], Value: fields[i+1]})
	}
	return bytes.Clone(s.mem.Bytes())
}

func (s *rawServer) head(id uint32, end bool, fields ...string) []byte {
	return http2.AppendBlock(nil, id, 0, s.block(fields...), end)
}

func data(id uint32, text string, flags uint8) []byte {
	return append(http2.AppendFrame(nil, len(text), http2.FrameData, flags, id), text...)
}

func join(all ...[]byte) []byte { return bytes.Join(all, nil) }

func number(n ...uint32) (b []byte) {
	for _, v := range n {
		b = binary.BigEndian.AppendUint32(b, v)
	}
	return b
}

func raw(kind http2.FrameType, flags uint8, id uint32, payload []byte) []byte {
	return append(http2.AppendFrame(nil, len(payload), kind, flags, id), payload...)
}

// nobody is the owner of streams in tests.
type nobody struct{ ended, broke int }

func (n *nobody) Ended()      { n.ended++ }
func (n *nobody) Broke(error) { n.ended++; n.broke++ }

// request sends a request on a connection and takes its answer to the end.
func request(t *testing.T, c *Conn, options ...exchangetest.Option) (*exchangetest.Front, *exchange.Exchange, error) {
	t.Helper()
	ex := exchangetest.New(t, options...)
	if !c.Reserve() {
		return nil, ex, errors.New("no place")
	}
	s := NewStream(ex, exchange.Now(), &nobody{})
	if err := s.Do(c, http2.AppendIndexed(nil, http2.MethodGet)); err != nil {
		s.End()
		return nil, ex, err
	}
	front := ex.Front.(*exchangetest.Front)
	err := front.Send(ex)
	ex.Response.Body.Close()
	return front, ex, err
}

// TestServersThatBreakRules holds what becomes of a request when its server does
// not keep to RFC 9113, and whether the connection goes on.
func TestServersThatBreakRules(t *testing.T) {
	ok := func(s *rawServer, id uint32) []byte { return s.head(id, false, ":status", "200") }
	for _, c := range []struct {
		name   string
		answer func(s *rawServer, id uint32) []byte
		reason exchange.Reason
		cause  string
		goesOn bool
	}{
		{"two :status", func(s *rawServer, id uint32) []byte { return s.head(id, true, ":status", "200", ":status", "200") }, exchange.UpstreamInvalid, "one :status", true},
		{"no :status", func(s *rawServer, id uint32) []byte { return s.head(id, true, "a", "b") }, exchange.UpstreamInvalid, "no :status", true},
		{":status last", func(s *rawServer, id uint32) []byte { return s.head(id, true, "a", "b", ":status", "200") }, exchange.UpstreamInvalid, "one :status, first", true},
		{"odd status", func(s *rawServer, id uint32) []byte { return s.head(id, true, ":status", "20x") }, exchange.UpstreamInvalid, "not a status code", true},
		{"101", func(s *rawServer, id uint32) []byte { return s.head(id, false, ":status", "101") }, exchange.UpstreamInvalid, "101", true},
		{"an interim end", func(s *rawServer, id uint32) []byte { return s.head(id, true, ":status", "103") }, exchange.UpstreamInvalid, "interim response that ends", true},
		{"capitals", func(s *rawServer, id uint32) []byte { return s.head(id, true, ":status", "200", "Ab", "b") }, exchange.UpstreamInvalid, "lower-case", true},
		{"line ends", func(s *rawServer, id uint32) []byte { return s.head(id, true, ":status", "200", "a", "b\r\nc: d") }, exchange.UpstreamInvalid, "control characters", true},
		{"connection", func(s *rawServer, id uint32) []byte { return s.head(id, true, ":status", "200", "connection", "close") }, exchange.UpstreamInvalid, "connection-specific", true},
		{"two lengths", func(s *rawServer, id uint32) []byte {
			return s.head(id, true, ":status", "200", "content-length", "0", "content-length", "0")
		}, exchange.UpstreamInvalid, "more than one", true},
		{"longer than it says", func(s *rawServer, id uint32) []byte {
			return join(s.head(id, false, ":status", "200", "content-length", "1"), data(id, "ab", http2.FlagEndStream))
		}, exchange.UpstreamInvalid, "longer than", true},
		{"shorter than it says", func(s *rawServer, id uint32) []byte {
			return join(s.head(id, false, ":status", "200", "content-length", "3"), data(id, "ab", http2.FlagEndStream))
		}, exchange.UpstreamInvalid, "shorter than", true},
		{"content of 204", func(s *rawServer, id uint32) []byte {
			return join(s.head(id, false, ":status", "204"), data(id, "ab", http2.FlagEndStream))
		}, exchange.UpstreamInvalid, "no content", true},
		{"a body first", func(s *rawServer, id uint32) []byte { return data(id, "ab", http2.FlagEndStream) }, exchange.UpstreamInvalid, "DATA before", true},
		{"a second head", func(s *rawServer, id uint32) []byte { return join(ok(s, id), s.head(id, false, "a", "b")) }, exchange.UpstreamInvalid, "second head", true},
		{"a large head", func(s *rawServer, id uint32) []byte {
			return s.head(id, true, ":status", "200", "a", strings.Repeat("x", 20_000), "b", strings.Repeat("x", 20_000))
		}, exchange.UpstreamInvalid, "larger than the limit", true},
		{"refused", func(s *rawServer, id uint32) []byte { return http2.AppendRSTStream(nil, id, http2.RefusedStream) }, exchange.UpstreamReset, "not processed", true},
		{"reset", func(s *rawServer, id uint32) []byte { return http2.AppendRSTStream(nil, id, http2.InternalError) }, exchange.UpstreamReset, "INTERNAL_ERROR", true},
		{"reset in the body", func(s *rawServer, id uint32) []byte {
			return join(ok(s, id), data(id, "ab", 0), http2.AppendRSTStream(nil, id, http2.Cancel))
		}, exchange.UpstreamCanceled, "CANCEL", true},
		{"canceled before the head", func(s *rawServer, id uint32) []byte { return http2.AppendRSTStream(nil, id, http2.Cancel) }, exchange.UpstreamReset, "CANCEL", true},
		{"wants HTTP/1.1", func(s *rawServer, id uint32) []byte { return http2.AppendRSTStream(nil, id, http2.HTTP11Required) }, exchange.UpstreamReset, "wants HTTP/1.1", true},
		{"GOAWAY below", func(s *rawServer, id uint32) []byte { return raw(http2.FrameGoAway, 0, 0, number(0, 0)) }, exchange.UpstreamReset, "not processed", false},
		{"another stream", func(s *rawServer, id uint32) []byte { return s.head(id+2, true, ":status", "200") }, exchange.UpstreamInvalid, "not opened", false},
		{"an even stream", func(s *rawServer, id uint32) []byte { return data(2, "a", 0) }, exchange.UpstreamInvalid, "not opened", false},
		{"a push", func(s *rawServer, id uint32) []byte { return raw(http2.FramePushPromise, 4, id, number(2)) }, exchange.UpstreamInvalid, "PUSH_PROMISE", false},
		{"a large frame", func(s *rawServer, id uint32) []byte {
			return http2.AppendFrame(nil, http2.MaxFrameSize+1, http2.FrameData, 0, id)
		}, exchange.UpstreamInvalid, "MAX_FRAME_SIZE", false},
		{"a block of another", func(s *rawServer, id uint32) []byte {
			return join(raw(http2.FrameHeaders, 0, id, s.block(":status", "200")), data(id, "a", 0))
		}, exchange.UpstreamInvalid, "within a field block", false},
		{"no block", func(s *rawServer, id uint32) []byte { return raw(http2.FrameContinuation, 4, id, nil) }, exchange.UpstreamInvalid, "without a field block", false},
		{"a block without end", func(s *rawServer, id uint32) []byte {
			return join(raw(http2.FrameHeaders, 0, id, nil), bytes.Repeat(raw(http2.FrameContinuation, 0, id, nil), maxPieces+1))
		}, exchange.UpstreamInvalid, "too many pieces", false},
		{"a broken block", func(s *rawServer, id uint32) []byte { return raw(http2.FrameHeaders, 4, id, []byte{0xff, 0xff, 0xff}) }, exchange.UpstreamInvalid, "cannot be decoded", false},
		{"a huge field", func(s *rawServer, id uint32) []byte {
			b := append([]byte{0, 1, 'a', 0x7f}, 0xff, 0xff, 0x7f)
			return raw(http2.FrameHeaders, 4, id, b)
		}, exchange.UpstreamInvalid, "larger than the bound", false},
		{"padding", func(s *rawServer, id uint32) []byte { return raw(http2.FrameData, http2.FlagPadded, id, []byte{5, 1}) }, exchange.UpstreamInvalid, "padding", false},
		{"no window", func(s *rawServer, id uint32) []byte { return http2.AppendWindowUpdate(nil, 0, 0) }, exchange.UpstreamInvalid, "WINDOW_UPDATE", false},
		{"a wide window", func(s *rawServer, id uint32) []byte { return http2.AppendWindowUpdate(nil, 0, http2.MaxWindow) }, exchange.UpstreamInvalid, "WINDOW_UPDATE", false},
		{"no stream window", func(s *rawServer, id uint32) []byte { return http2.AppendWindowUpdate(nil, id, 0) }, exchange.UpstreamInvalid, "WINDOW_UPDATE", true},
		{"small frames", func(s *rawServer, id uint32) []byte {
			return raw(http2.FrameSettings, 0, 0, http2.AppendSetting(nil, http2.SettingMaxFrameSize, 1))
		}, exchange.UpstreamInvalid, "MAX_FRAME_SIZE", false},
		{"pings", func(s *rawServer, id uint32) []byte {
			return bytes.Repeat(http2.AppendPing(nil, 0, []byte("12345678")), maxUseless+1)
		}, exchange.UpstreamInvalid, "of no use", false},
		{"empty data", func(s *rawServer, id uint32) []byte {
			return join(ok(s, id), bytes.Repeat(data(id, "", 0), maxUseless+1))
		}, exchange.UpstreamInvalid, "of no use", false},
		{"leaves", nil, exchange.UpstreamReset, "closed the connection", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			conn, server := meet(t, Settings{})
			go func() {
				f := server.next()
				if c.answer == nil {
					server.conn.Close()
					return
				}
				server.send(c.answer(server, f.Stream))
				for c.goesOn && f.Type != 0xff {
					if f = server.next(); f.Type == http2.FrameHeaders {
						server.send(server.head(f.Stream, true, ":status", "200"))
					}
				}
			}()
			_, _, err := request(t, conn)
			var known *exchange.Error
			if !errors.As(err, &known) || known.Reason != c.reason || !strings.Contains(err.Error(), c.cause) {
				t.Fatalf("got %v, want %v with %q", err, c.reason, c.cause)
			}
			if !c.goesOn {
				if conn.Reserve() {
					t.Error("the connection takes another request")
				}
				return
			}
			if front, _, err := request(t, conn); err != nil || front.Status != 200 {
				t.Errorf("the next request: %v", err)
			}
		})
	}
}
