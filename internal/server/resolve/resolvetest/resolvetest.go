// Package resolvetest is a name server on loopback for tests: it responds over UDP and TCP
// as configured by a test.
package resolvetest

import (
	"encoding/binary"
	"io"
	"net"
	"net/netip"
	"sync"
	"testing"
	"time"

	"golang.org/x/net/dns/dnsmessage"
)

// Zone is a name server. What it says can change.
type Zone struct {
	// Address is where it listens.
	Address netip.AddrPort

	mu struct {
		sync.Mutex
		records map[string][]Record // by name with its dot
		mute    bool                // does not respond
		broken  bool                // responds with a server failure
		cut     bool                // truncates all responses over UDP
		asked   map[string]int
	}
}

// Record is an answer, with one of its last three fields.
type Record struct {
	// TTL is how long it holds, in seconds.
	TTL uint32
	// IP is that of an A or AAAA record.
	IP string
	// SRV is a service's; see Service.
	SRV *dnsmessage.SRVResource
	// Alias is the name of a CNAME record, without a dot at its end.
	Alias string
}

// Service returns an SRV record.
func Service(ttl uint32, priority, weight, port uint16, target string) Record {
	return Record{TTL: ttl, SRV: &dnsmessage.SRVResource{Priority: priority, Weight: weight, Port: port, Target: dnsmessage.MustNewName(target + ".")}}
}

// New returns a name server that knows nothing and ends with the test.
func New(t testing.TB) *Zone {
	t.Helper()
	z := &Zone{}
	z.mu.records, z.mu.asked = map[string][]Record{}, map[string]int{}
	ln, pc, err := listen()
	if err != nil {
		t.Fatal(err)
	}
	z.Address = ln.Addr().(*net.TCPAddr).AddrPort()
	var all sync.WaitGroup
	all.Go(func() { z.servePackets(pc) })
	all.Go(func() {
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			all.Go(func() { z.serveStream(c) })
		}
	})
	t.Cleanup(func() {
		ln.Close()
		pc.Close()
		all.Wait()
	})
	return z
}

// listen opens the same port over TCP and UDP, as a resolver has one. What is free over
// one may be in use over the other: then another is tried.
func listen() (ln net.Listener, pc net.PacketConn, err error) {
	for range 100 {
		if ln, err = net.Listen("tcp4", "127.0.0.1:0"); err != nil {
			return nil, nil, err
		}
		if pc, err = net.ListenPacket("udp4", ln.Addr().String()); err == nil {
			return ln, pc, nil
		}
		ln.Close()
	}
	return nil, nil, err
}

func (z *Zone) servePackets(pc net.PacketConn) {
	b := make([]byte, 4096)
	for {
		n, from, err := pc.ReadFrom(b)
		if err != nil {
			return
		}
		if answer := z.answer(b[:n], true); answer != nil {
			pc.WriteTo(answer, from)
		}
	}
}

func (z *Zone) serveStream(c net.Conn) {
	defer c.Close()
	c.SetDeadline(time.Now().Add(10 * time.Second))
	for {
		var size [2]byte
		if _, err := io.ReadFull(c, size[:]); err != nil {
			return
		}
		b := make([]byte, binary.BigEndian.Uint16(size[:]))
		if _, err := io.ReadFull(c, b); err != nil {
			return
		}
		answer := z.answer(b, false)
		c.Write(append(binary.BigEndian.AppendUint16(nil, uint16(len(answer))), answer...))
	}
}

// Set replaces the records of a name.
func (z *Zone) Set(name string, list ...Record) {
	z.mu.Lock()
	defer z.mu.Unlock()
	z.mu.records[name+"."] = list
}

// Be changes how the zone responds: not at all, with a server failure, or with truncated
// responses over UDP.
func (z *Zone) Be(mute, broken, cut bool) {
	z.mu.Lock()
	defer z.mu.Unlock()
	z.mu.mute, z.mu.broken, z.mu.cut = mute, broken, cut
}

// Queries returns the number of queries for a name.
func (z *Zone) Queries(name string) int {
	z.mu.Lock()
	defer z.mu.Unlock()
	return z.mu.asked[name+"."]
}

func (z *Zone) answer(question []byte, packet bool) []byte {
	z.mu.Lock()
	defer z.mu.Unlock()
	var p dnsmessage.Parser
	h, err := p.Start(question)
	if err != nil || z.mu.mute {
		return nil
	}
	q, err := p.Question()
	if err != nil {
		return nil
	}
	name := q.Name.String()
	z.mu.asked[name]++
	list, known := z.mu.records[name]
	head := dnsmessage.Header{ID: h.ID, Response: true, RecursionAvailable: true}
	switch {
	case z.mu.broken:
		head.RCode = dnsmessage.RCodeServerFailure
	case !known:
		head.RCode = dnsmessage.RCodeNameError
	}
	head.Truncated = packet && z.mu.cut
	b := dnsmessage.NewBuilder(nil, head)
	b.EnableCompression()
	b.StartQuestions()
	b.Question(q)
	b.StartAnswers()
	if head.RCode == dnsmessage.RCodeSuccess && !head.Truncated {
		z.addLocked(&b, q.Name, q.Type, list)
	}
	out, _ := b.Finish()
	return out
}

func (z *Zone) addLocked(b *dnsmessage.Builder, name dnsmessage.Name, kind dnsmessage.Type, list []Record) {
	for _, r := range list {
		h := dnsmessage.ResourceHeader{Name: name, Class: dnsmessage.ClassINET, TTL: r.TTL}
		switch {
		case r.Alias != "":
			to := dnsmessage.MustNewName(r.Alias + ".")
			b.CNAMEResource(h, dnsmessage.CNAMEResource{CNAME: to})
			z.addLocked(b, to, kind, z.mu.records[r.Alias+"."])
		case r.SRV != nil:
			if kind == dnsmessage.TypeSRV {
				b.SRVResource(h, *r.SRV)
			}
		default:
			if a := netip.MustParseAddr(r.IP); a.Is4() && kind == dnsmessage.TypeA {
				b.AResource(h, dnsmessage.AResource{A: a.As4()})
			} else if !a.Is4() && kind == dnsmessage.TypeAAAA {
				b.AAAAResource(h, dnsmessage.AAAAResource{AAAA: a.As16()})
			}
		}
	}
}
