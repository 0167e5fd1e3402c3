package h2_test

import (
	"fmt"
	"io"
	"net"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"headgate/internal/exchange"
	"headgate/internal/front/clients"
	"headgate/internal/front/h2"
	"headgate/internal/testhouse"
	"headgate/internal/upstream"
)

func known(p *proxy, _ *upstream.Settings) { p.front.Clients = clients.New() }

// from connects from an address of this machine.
func (p *proxy) from(address string) *raw {
	p.t.Helper()
	d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(address)}}
	nc, err := d.Dial("tcp", p.addr)
	if err != nil {
		p.t.Skipf("this system has not all of 127.0.0.0/8: %v", err)
	}
	p.t.Cleanup(func() { nc.Close() })
	nc.SetDeadline(time.Now().Add(patience))
	c := &raw{t: p.t, nc: nc}
	c.Framer = http2.NewFramer(&c.out, nc)
	c.AllowIllegalWrites = true
	c.ReadMetaHeaders = hpack.NewDecoder(4096, nil)
	c.enc = hpack.NewEncoder(&c.mem)
	c.send([]byte(http2.ClientPreface))
	c.WriteSettings()
	c.WriteSettingsAck()
	c.flush()
	return c
}

// resets reads until the connection ends or is said to, or to the end of so many streams,
// and returns how many were reset and how the connection ended.
func (c *raw) resets(streams int) (n int, code http2.ErrCode) {
	for n < streams {
		f, err := c.ReadFrame()
		if err != nil {
			return n, code
		}
		switch f := f.(type) {
		case *http2.RSTStreamFrame:
			n++
		case *http2.GoAwayFrame:
			return n, f.ErrCode
		}
	}
	return n, code
}

// A client that makes us reset requests, and connects again whenever it is sent away,
// is bounded by its address. Others are served meanwhile.
func TestMadeYouResetOverManyConnections(t *testing.T) {
	p := newProxy(t, "", text("hello"), known)
	total := 0
	for range 40 {
		c := p.from("127.0.0.2")
		for id := range uint32(200) { // fewer than one connection may
			c.request(2*id+1, true, append(bytesFields(get), "Upper", "x")...)
		}
		c.flush()
		n, _ := c.resets(200)
		total += n
		c.nc.Close()
	}
	if total > 700 { // of 8000
		t.Errorf("%d requests were reset", total)
	}
	good := p.from("127.0.0.1")
	good.request(1, true, get...)
	good.flush()
	if rs := good.await(1); rs.status != "200" {
		t.Errorf("another client: got %+v", rs)
	}
	c := p.from("127.0.0.2")
	c.request(1, true, get...)
	c.flush()
	if rs := c.await(1); rs.status != "200" {
		t.Errorf("the same client, when it breaks no rule: got %+v", rs)
	}
}

// A head that is tiny on the wire and far too large when decoded ends the connection
// (CVE-2016-6581), and nobody decodes all of it.
func TestBombsOfHPACKEndTheConnection(t *testing.T) {
	p := newProxy(t, "", text("hello"))
	c := p.dial()
	var bomb []string
	for range 2000 {
		bomb = append(bomb, "x-big", strings.Repeat("x", 4000))
	}
	bomb = append(bytesFields(get), bomb...)
	for id := range uint32(100) {
		c.request(2*id+1, true, bomb...)
	}
	go c.flush()
	answered := 0
	for {
		f, err := c.ReadFrame()
		if err != nil {
			t.Fatalf("the connection ended by %v after %d answers", err, answered)
		}
		if m, ok := f.(*http2.MetaHeadersFrame); ok && m.PseudoValue("status") == "431" {
			answered++
		}
		if g, ok := f.(*http2.GoAwayFrame); ok {
			if g.ErrCode != http2.ErrCodeEnhanceYourCalm || answered > 0 {
				t.Errorf("got GOAWAY with %v after %d answers", g.ErrCode, answered)
			}
			break
		}
	}
	if got := p.flooded(); got != h2.HeaderFlood {
		t.Errorf("counted as %v", got)
	}
}

