package accept

import (
	"errors"
	"time"

	"headgate/internal/netconn"
	"headgate/internal/ports/hello"
	"headgate/internal/ports/listen"
)

// helloRoom is how much is read at first, in bytes: what browsers say fits in.
const helloRoom = 2 << 10

// pass reads the requested server name and returns the connection through the
// TCP proxy for that name, or nil if there is none; then the port itself serves
// the client, from its first byte on. That also applies to clients that send no
// server name, send something other than a ClientHello, or take too long.
func (f *fresh) pass() listen.Conn {
	if !netconn.Readable(f.nc, handshakeTime) {
		return nil
	}
	f.nc.SetReadDeadline(time.Now().Add(handshakeTime))
	name := f.readHello()
	f.nc.SetReadDeadline(time.Time{})
	proxy := f.on.Passthrough(name)
	if name == "" || proxy == nil {
		return nil
	}
	early := f.early
	f.early = nil
	return proxy.NewConn(f.nc, early, name)
}

// readHello reads until the server name is known, "" for none. The bytes are kept
// in f.early. Memory is allocated for bytes that have arrived, not for a length
// that a client announces.
func (f *fresh) readHello() string {
	b := make([]byte, 0, helloRoom)
	defer func() { f.early = b }()
	for wanted := 1; ; {
		if len(b) == cap(b) {
			b = append(make([]byte, 0, 2*len(b)), b...)
		}
		n, err := f.nc.Read(b[len(b):cap(b)])
		b = b[:len(b)+n]
		if wanted -= n; wanted > 0 && err == nil {
			continue // it cannot be whole yet
		}
		name, more, perr := hello.Parse(b)
		if !errors.Is(perr, hello.ErrMore) {
			return name
		}
		if err != nil {
			return ""
		}
		wanted = more
	}
}
