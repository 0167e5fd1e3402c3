package h2_test

import (
	"fmt"
	"io"
	"math/rand/v2"
	"strconv"
	"testing"
	"time"

	"golang.org/x/net/http2"

	"headgate/internal/front/clients"
	"headgate/internal/testhouse"
	"headgate/internal/upstream"
)

// TestRandomLives lets clients send any frames at any moment, while requests and responses
// begin, go on and break off in every way. A client gets what its requests stand for, in
// full or with a reset, windows hold and add up, and nothing is left when all have gone.
func TestRandomLives(t *testing.T) {
	testhouse.Lives(t, 1, 100, lead)
}

// lead leads one life.
func lead(t *testing.T, seed uint64) {
	w := &testhouse.World{}
	r := rand.New(rand.NewPCG(seed, 1))
	secure, tight := r.IntN(4) == 0, r.IntN(4) == 0
	p := newProxy(t, "", quiet, func(p *proxy, s *upstream.Settings) {
		if secure {
			overTLS(p, s)
		}
		if tight {
			p.port.MaxClientMemory = 6 * clients.RequestMemory
		}
		log := w.Log()
		p.pipe.Source, p.pipe.Log, p.front.Log, p.front.Clients = w, log, log, clients.New()
		p.port.Streams = 40
	})
	c := &liver{
		World: w, raw: p.dial(), random: r, tight: tight, asked: map[uint32]*ask{},
		initial: firstWindow, conn: firstWindow, maySend: firstWindow, first: firstWindow,
		settings: []change{{}}, // those with which it connects
	}
	c.live(p)
	w.Report(t, c.told)
}

// firstWindow is what windows begin with (RFC 9113, section 6.9.2).
const firstWindow = 65535

// liver is a client of a random life.
type liver struct {
	*raw
	*testhouse.World
	random *rand.Rand
	told   []string // what it did

	last  uint32
	asked map[uint32]*ask

	settings []change // that are not acknowledged
	sent     int      // how many SETTINGS were
	initial  int64    // the window of new streams, as we have said
	conn     int64    // what the server may send
	maySend  int64    // and what we may
	first    int64    // on a new stream
	wild     bool     // a rule of the connection was broken
	drained  bool
	tight    bool  // there is little memory for it
	over     error // the connection has ended
}

// change is SETTINGS that make windows smaller once they are acknowledged.
type change struct {
	number int
	by     int64
}

// ask is a request.
type ask struct {
	response
	script  testhouse.Script
	head    bool
	began   int   // how many SETTINGS had been sent
	window  int64 // what the server may send
	may     int64 // and what we may
	upload  int   // how much is to be sent
	at      int
	sends   bool // there is an upload
	closed  bool // our side has ended
	reset   bool // by us, or our request is malformed
	ended   bool
	refused bool // it comes after the end was told
}

func (c *liver) note(format string, args ...any) {
	if len(c.told) < 500 {
		c.told = append(c.told, fmt.Sprintf(format, args...))
	}
}

// live leads the life.
func (c *liver) live(p *proxy) {
	rounds, rude := 8+c.random.IntN(10), c.random.IntN(3) == 0
	c.ping(253) // the connection is served
	for round := range byte(rounds) {
		for range c.random.IntN(5) {
			c.move(p, rude)
		}
		c.Next()
		if c.ping(round); c.over != nil {
			break
		}
	}
	c.end(p)
}

// ping sends what was written, and hears what comes until the server has taken that.
func (c *liver) ping(mark byte) {
	c.WritePing(false, [8]byte{mark})
	c.flush()
	c.readFrames(func(f http2.Frame) bool {
		ping, is := f.(*http2.PingFrame)
		return is && ping.IsAck() && ping.Data[0] == mark
	})
}

// end lets all come to its end, and looks at what is left.
func (c *liver) end(p *proxy) {
	c.End()
	if c.over == nil {
		c.note("end")
		c.changeWindow(1 << 20)
		c.open(0, 1<<24)
		for id, a := range c.asked {
			if !a.ended && !a.reset && !a.closed && !a.refused {
				c.note("reset %d", id) // what it has not sent stays so
				a.reset = true
				c.WriteRSTStream(id, http2.ErrCodeCancel)
			}
		}
		c.WritePing(false, [8]byte{255})
		c.flush()
		c.readFrames(func(http2.Frame) bool {
			for _, a := range c.asked {
				if !a.ended && !a.reset && !a.refused {
					return false
				}
			}
			return true
		})
	}
	for id, a := range c.asked {
		got := testhouse.Got{Status: a.status, Body: a.body, Ended: a.ended && !a.gone}
		if len(a.trailer) == 1 {
			got.Sum = a.trailer[0].Value
		}
		if err := a.script.Check(&got, a.head); err != nil {
			c.Fault("stream %d: %v, script %+v", id, err, a.script)
		}
		if c.over == nil && !c.wild && !a.reset && !a.refused && a.script.Clean(a.head) && (!a.ended || a.gone) {
			c.Fault("stream %d: ended %v, reset with %v, script %+v", id, a.ended, a.response.reset, a.script)
		}
	}
	if c.over != nil && !c.wild && !c.drained {
		c.Fault("the connection ended by %v", c.over)
	}
	if c.over == nil && !c.wild {
		c.lookAtWindow()
	}
	c.nc.Close()
	p.wait0()
	testhouse.Eventually(c.t, "memory is given back", func() bool { return p.front.Clients.Used() == 0 })
}

