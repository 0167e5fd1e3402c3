package generations

import (
	"bytes"
	"net"
	"testing"

	"golang.org/x/net/ipv4"
)

// relayed sends a datagram through a relay and returns it as the older process reads it.
func relayed(t *testing.T, m *ipv4.Message) ipv4.Message {
	t.Helper()
	ours, theirs, err := Relay()
	if err != nil {
		t.Fatal(err)
	}
	defer ours.Close()
	defer theirs.Close()
	from, err := relayOf(theirs)
	if err != nil {
		t.Fatal(err)
	}
	defer from.Close()
	to, err := relayOf(ours)
	if err != nil {
		t.Fatal(err)
	}
	defer to.Close()
	o := &older{conn: from}
	if o.raw, err = from.SyscallConn(); err != nil {
		t.Fatal(err)
	}
	if err := o.relay(m); err != nil {
		t.Fatal(err)
	}
	got := ipv4.Message{Buffers: [][]byte{make([]byte, 2048)}, OOB: make([]byte, 128)}
	if err := (&newer{conn: to}).read(&got); err != nil {
		t.Fatal(err)
	}
	return got
}

func TestRelayKeepsSourceAndControlMessages(t *testing.T) {
	for _, from := range []*net.UDPAddr{
		{IP: net.IPv4(192, 0, 2, 7).To4(), Port: 4711},
		{IP: net.ParseIP("2001:db8::7"), Port: 1},
		{IP: net.ParseIP("fe80::1"), Port: 65535, Zone: "eth0"},
	} {
		m := ipv4.Message{Buffers: [][]byte{bytes.Repeat([]byte("datagram"), 150)}, N: 1200, OOB: []byte("control"), NN: 7, Addr: from}
		got := relayed(t, &m)
		if got.Addr.String() != from.String() || !bytes.Equal(got.Buffers[0][:got.N], m.Buffers[0][:1200]) || string(got.OOB[:got.NN]) != "control" {
			t.Errorf("%v: from %v, %d bytes, control messages %q", from, got.Addr, got.N, got.OOB[:got.NN])
		}
	}
}

func TestConnectionIDsNameTheirGeneration(t *testing.T) {
	for _, generation := range []byte{0, 1, 200, 255} {
		id, err := IDs{generation}.GenerateConnectionID()
		if err != nil {
			t.Fatal(err)
		}
		if got, ok := generationOf(id.Bytes()); !ok || got != generation {
			t.Errorf("generation %d: got %d, %v", generation, got, ok)
		}
		for bit := range 8 * idLength { // each changed bit is noticed
			b := bytes.Clone(id.Bytes())
			b[bit/8] ^= 1 << (bit % 8)
			if _, ok := generationOf(b); ok {
				t.Errorf("bit %d was changed, and the ID is still ours", bit)
			}
		}
	}
}

// FuzzUnframe reads what another process may put into a relay.
func FuzzUnframe(f *testing.F) {
	f.Add([]byte("\x00\x04\xc0\x00\x02\x07\x12\x67\x00\x00\x00datagram"))
	f.Add([]byte("\x00\x10"))
	f.Fuzz(func(t *testing.T, b []byte) {
		m := ipv4.Message{Buffers: [][]byte{make([]byte, 64)}, OOB: make([]byte, 16)}
		if unframe(b, &m) != nil {
			return
		}
		if m.N > len(m.Buffers[0]) || m.NN > len(m.OOB) || m.Addr.(*net.UDPAddr).IP == nil {
			t.Errorf("%x: %d bytes, %d of control messages, from %v", b, m.N, m.NN, m.Addr)
		}
	})
}

// FuzzDestination reads the connection ID of whatever a client sends.
func FuzzDestination(f *testing.F) {
	f.Add([]byte("\xc0\x00\x00\x00\x01\x08abcdefgh\x00"))
	f.Add([]byte("\x400123456789ab"))
	f.Fuzz(func(t *testing.T, b []byte) {
		id, initial := destination(b)
		if len(id) > maxID || initial && b[0]&0x80 == 0 || !bytes.Contains(b, id) {
			t.Errorf("%x: ID %x, %v", b, id, initial)
		}
		generationOf(id)
	})
}
