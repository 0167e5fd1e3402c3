package netconn

import "errors"

// ErrQuiet is returned by FillOrQuiet when nothing has come for some seconds.
var ErrQuiet = errors.New("nothing has come for some seconds")

// FillOrQuiet is Fill for a reader that can do without its goroutine: when nothing
// comes for some seconds it returns ErrQuiet where Park can go on with the wait.
func (c *Conn) FillOrQuiet(b *Buffer) error {
	c.rd = readOp{buf: b, leaves: parks}
	_, err := c.read()
	return err
}

// Unpark ends the wait of a connection that is parked. Any goroutine may call it.
func (c *Conn) Unpark() {
	if c.parked.Load() != 0 {
		parked.release(c)
	}
}