// lookAtWindow holds that what we may send adds up: all but what is not worth a frame was
// granted anew.
func (c *liver) lookAtWindow() {
	const most = 2 << 20
	testhouse.Eventually(c.t, "the window of the connection is open again", func() bool {
		c.ping(254)
		return c.over != nil || c.maySend > most-most/4 && c.maySend <= most
	})
}

// move does one thing.
func (c *liver) move(p *proxy, rude bool) {
	stream := 1 + 2*uint32(c.random.IntN(int(c.last/2)+1))
	a := c.asked[stream]
	mine := a != nil && !a.ended && !a.reset && !a.refused
	switch c.random.IntN(19) {
	case 0, 1, 2:
		c.sendRequest()
	case 3, 4, 5, 6:
		for id := uint32(1); id <= c.last; id += 2 {
			if a := c.asked[id]; c.random.IntN(2) == 0 && !a.closed && !a.reset && !a.ended && !a.refused {
				c.push(id, a)
			}
		}
	case 7, 16, 17, 18:
		c.changeWindow([]int64{0, 0, 1, 10, 1000, 65535, 200_000}[c.random.IntN(7)])
	case 8:
		c.open(0, 1+c.random.Int64N(60_000))
	case 9:
		if mine {
			c.open(stream, 1+c.random.Int64N(20_000))
		}
	case 10:
		if mine && c.random.IntN(2) == 0 {
			c.note("reset %d", stream)
			a.reset = true
			c.WriteRSTStream(stream, []http2.ErrCode{http2.ErrCodeCancel, http2.ErrCodeNo, 99}[c.random.IntN(3)])
		}
	case 11:
		c.priority(stream)
	case 12:
		c.changeSettings()
	case 13:
		if c.random.IntN(8) == 0 && !c.drained {
			c.note("drain")
			c.drained = true
			p.conn(0).Drain()
		}
	case 14:
		if c.random.IntN(3) == 0 {
			c.note("GOAWAY")
			c.WriteGoAway(0, http2.ErrCodeNo, nil)
		}
	case 15:
		if rude {
			c.offend(stream, a, mine)
		}
	}
}

// sendRequest sends a request.
func (c *liver) sendRequest() {
	open := 0
	for _, a := range c.asked {
		if !a.ended && !a.reset {
			open++
		}
	}
	if open >= 30 {
		return
	}
	id := uint32(1)
	if c.last != 0 {
		id = c.last + 2
	}
	c.last = id
	seed := c.random.Uint64N(testhouse.Scripts)
	a := &ask{script: testhouse.ScriptOf(seed), began: c.sent, window: c.initial, may: c.first, refused: c.drained}
	method := []string{"GET", "GET", "HEAD", "POST", "POST", "PUT"}[c.random.IntN(6)]
	a.head = method == "HEAD"
	fields := []string{":method", method, ":scheme", "http", ":authority", "example.com", ":path", "/" + strconv.FormatUint(seed, 10)}
	if a.sends = method == "POST" || method == "PUT"; a.sends {
		a.upload = testhouse.UploadSize(seed, []int{0, 1, 30, 400, 1500}[c.random.IntN(5)])
		if c.random.IntN(2) == 0 {
			fields = append(fields, "content-length", strconv.Itoa(a.upload))
		}
		if c.random.IntN(5) == 0 {
			fields = append(fields, "expect", "100-continue")
		}
	} else {
		a.closed = true
	}
	if c.random.IntN(4) == 0 {
		fields = append(fields, "priority", fmt.Sprintf("u=%d", c.random.IntN(8)))
	}
	if c.random.IntN(6) == 0 {
		fields = append(fields, "cookie", "a=b", "cookie", "c=d", "te", "trailers")
	}
	c.note("stream %d %s, upload %d, %+v", id, method, a.upload, a.script)
	c.asked[id] = a
	block := c.block(fields...)
	first, pieces := block, c.random.IntN(4)
	if pieces > 0 {
		first = block[:c.random.IntN(len(block))]
	}
	c.WriteHeaders(http2.HeadersFrameParam{StreamID: id, BlockFragment: first, EndStream: a.closed, EndHeaders: len(first) == len(block), PadLength: uint8(c.random.IntN(3))})
	for rest := block[len(first):]; len(rest) > 0; {
		n := 1 + c.random.IntN(len(rest))
		c.WriteContinuation(id, n == len(rest), rest[:n])
		rest = rest[n:]
	}
}

