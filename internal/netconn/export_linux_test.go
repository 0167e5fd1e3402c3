package netconn

import "golang.org/x/sys/unix"

// Parked returns how many connections are parked or carried, and whether a goroutine waits
// for any.
func Parked() (n int, watched bool) {
	for i := range watchers() {
		k := &watchers()[i]
		k.mu.Lock()
		watched = watched || k.file != nil
		k.mu.Unlock()
	}
	return NumParked(), watched
}

// StopWatchers keeps all watchers from what they are told of until resume is called.
func StopWatchers() (resume func()) {
	all := watchers()
	for i := range all {
		all[i].mu.Lock()
	}
	return func() {
		for i := range all {
			all[i].mu.Unlock()
		}
	}
}

// NewsOf returns what the system tells of a connection that waits.
func NewsOf(c *Conn) unix.EpollEvent {
	k := c.watched.by.Load()
	k.mu.Lock()
	defer k.mu.Unlock()
	at := c.watched.place - 1
	return unix.EpollEvent{Events: unix.EPOLLIN, Fd: at, Pad: k.places[at].uses}
}

// IsNews reports whether what the system has told is of a connection that waits.
func IsNews(c *Conn, news unix.EpollEvent) bool {
	k := c.watched.by.Load()
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.connectionOfLocked(&news) == c
}

// SharesPlace reports whether a connection that waits has the place that the system has
// told of.
func SharesPlace(c *Conn, news unix.EpollEvent) bool {
	k := c.watched.by.Load()
	k.mu.Lock()
	defer k.mu.Unlock()
	return c.watched.place-1 == news.Fd
}

// ShareWatcher reports whether one watcher has two connections.
func ShareWatcher(c, d *Conn) bool { return c.watched.by.Load() == d.watched.by.Load() }

// IsKnown reports whether the system tells a watcher of a connection, which nobody reads
// from at the moment.
func IsKnown(c *Conn) bool { return c.known }

// IsPolled reports whether the runtime's poller has heard of a socket.
func IsPolled(s *Socket) bool { return s.file.Load() != nil }

// Descriptor returns the descriptor of a socket.
func Descriptor(s *Socket) int { return s.fd }

// BeginWrite makes c look as while it makes a write. EndWrite ends that, with what the
// write has heard.
func BeginWrite(c *Conn) { c.hears.Add(1) }

// EndWrite ends what BeginWrite has begun.
func EndWrite(c *Conn, heard error) {
	c.reset.Store(heard == unix.ECONNRESET)
	c.hears.Add(-1)
}