// What a client keeps in the table may be referred to often, and a head may be far too
// large: neither is a bomb.
func TestReferencesAndLargeHeadsAreNoBombs(t *testing.T) {
	p := newProxy(t, "", text("hello"), limits(func(l *exchange.Port) { l.HeadSize = 16 << 10 }))
	c := p.dial()
	long := append(bytesFields(get), "x-long", strings.Repeat("x", 3900))
	large := bytesFields(get)
	for i := range 5 {
		large = append(large, fmt.Sprintf("x-%d", i), strings.Repeat("e", 3900)) // 5 bits each
	}
	for id := range uint32(50) {
		fields, want := long, "200"
		if id%25 == 24 {
			fields, want = large, "431"
		}
		c.request(2*id+1, true, fields...)
		c.flush()
		if rs := c.await(2*id + 1); rs.status != want {
			t.Fatalf("head %d: got %+v, want %s", id, rs, want)
		}
	}
}

// A client whose requests hang gets its share of memory, on however many
// connections, and others go on.
func TestAClientWhoseRequestsHangLeavesRoom(t *testing.T) {
	release := make(chan struct{})
	let := sync.OnceFunc(func() { close(release) })
	t.Cleanup(let)
	begun := make(chan struct{}, 1000)
	p := newProxy(t, "", known, limits(func(l *exchange.Port) {
		l.MaxMemory, l.MaxClientMemory = 100*clients.RequestMemory, 40*clients.RequestMemory
	}), source(func(ex *exchange.Exchange) *exchange.Answer {
		if _, ok := ex.Request.Header.Lookup("x-wait"); ok {
			begun <- struct{}{}
			<-release
		}
		ex.Response.Status = 200
		return nil
	}))
	refused, hanging := 0, []*raw{}
	for range 4 {
		c := p.from("127.0.0.2")
		for id := range uint32(16) {
			c.request(2*id+1, true, append(bytesFields(get), "x-wait", "1")...)
		}
		c.WritePing(false, [8]byte{1})
		c.flush()
		hanging = append(hanging, c)
		for done := false; !done; {
			f, err := c.ReadFrame()
			if err != nil {
				t.Fatal(err)
			}
			switch f := f.(type) {
			case *http2.RSTStreamFrame:
				if f.ErrCode != http2.ErrCodeRefusedStream {
					t.Errorf("reset with %v", f.ErrCode)
				}
				refused++
			case *http2.PingFrame:
				done = true
			}
		}
	}
	if refused != 24 {
		t.Fatalf("%d requests of 64 were refused, want 24", refused)
	}
	for range 40 {
		<-begun
	}
	for probe := range 20 {
		c := p.from("127.0.0.1")
		c.request(1, true, get...)
		c.flush()
		if rs := c.await(1); rs.status != "200" {
			t.Errorf("probe %d of another client: got %+v", probe, rs)
		}
		c.nc.Close()
	}
	let()
	for _, c := range hanging {
		c.nc.Close()
	}
	testhouse.Eventually(t, "the memory is given back", func() bool { return p.front.Clients.Used() == 0 })
}

// Memory is given back while the connection lives on.
func TestAConnectionGivesMemoryBack(t *testing.T) {
	p := newProxy(t, "", known, text("x"))
	c := p.from("127.0.0.1")
	for id := range uint32(40) {
		c.request(2*id+1, true, get...)
	}
	c.flush()
	c.await(79)
	testhouse.Eventually(t, "the memory is given back", func() bool { return p.front.Clients.Used() == 0 })
	c.request(101, true, get...)
	c.flush()
	if rs := c.await(101); rs.status != "200" {
		t.Errorf("got %+v", rs)
	}
}

