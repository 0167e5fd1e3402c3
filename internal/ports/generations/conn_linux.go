package generations

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/net/ipv4"
	"golang.org/x/sys/unix"

	"headgate/internal/netconn"
)

// handshakeTime is for how long the datagrams of a handshake that the older process has
// begun go there by the ID that the client chose.
const handshakeTime = 10 * time.Second

// maxHandshakes is how many of those are known.
const maxHandshakes = 1024

// maxFrame bounds a datagram in a relay with what goes before it, in bytes.
const maxFrame = 4 << 10

// relayBuffer is how much a relay keeps for an older process that does not read, in
// bytes, as far as the system allows.
const relayBuffer = 4 << 20

// Conn is a socket of datagrams that two processes may share. One goroutine reads it.
type Conn struct {
	*netconn.Datagrams
	own byte

	older   atomic.Pointer[older] // the process before this one, while it is there
	newer   atomic.Pointer[newer] // the process that has replaced this one
	closing atomic.Bool
	leaving atomic.Bool // Leave waits for the reader of the socket

	reading sync.Mutex // held while the socket is read
	mu      struct {
		sync.Mutex
		begun [maxHandshakes]handshake // a ring
		next  int
	}
}

// handshake is the ID that a client has chosen for a connection.
type handshake struct {
	id [maxID]byte
	n  int
	at time.Time
}

// older is the process before this one.
type older struct {
	conn  *net.UnixConn
	raw   syscall.RawConn
	begun map[string]struct{} // handshakes that it has begun
	until time.Time
	frame []byte // owned by the goroutine that reads
}

// newer is the process after this one.
type newer struct {
	conn  *net.UnixConn
	frame [maxFrame]byte
}

// New returns the socket for a process of a generation.
func New(d *netconn.Datagrams, generation byte) *Conn { return &Conn{Datagrams: d, own: generation} }

// Relay returns a pair of sockets for datagrams from a new process to an old one: ours
// is for Leave, theirs is for Join in the new process. The caller closes both.
func Relay() (ours, theirs *os.File, err error) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return nil, nil, os.NewSyscallError("socketpair", err)
	}
	for _, fd := range fds {
		_ = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_SNDBUF, relayBuffer) // a smaller one serves, too
	}
	return os.NewFile(uintptr(fds[0]), "relay"), os.NewFile(uintptr(fds[1]), "relay"), nil
}

func relayOf(f *os.File) (*net.UnixConn, error) {
	c, err := net.FileConn(f)
	if err != nil {
		return nil, err
	}
	u, ok := c.(*net.UnixConn)
	if !ok {
		c.Close()
		return nil, fmt.Errorf("%s is no relay", f.Name())
	}
	return u, nil
}

// Join relays datagrams of the older process to it, from now on. It is called before
// anything is read, when the older process has left the socket.
func (c *Conn) Join(f *os.File) error {
	conn, err := relayOf(f)
	if err != nil {
		return err
	}
	raw, err := conn.SyscallConn()
	if err != nil {
		conn.Close()
		return err
	}
	o := &older{conn: conn, raw: raw, begun: map[string]struct{}{}, until: time.Now().Add(handshakeTime)}
	// What Leave has sent is there already. A deadline would pass on a busy machine before
	// all is read.
	b := make([]byte, maxFrame)
	err = raw.Read(func(fd uintptr) bool {
		for len(o.begun) < maxHandshakes {
			n, err := unix.Read(int(fd), b)
			if errors.Is(err, unix.EINTR) {
				continue
			}
			if err != nil || n == 0 {
				break
			}
			o.begun[string(b[:n])] = struct{}{}
		}
		return true
	})
	if err != nil {
		conn.Close()
		return err
	}
	c.older.Store(o)
	return nil
}