// push sends some of an upload.
func (c *liver) push(id uint32, a *ask) {
	for range 1 + c.random.IntN(4) {
		n := int(min(int64(a.upload-a.at), 1+c.random.Int64N(16<<10-256), a.may-10, c.maySend-10))
		if n < 0 {
			return
		}
		p := make([]byte, n)
		testhouse.Octets(p, a.script.Seed+1, a.at)
		end, pad := a.at+n == a.upload, c.random.IntN(4)
		if n == 0 && !end {
			return
		}
		trailers := end && c.random.IntN(3) == 0
		var padding []byte
		size := int64(n)
		if pad > 0 {
			padding = make([]byte, pad)
			size += int64(pad) + 1
		}
		c.WriteDataPadded(id, end && !trailers, p, padding)
		a.at, a.may, c.maySend = a.at+n, a.may-size, c.maySend-size
		if trailers {
			c.WriteHeaders(http2.HeadersFrameParam{StreamID: id, BlockFragment: c.block("sum", "1"), EndStream: true, EndHeaders: true})
		}
		if end {
			c.note("upload %d ends", id)
			a.closed = true
			return
		}
	}
}

// changeWindow changes the window that streams have at first.
func (c *liver) changeWindow(to int64) {
	by := to - c.initial
	c.note("initial window %d", to)
	c.initial = to
	c.sent++
	if by > 0 {
		for _, a := range c.asked {
			a.window += by
		}
		by = 0
	}
	c.settings = append(c.settings, change{c.sent, by})
	c.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: uint32(to)})
}

// changeSettings sends other SETTINGS.
func (c *liver) changeSettings() {
	c.sent++
	c.settings = append(c.settings, change{c.sent, 0})
	all := []http2.Setting{
		{ID: http2.SettingHeaderTableSize, Val: uint32(c.random.IntN(5000))}, {ID: http2.SettingMaxFrameSize, Val: 1<<14 + uint32(c.random.IntN(1<<20))},
		{ID: http2.SettingEnablePush, Val: 0}, {ID: http2.SettingMaxConcurrentStreams, Val: 0}, {ID: 0xabcd, Val: 7}, {ID: http2.SettingMaxHeaderListSize, Val: 1},
	}
	c.WriteSettings(all[:c.random.IntN(len(all)+1)]...)
}

// open opens a window.
func (c *liver) open(stream uint32, by int64) {
	c.note("window of %d by %d", stream, by)
	if stream == 0 {
		c.conn += by
	} else {
		c.asked[stream].window += by
	}
	c.WriteWindowUpdate(stream, uint32(by))
}

func (c *liver) priority(stream uint32) {
	switch c.random.IntN(3) {
	case 0:
		c.WritePriority(stream, http2.PriorityParam{StreamDep: 0, Weight: 3})
	default:
		text := fmt.Sprintf("u=%d", c.random.IntN(9))
		if c.random.IntN(2) == 0 {
			text += ", i"
		}
		id := stream + 2*uint32(c.random.IntN(3))
		c.WriteRawFrame(0x10, 0, 0, append([]byte{byte(id >> 24), byte(id >> 16), byte(id >> 8), byte(id)}, text...))
	}
}

// offend breaks a rule: of a stream of ours, or of the connection.
func (c *liver) offend(stream uint32, a *ask, mine bool) {
	how := c.random.IntN(16)
	c.note("offend %d on %d", how, stream)
	if how < 6 && mine {
		a.reset = true
		c.wild = c.wild || a.closed || how == 1 || how == 4 // what comes may be behind the end of the stream
		switch how {
		case 0:
			c.WriteWindowUpdate(stream, 0)
		case 1:
			c.open(stream, 1<<31-1)
		case 2:
			c.request(stream, false, "a", "b") // trailers that do not end
		case 3:
			c.request(stream, true, ":path", "/")
		case 4:
			c.WriteRawFrame(http2.FramePriority, 0, stream, []byte{1, 2})
		case 5:
			c.request(stream, true, "UPPER", "x")
		}
		return
	}
	c.wild = true
	switch how {
	case 6:
		c.WriteData(c.last+2, true, []byte("x"))
	case 7:
		c.WriteRSTStream(c.last+10, http2.ErrCodeCancel)
	case 8:
		c.open(0, 1<<31-1)
	case 9:
		c.WriteHeaders(http2.HeadersFrameParam{StreamID: c.last + 2, BlockFragment: []byte{0x82}})
		c.WritePing(false, [8]byte{})
	case 10:
		c.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 1 << 31})
	case 11:
		c.WriteContinuation(c.last, true, nil)
	case 12:
		c.WriteRawFrame(http2.FramePushPromise, 0, stream, []byte{0, 0, 0, 2})
	case 13:
		c.WriteHeaders(http2.HeadersFrameParam{StreamID: c.last + 2, BlockFragment: []byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff}, EndHeaders: true})
	case 14:
		c.send([]byte{0, 0, 10, 0, 0})
		c.flush()
		c.nc.(interface{ CloseWrite() error }).CloseWrite()
	case 15:
		for range 5 { // over a window, or of a stream that is over
			p := make([]byte, 16<<10)
			if a := c.asked[c.last]; a != nil {
				testhouse.Octets(p, a.script.Seed+1, a.at)
				a.at += len(p)
			}
			c.WriteData(c.last, false, p)
		}
	default:
		c.changeWindow(1<<31 - 1)
		if c.last > 0 {
			c.open(c.last, 1<<31-1)
		}
	}
}