// Bodies that nobody reads count against their client too.
func TestBodiesThatNobodyReadsAreBounded(t *testing.T) {
	release := make(chan struct{})
	p := newProxy(t, "", known, limits(func(l *exchange.Port) { l.MaxClientMemory = 12 * clients.RequestMemory }),
		source(func(ex *exchange.Exchange) *exchange.Answer {
			if ex.Request.Body != nil {
				<-release
				io.Copy(io.Discard, ex.Request.Body)
			}
			ex.Response.Status = 200
			return nil
		}))
	c := p.from("127.0.0.2")
	for id := range uint32(10) { // each as much as its first window lets it
		c.request(2*id+1, false, post...)
		for range 3 {
			c.WriteData(2*id+1, false, make([]byte, 16<<10))
		}
	}
	c.flush()
	if n, code := c.resets(1); n != 1 || code != 0 {
		t.Errorf("%d streams were reset, GOAWAY %v", n, code)
	}
	close(release)
}

// A client cannot know that there is no memory for its requests: however often that is
// said, the connection goes on, and is served when there is some.
func TestAClientWithoutMemoryKeepsItsConnection(t *testing.T) {
	release, begun := make(chan struct{}), make(chan struct{}, 1)
	let := sync.OnceFunc(func() { close(release) })
	t.Cleanup(let)
	p := newProxy(t, "", known, limits(func(l *exchange.Port) { l.MaxClientMemory = clients.RequestMemory }),
		source(func(ex *exchange.Exchange) *exchange.Answer {
			if _, ok := ex.Request.Header.Lookup("x-wait"); ok {
				begun <- struct{}{}
				<-release
			}
			ex.Response.Status = 200
			return nil
		}))
	told := make(chan string, 10_000)
	p.front.Clients.Refused = func(client netip.Prefix) { told <- client.String() }
	holder, c := p.from("127.0.0.2"), p.from("127.0.0.2")
	holder.request(1, true, append(bytesFields(get), "x-wait", "1")...)
	holder.flush()
	<-begun
	for id := range uint32(1000) {
		c.request(2*id+1, true, get...)
		c.flush()
		if n, code := c.resets(1); n != 1 || code != 0 {
			t.Fatalf("request %d: %d resets, GOAWAY %v", id, n, code)
		}
	}
	if len(told) != 1000 || <-told != "127.0.0.2/32" {
		t.Errorf("%d refusals were told, want 1000", len(told))
	}
	let()
	holder.await(1)
	holder.nc.Close()
	testhouse.Eventually(t, "the memory is given back", func() bool { return p.front.Clients.Used() == 0 })
	c.request(3001, true, get...)
	c.flush()
	if rs := c.await(3001); rs.status != "200" {
		t.Errorf("then got %+v", rs)
	}
}

// A client that takes back its requests, and connects again before that is too much for
// one connection, is bounded by its address (CVE-2023-44487).
func TestRapidResetOverManyConnections(t *testing.T) {
	p := newProxy(t, "", text("hello"), known)
	sentAway := 0
	for range 40 {
		c := p.from("127.0.0.2")
		for id := range uint32(200) { // fewer than one connection may
			c.request(2*id+1, true, get...)
			c.WriteRSTStream(2*id+1, http2.ErrCodeCancel)
		}
		c.WritePing(false, [8]byte{1})
		c.flush()
		for over := false; !over; {
			f, err := c.ReadFrame()
			g, away := f.(*http2.GoAwayFrame) // that the connection ends then is tested elsewhere
			if away && g.ErrCode == http2.ErrCodeEnhanceYourCalm {
				sentAway++
			}
			_, answered := f.(*http2.PingFrame)
			over = away || answered || err != nil
		}
		c.nc.Close()
	}
	if sentAway < 30 {
		t.Errorf("%d connections of 40 were ended", sentAway)
	}
	good := p.from("127.0.0.1")
	good.request(1, true, get...)
	good.flush()
	if rs := good.await(1); rs.status != "200" {
		t.Errorf("another client: got %+v", rs)
	}
}