// Leave leaves the reading of the socket to the process that has the other end of a
// relay. The datagrams of our connections come by the relay from now on; they are sent
// as before. When the other end is closed, this process reads the socket again.
//
// The handshakes that have begun are listed after the last read of the socket: one that began
// between the two would have half of its ClientHello in each process, and both halves
// acknowledged.
func (c *Conn) Leave(f *os.File) error {
	conn, err := relayOf(f)
	if err != nil {
		return err
	}
	c.leaving.Store(true)
	defer c.leaving.Store(false)
	c.UDPConn.SetReadDeadline(time.Unix(1, 0)) // wakes up the reader of the socket
	c.reading.Lock()
	defer c.reading.Unlock()
	raw, err := conn.SyscallConn()
	if err != nil {
		conn.Close()
		return err
	}
	for _, id := range c.handshakes() {
		if writeNow(raw, id) != nil {
			break // what does not fit is begun again by its client
		}
	}
	c.newer.Store(&newer{conn: conn})
	return nil
}

// Rejoin reads the socket again after Leave.
func (c *Conn) Rejoin() {
	if n := c.newer.Load(); n != nil {
		n.conn.Close()
	}
}

// handshakes returns the IDs of the handshakes that have begun lately, each once and the
// latest first: a relay may have no space for all.
func (c *Conn) handshakes() (ids [][]byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	seen := map[string]struct{}{}
	for i := range c.mu.begun {
		h := &c.mu.begun[(c.mu.next+maxHandshakes-1-i)%maxHandshakes]
		id := h.id[:h.n]
		if _, again := seen[string(id)]; again || h.n == 0 || time.Since(h.at) >= handshakeTime {
			continue
		}
		seen[string(id)] = struct{}{}
		ids = append(ids, append([]byte(nil), id...))
	}
	return ids
}

