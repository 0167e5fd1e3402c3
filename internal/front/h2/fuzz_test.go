package h2_test

import (
	"bytes"
	"io"
	"net"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"headgate/internal/exchange"
	"headgate/internal/testhouse"
)

// FuzzConnection sends bytes to a connection and looks at what comes back: it
// must be valid frames, nothing may panic, and every exchange must end. The
// first byte chooses whether preface and SETTINGS go before the rest.
func FuzzConnection(f *testing.F) {
	seed := func(write func(c *raw)) {
		c := &raw{}
		c.Framer = http2.NewFramer(&c.out, nil)
		c.AllowIllegalWrites = true
		c.enc = hpack.NewEncoder(&c.mem)
		write(c)
		f.Add(append([]byte{1}, c.out.Bytes()...))
	}
	f.Add([]byte("\x00GET / HTTP/1.1\r\n\r\n"))
	f.Add([]byte("\x00" + http2.ClientPreface + "\x00\x00\x00\x04\x00\x00\x00\x00\x00"))
	seed(func(c *raw) { c.request(1, true, get...); c.WritePing(false, [8]byte{1}) })
	seed(func(c *raw) {
		c.request(1, false, append(post, "content-length", "6", "cookie", "a=b", "cookie", "c=d")...)
		c.WriteDataPadded(1, false, []byte("abc"), []byte{0, 0})
		c.WriteData(1, true, []byte("def"))
		c.request(3, false, append(post, "expect", "100-continue", "priority", "u=1, i")...)
		c.WriteWindowUpdate(3, 100)
		c.WriteData(3, false, []byte("abc"))
		c.request(3, true, "x-sum", "1")
	})
	seed(func(c *raw) {
		b := c.block(get...)
		c.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: b[:3], EndStream: true, PadLength: 4, Priority: http2.PriorityParam{StreamDep: 7}})
		c.WriteContinuation(1, true, b[3:])
		c.WriteRSTStream(1, http2.ErrCodeCancel)
		c.WriteRawFrame(0x10, 0, 0, []byte("\x00\x00\x00\x03u=2"))
		c.WritePriority(3, http2.PriorityParam{StreamDep: 1})
		c.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 0}, http2.Setting{ID: http2.SettingHeaderTableSize, Val: 0})
		c.request(3, true, get...)
		c.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 1000})
		c.WriteGoAway(0, http2.ErrCodeNo, nil)
	})
	p := newProxy(f, "", source(echo), quiet, limits(func(port *exchange.Port) {
		port.HeadTimeout, port.KeepAlive, port.WriteIdle = time.Second, time.Second, time.Second
		port.Limits.BodyIdle = time.Second
	}))
	p.front.Flooded = nil
	f.Fuzz(func(t *testing.T, input []byte) {
		if len(input) == 0 {
			return
		}
		nc := &tape{in: *bytes.NewReader(input[1:])}
		if input[0]&1 != 0 {
			nc.in = *bytes.NewReader(append([]byte(greeting), input[1:]...))
		}
		c := p.front.NewConn(nc, p.serial.Add(1))
		served := make(chan struct{})
		go func() { testhouse.Serve(c); close(served) }()
		select {
		case <-served:
		case <-time.After(patience / 2):
			t.Fatal("the connection did not end")
		}
		check(t, &nc.out)
	})
}

// greeting is the preface, SETTINGS, and the acknowledgement of ours.
const greeting = http2.ClientPreface + "\x00\x00\x00\x04\x00\x00\x00\x00\x00\x00\x00\x00\x04\x01\x00\x00\x00\x00"

// tape is a connection whose client has said everything already.
type tape struct {
	net.Conn
	in  bytes.Reader
	out bytes.Buffer
}

func (c *tape) Read(p []byte) (int, error)       { return c.in.Read(p) }
func (c *tape) Write(p []byte) (int, error)      { return c.out.Write(p) }
func (c *tape) Close() error                     { return nil }
func (c *tape) RemoteAddr() net.Addr             { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 1} }
func (c *tape) LocalAddr() net.Addr              { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 2} }
func (c *tape) SetReadDeadline(time.Time) error  { return nil }
func (c *tape) SetWriteDeadline(time.Time) error { return nil }

// check reads the frames that were sent.
func check(t *testing.T, sent io.Reader) {
	fr := http2.NewFramer(io.Discard, sent)
	fr.ReadMetaHeaders = hpack.NewDecoder(4096, nil)
	for {
		if _, err := fr.ReadFrame(); err == io.EOF {
			return
		} else if err != nil {
			t.Fatalf("we sent what is not valid: %v", err)
		}
	}
}

// echo answers with the body of the request, and an interim response before.
func echo(ex *exchange.Exchange) *exchange.Answer {
	ex.Front.Inform(ex, 103, nil)
	rs := &ex.Response
	rs.Status = 200
	if ex.Request.Body != nil {
		var b bytes.Buffer
		if _, err := io.Copy(&b, reader{ex.Request.Body}); err != nil {
			return exchange.Fail(exchange.BadRequest, err.Error())
		}
		rs.Text, rs.Length = b.Bytes(), int64(b.Len())
	}
	return nil
}