// readFrames reads frames until one is the last, or the connection ends.
func (c *liver) readFrames(last func(http2.Frame) bool) {
	for {
		c.nc.SetReadDeadline(time.Now().Add(20 * time.Second))
		f, err := c.ReadFrame()
		if err != nil {
			if err != io.EOF && !c.wild {
				c.Fault("read: %v", err)
			}
			for id, a := range c.asked {
				if !a.ended && !a.reset && !c.wild && !a.refused {
					c.Fault("stream %d was not ended before its connection: %v, script %+v", id, err, a.script)
				}
			}
			c.over = err
			return
		}
		c.handleFrame(f)
		if last(f) {
			return
		}
	}
}

// handleFrame processes a frame.
func (c *liver) handleFrame(f http2.Frame) {
	id := f.Header().StreamID
	a := c.asked[id]
	switch f := f.(type) {
	case *http2.SettingsFrame:
		c.heardSettings(f)
	case *http2.WindowUpdateFrame:
		if id == 0 {
			c.maySend += int64(f.Increment)
		} else if a != nil {
			a.may += int64(f.Increment)
		}
	case *http2.PingFrame:
		if !f.IsAck() {
			c.WritePing(true, f.Data)
			c.flush()
		}
	case *http2.GoAwayFrame:
		if f.ErrCode != http2.ErrCodeNo && !c.wild {
			c.Fault("GOAWAY %v %s", f.ErrCode, f.DebugData())
		}
		for id, a := range c.asked {
			if id > f.LastStreamID {
				a.refused = true
			}
		}
	case *http2.DataFrame:
		if a == nil {
			c.Fault("DATA on %d", id)
			return
		}
		n := int64(len(f.Data()))
		if c.conn -= n; n > 0 && c.conn < 0 {
			c.Fault("stream %d: more than the connection's window", id)
		}
		if a.window -= n; n > 0 && a.window < 0 {
			c.Fault("stream %d: %d more than its window", id, -a.window)
		}
	}
	if a == nil {
		return
	}
	if a.ended {
		if _, is := f.(*http2.WindowUpdateFrame); !is && !stops(f, a) && !c.wild {
			c.Fault("stream %d: a frame behind its end: %v", id, f.Header())
		}
		return
	}
	if m, is := f.(*http2.MetaHeadersFrame); is && m.PseudoValue("status") != "" && m.PseudoValue("status")[0] == '1' && a.status != "" {
		c.Fault("stream %d: an interim response behind the final one", id)
	}
	if a.ended = a.add(f); a.ended && a.status != "" && a.status[0] == '2' && !a.gone && a.field("seed") != strconv.FormatUint(a.script.Seed, 10) {
		c.Fault("stream %d: got the response to %s, want %d", id, a.field("seed"), a.script.Seed)
	}
	if rst, is := f.(*http2.RSTStreamFrame); is && (rst.ErrCode == http2.ErrCodeRefusedStream || c.tight && a.sends && rst.ErrCode == http2.ErrCodeEnhanceYourCalm) {
		a.refused = true
	}
}

// stops reports whether a frame behind a response tells that the rest of the request is not
// wanted (RFC 9113, section 8.1): some of that may be on its way.
func stops(f http2.Frame, a *ask) bool {
	rst, is := f.(*http2.RSTStreamFrame)
	return is && (rst.ErrCode == http2.ErrCodeNo && a.sends || a.reset)
}

func (c *liver) heardSettings(f *http2.SettingsFrame) {
	if !f.IsAck() {
		return
	}
	if len(c.settings) == 0 {
		c.Fault("an acknowledgement of nothing")
		return
	}
	s := c.settings[0]
	c.settings = c.settings[1:]
	for _, a := range c.asked {
		if a.began < s.number {
			a.window += s.by
		}
	}
}