// note remembers the ID of a datagram that starts a connection.
func (c *Conn) note(id []byte) {
	if len(id) == 0 {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	last := &c.mu.begun[(c.mu.next+maxHandshakes-1)%maxHandshakes]
	if last.n != len(id) || string(last.id[:last.n]) != string(id) {
		last = &c.mu.begun[c.mu.next]
		c.mu.next = (c.mu.next + 1) % maxHandshakes
		last.n = copy(last.id[:], id)
	}
	last.at = time.Now()
}

// ReadBatch reads the datagrams of this process: see netconn.Datagrams.ReadBatch.
func (c *Conn) ReadBatch(ms []ipv4.Message, flags int) (int, error) {
	for {
		if n := c.newer.Load(); n != nil && !c.closing.Load() {
			if err := n.read(&ms[0]); err == nil {
				return 1, nil
			}
			n.conn.Close()
			c.newer.CompareAndSwap(n, nil)
			if !c.closing.Load() {
				c.UDPConn.SetReadDeadline(time.Time{})
			}
			continue
		}
		n, left, err := c.readSocket(ms, flags)
		if n > 0 || err != nil && !left {
			return n, err
		}
	}
}

// readSocket reads the socket itself. left says that another process reads it from now on, or
// is about to.
func (c *Conn) readSocket(ms []ipv4.Message, flags int) (n int, left bool, err error) {
	c.reading.Lock()
	defer c.reading.Unlock()
	if c.newer.Load() != nil && !c.closing.Load() {
		return 0, true, nil // since the caller looked
	}
	n, err = c.Datagrams.ReadBatch(ms, flags)
	if err != nil {
		left = errors.Is(err, os.ErrDeadlineExceeded) && (c.leaving.Load() || c.newer.Load() != nil) && !c.closing.Load()
		return n, left, err
	}
	return c.sift(ms[:n]), false, nil
}

// sift relays the datagrams of the older process and returns how many are ours: those
// come first then. Buffers stay in their places, as quic-go knows them by these.
func (c *Conn) sift(ms []ipv4.Message) (kept int) {
	o := c.older.Load()
	for i := range ms {
		m := &ms[i]
		if id, begins := destination(m.Buffers[0][:m.N]); o != nil || begins {
			generation, known := generationOf(id)
			if o != nil && o.has(id, generation, known, c.own) {
				if o.relay(m) != nil {
					c.older.CompareAndSwap(o, nil)
					o.conn.Close()
					o = nil
				}
				continue
			}
			if begins && !(known && generation == c.own) {
				c.note(id)
			}
		}
		if kept != i {
			to := &ms[kept]
			to.N, to.NN = copy(to.Buffers[0], m.Buffers[0][:m.N]), copy(to.OOB, m.OOB[:m.NN])
			to.Flags, to.Addr = m.Flags, m.Addr
		}
		kept++
	}
	return kept
}

// has reports whether a datagram is for the older process. The ID that a client chose may
// look like one of any generation.
func (o *older) has(id []byte, generation byte, known bool, own byte) bool {
	if known && generation == own-1 {
		return true
	}
	if o.begun == nil {
		return false
	}
	if time.Now().After(o.until) {
		o.begun = nil
		return false
	}
	_, begun := o.begun[string(id)]
	return begun
}

// relay sends a datagram to the older process, behind its source and control messages.
// A datagram for a full socket is lost, which QUIC tolerates. The error means that the
// process has ended.
func (o *older) relay(m *ipv4.Message) error {
	from, ok := m.Addr.(*net.UDPAddr)
	if !ok || m.N+m.NN > maxFrame-64 {
		return nil
	}
	at := from.AddrPort()
	b := append(o.frame[:0], 0, byte(at.Addr().BitLen()/8))
	b = append(b, at.Addr().AsSlice()...)
	b = binary.BigEndian.AppendUint16(b, at.Port())
	b = append(b, byte(len(from.Zone)))
	b = append(b, from.Zone...)
	b = binary.BigEndian.AppendUint16(b, uint16(m.NN))
	b = append(b, m.OOB[:m.NN]...)
	b = append(b, m.Buffers[0][:m.N]...)
	o.frame = b
	err := writeNow(o.raw, b)
	if errors.Is(err, unix.EPIPE) || errors.Is(err, unix.ECONNRESET) || errors.Is(err, unix.ENOTCONN) || errors.Is(err, net.ErrClosed) {
		return err
	}
	return nil
}

// writeNow writes a datagram if there is space for it now.
func writeNow(raw syscall.RawConn, b []byte) (failed error) {
	err := raw.Write(func(fd uintptr) bool {
		_, failed = unix.Write(int(fd), b)
		return true
	})
	if err != nil {
		return err
	}
	return failed
}

var errRelay = errors.New("a datagram in the relay is cut off")

// read reads a datagram from the newer process.
func (n *newer) read(m *ipv4.Message) error {
	size, err := n.conn.Read(n.frame[:])
	if err != nil {
		return err
	}
	return unframe(n.frame[:size], m)
}

// unframe is the reverse of relay's frame.
func unframe(b []byte, m *ipv4.Message) error {
	if len(b) < 2 || len(b) < 2+int(b[1])+3 {
		return errRelay
	}
	ip, ok := netip.AddrFromSlice(b[2 : 2+int(b[1])])
	if !ok {
		return errRelay
	}
	b = b[2+int(b[1]):]
	port, zone := binary.BigEndian.Uint16(b), int(b[2])
	if b = b[3:]; len(b) < zone+2 {
		return errRelay
	}
	addr := &net.UDPAddr{IP: ip.AsSlice(), Port: int(port), Zone: string(b[:zone])}
	nn := int(binary.BigEndian.Uint16(b[zone:]))
	if b = b[zone+2:]; len(b) < nn || nn > len(m.OOB) || len(b)-nn > len(m.Buffers[0]) {
		return errRelay
	}
	m.NN, m.N = copy(m.OOB, b[:nn]), copy(m.Buffers[0], b[nn:])
	m.Addr, m.Flags = addr, 0
	return nil
}

// SetReadDeadline bounds reads. quic-go sets one to end its reading.
func (c *Conn) SetReadDeadline(t time.Time) error {
	if !t.IsZero() {
		c.closing.Store(true)
		if n := c.newer.Load(); n != nil {
			n.conn.SetReadDeadline(t)
		}
	}
	return c.UDPConn.SetReadDeadline(t)
}

// Close closes the socket and the relays.
func (c *Conn) Close() error {
	c.closing.Store(true)
	if o := c.older.Swap(nil); o != nil {
		o.conn.Close()
	}
	if n := c.newer.Swap(nil); n != nil {
		n.conn.Close()
	}
	return c.Datagrams.Close()
}
