package https

import (
	"encoding/binary"
	"math/rand/v2"
	"net"
	"net/netip"
	"runtime"
	"testing"

	"github.com/quic-go/quic-go/quicvarint"

	"headgate/internal/testhouse"
)

// datagram makes a datagram that means no good.
func datagram(kind int, r *rand.Rand) []byte {
	b := make([]byte, 1200)
	for i := 0; i < len(b); i += 8 {
		binary.LittleEndian.PutUint64(b[i:], r.Uint64())
	}
	switch kind {
	case 0: // noise
		return b[:r.IntN(len(b))+1]
	case 1: // a version that nobody knows
		b[0] |= 0xc0
		b[5], b[14] = 8, 8
	case 2: // an Initial of version 1 that nobody can decrypt
		p := append(b[:0], 0xc3, 0, 0, 0, 1, 8)
		p = p[:14] // the destination is random
		p = append(p, 0, 0)
		quicvarint.AppendWithLen(p, uint64(1200-18), 2)
	case 3: // an Initial with a token of somebody's
		p := append(b[:0], 0xc3, 0, 0, 0, 1, 8)
		p = p[:14]
		p = append(p, 0, 60)
		quicvarint.AppendWithLen(p[:76], uint64(1200-78), 2)
	case 4: // a packet of a connection that is not there
		b[0] = 0x40 | b[0]&0x3f
	}
	return b
}

func TestForgedDatagramsDoNoHarm(t *testing.T) {
	const sources = 25_000 // of which a fifth or more would show, if a kind of them kept a goroutine
	h, address := newHouse(t), testhouse.Address(t)
	h.start(withPorts(address, true, "all: {routes: [{fixed_response: {status: 200}}]}"))
	to := net.UDPAddrFromAddrPort(netip.MustParseAddrPort(address))
	before := runtime.NumGoroutine()
	r := rand.New(rand.NewPCG(1, 2))
	for i := range sources {
		// Every source is an address of its own.
		from := netip.AddrFrom4([4]byte{127, byte(1 + i>>16), byte(i >> 8), byte(i)})
		c, err := net.DialUDP("udp4", net.UDPAddrFromAddrPort(netip.AddrPortFrom(from, 0)), to)
		if err != nil {
			t.Skipf("this system has not all of 127.0.0.0/8: %v", err)
		}
		c.Write(datagram(i%5, r))
		c.Close()
	}
	n := runtime.NumGoroutine() - before
	t.Logf("%d goroutines more", n)
	if n > 1000 {
		t.Errorf("%d goroutines are busy with them", n)
	}
	if ws := extended3(t, address, "/", "websocket"); ws.status != 501 {
		t.Errorf("afterwards: got %d", ws.status)
	}
}
