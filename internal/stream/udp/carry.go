package udp

import (
	"encoding/json"
	"maps"
	"net"
	"net/netip"
	"slices"
	"time"

	"headgate/internal/clock"
)

// maxCarried is how many sessions of a proxy are handed to another process.
const maxCarried = 100_000

// carriedSessions are the servers of the clients of a proxy.
type carriedSessions struct {
	// Servers are their addresses.
	Servers []string `json:"servers"`
	// Clients are the clients, and At, Last and Ports are by client: the place of its server in
	// Servers, when something last came, in milliseconds of Unix time, and the port of the
	// proxy that it sends to. Earlier versions do not send the ports.
	Clients []netip.AddrPort `json:"clients"`
	At      []int            `json:"at"`
	Last    []int64          `json:"last"`
	Ports   []uint16         `json:"ports,omitempty"`
}

// sender is a client that sends to a port of a proxy; the port is 0 if it is not known.
type sender struct {
	port   uint16
	client netip.AddrPort
}

// affinity is which server a client had in the process before this one.
type affinity struct {
	server string
	last   int64 // when something last came, as clock.Now
}

// Export returns which server each client has, for Import in another process. The sessions
// themselves stay in this one: the sockets to the servers are not handed over.
func (t *Tally) Export() []byte {
	t.mu.Lock()
	tables := slices.Collect(maps.Keys(t.mu.tables)) // sessions lock their table before the tally
	t.mu.Unlock()
	var all carriedSessions
	places := map[string]int{}
	wall := time.Now().UnixMilli() - clock.Now()/int64(time.Millisecond)
	for _, table := range tables {
		table.eachSession(func(s *session) {
			if len(all.Clients) == maxCarried {
				return
			}
			at, ok := places[s.server.Address]
			if !ok {
				at = len(all.Servers)
				places[s.server.Address] = at
				all.Servers = append(all.Servers, s.server.Address)
			}
			all.Clients, all.At = append(all.Clients, s.client), append(all.At, at)
			all.Last = append(all.Last, wall+s.last.Load()/int64(time.Millisecond))
			all.Ports = append(all.Ports, table.port())
		})
	}
	if len(all.Clients) == 0 {
		return nil
	}
	data, _ := json.Marshal(all) // of plain values
	return data
}

// Import makes clients that come within the idle timeout get the servers that they had in the
// process before this one. It ignores data that it cannot read.
func (t *Tally) Import(data []byte) {
	var all carriedSessions
	if json.Unmarshal(data, &all) != nil || len(all.At) != len(all.Clients) || len(all.Last) != len(all.Clients) || len(all.Clients) > maxCarried ||
		len(all.Ports) > 0 && len(all.Ports) != len(all.Clients) {
		return
	}
	now := clock.Now()
	wall := time.Now().UnixMilli() - now/int64(time.Millisecond)
	before := make(map[sender]affinity, len(all.Clients))
	for i, client := range all.Clients {
		from := sender{client: client}
		if len(all.Ports) > 0 {
			from.port = all.Ports[i]
		}
		if at := all.At[i]; at >= 0 && at < len(all.Servers) {
			before[from] = affinity{all.Servers[at], min((all.Last[i]-wall)*int64(time.Millisecond), now)}
		}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.mu.before, t.mu.imported = before, now
}

// takeBefore returns the server that a client had in the process before this one, once, if
// its session had not ended by now.
func (t *Tally) takeBefore(from sender, idle time.Duration) (server string, ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.mu.before == nil {
		return "", false
	}
	now := clock.Now()
	if now-t.mu.imported > int64(idle) {
		t.mu.before = nil // all of them have ended
		return "", false
	}
	a, ok := t.mu.before[from]
	if !ok {
		from.port = 0
		a, ok = t.mu.before[from]
	}
	delete(t.mu.before, from)
	return a.server, ok && now-a.last <= int64(idle)
}

// port returns the port that clients send to.
func (t *Table) port() uint16 { return t.socket.conn.LocalAddr().(*net.UDPAddr).AddrPort().Port() }

// join and leave say which tables count in the tally.
func (t *Tally) join(table *Table) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.mu.tables[table] = struct{}{}
}

func (t *Tally) leave(table *Table) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.mu.tables, table)
}

// eachSession calls f with each session.
func (t *Table) eachSession(f func(*session)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, s := range t.mu.byClient {
		f(s)
	}
}

// before returns the place of the server that a client had in the process before this one;
// -1 if there is none.
func (p *Proxy) before(from sender) int {
	if address, ok := p.Tally.takeBefore(from, p.IdleTimeout); ok {
		for i, s := range p.Servers {
			if s.Address == address {
				return i
			}
		}
	}
	return -1
}
