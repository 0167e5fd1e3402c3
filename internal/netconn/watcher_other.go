//go:build !linux

package netconn

// watched is nothing on this system.
type watched struct{}

// flow is nothing on this system.
type flow struct{}

// parks reports that connections wait in goroutines of their own on this
// system.
const parks = false

// Park does nothing on this system.
func (c *Conn) Park(int64, func()) bool { return false }

// Unpark does nothing on this system.
func (c *Conn) Unpark() {}

func (c *Conn) forget()  {}
func (c *Conn) unwatch() {}

// NumParked returns how many connections are parked.
func NumParked() int { return 0 }

// Carry is not for this system.
func Carry(dst, src *Conn, until int64, moved func(n int), resume func()) bool { return false }

// Flow is not for this system.
func Flow(dst, src *Conn, b *Buffer, wait bool, moved func(n int)) error {
	panic("no connection can flow here")
}

// WatchForReset does nothing on this system.
func WatchForReset(dst, src *Conn) {}

// CanFlow reports false on this system.
func CanFlow(dst, src *Conn) bool { return false }
