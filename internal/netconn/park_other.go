//go:build !linux

package netconn

// parks tells that connections wait in goroutines of their own on this system.
const parks = false

var parked lot

type lot struct{}

func (*lot) release(*Conn) {}

// Park does nothing on this system.
func (c *Conn) Park(int64, func()) bool { return false }

// NumParked returns how many connections are parked.
func NumParked() int { return 0 }
