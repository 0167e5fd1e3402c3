package netconn

// parks reports whether connections can be parked on this system.
const parks = true

// leavesEarly reports, at the start of the wait of Serve, whether to park the connection
// at once. That is so only once: when the connection has been served and is not yet
// registered with the poller. Many clients send one request and are then silent for
// long. Such a connection never has a waiting goroutine or a poll descriptor, neither of
// which the runtime releases; one with a second request has them from then on.
func (c *Conn) leavesEarly() bool {
	if !c.rd.leaves || !c.rd.again || c.first != unbegun || !c.isUnpolled() {
		return false
	}
	c.first = early
	c.setEnd()
	return true
}

// isUnpolled reports whether the connection is not registered with the runtime's
// poller.
func (c *Conn) isUnpolled() bool {
	r, is := c.raw.(*rawSocket)
	return is && (*Socket)(r).file.Load() == nil
}

// Park waits without a goroutine until there is something to read, the connection
// is closed or kicked, Unpark is called, or the moment until has come, and then
// calls resume in a goroutine of its own. Until then nothing may read from the
// connection. It returns false, and never calls resume, if it cannot wait; the
// caller then goes on as before.
//
// Under TLS the wait is for bytes on the socket, so nothing that has come may still
// lie in TLS: a read that has waited has used up all of it.
func (c *Conn) Park(until int64, resume func()) bool {
	if !c.parkable() {
		return false
	}
	raw := c.raw
	if c.lazy != nil {
		raw = c.lazy.direct.raw
	}
	c.rested = c.rested || c.first != early
	ok := false
	err := raw.Control(func(fd uintptr) { ok = c.watcherOf(nil).wait(c, int(fd), false, until, resume) })
	return err == nil && ok
}
