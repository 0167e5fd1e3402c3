package netconn

import "errors"

// ErrQuiet is returned by FillOrQuiet when nothing has come for some seconds.
var ErrQuiet = errors.New("nothing has come for some seconds")

// firstWait is what became of the first wait of a connection.
type firstWait uint8

const (
	unbegun firstWait = iota
	early             // it was parked at once, which not all systems can do
	waited            // a goroutine waited
)

// FillOrQuiet is Fill for a reader that can do without its goroutine: when nothing
// comes for some seconds it returns ErrQuiet where Park can go on with the wait.
func (c *Conn) FillOrQuiet(b *Buffer) error {
	c.rd = readOp{buf: b, leaves: parks}
	_, err := c.read()
	return err
}

// ReadOrQuiet is Read as FillOrQuiet is Fill.
func (c *Conn) ReadOrQuiet(p []byte) (int, error) {
	c.rd = readOp{p: p, leaves: parks}
	return c.read()
}

// ServeOrQuiet is Serve as FillOrQuiet is Fill.
func (c *Conn) ServeOrQuiet(b *Buffer, step func() bool) error { return c.serve(b, step, parks) }

// ParkWait goes on, by Park, with the wait that has just returned ErrQuiet: it ends
// when that wait would have ended. So does the reader's next wait, unless it sets
// another time.
func (c *Conn) ParkWait(resume func()) bool {
	c.readUntil = c.until
	return c.Park(c.until, resume)
}

// parkable reports whether Park can wait for the connection as it is.
func (c *Conn) parkable() bool {
	if c.lazy == nil {
		return c.raw != nil
	}
	l := c.lazy
	return l.direct != nil && l.leave == nil && len(l.held) == 0 && len(l.early) == 0
}
