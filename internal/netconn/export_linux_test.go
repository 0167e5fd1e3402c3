package netconn

import "golang.org/x/sys/unix"

// Parked returns how many connections are parked or carried, and whether a goroutine waits
// for any.
func Parked() (n int, watched bool) {
	parked.mu.Lock()
	watched = parked.file != nil
	parked.mu.Unlock()
	for i := range carriers() {
		k := &carriers()[i]
		k.mu.Lock()
		watched = watched || k.file != nil
		k.mu.Unlock()
	}
	return NumParked(), watched
}

// StopCarriers keeps all carriers from what they are told of until resume is called.
func StopCarriers() (resume func()) {
	all := carriers()
	for i := range all {
		all[i].mu.Lock()
	}
	return func() {
		for i := range all {
			all[i].mu.Unlock()
		}
	}
}

// NewsOf returns what the system tells of a connection that is carried.
func NewsOf(c *Conn) unix.EpollEvent {
	f := c.carried.Load()
	f.carrier.mu.Lock()
	defer f.carrier.mu.Unlock()
	return unix.EpollEvent{Events: unix.EPOLLIN, Fd: f.place, Pad: f.carrier.places[f.place].uses}
}

// IsNews reports whether what the system has told is of a connection that is carried.
func IsNews(c *Conn, news unix.EpollEvent) bool {
	f := c.carried.Load()
	f.carrier.mu.Lock()
	defer f.carrier.mu.Unlock()
	return f.carrier.toldOfLocked(&news) == f
}

// SharesPlace reports whether a connection that is carried has the place that the system
// has told of.
func SharesPlace(c *Conn, news unix.EpollEvent) bool {
	f := c.carried.Load()
	f.carrier.mu.Lock()
	defer f.carrier.mu.Unlock()
	return f.place == news.Fd
}

// IsPolled reports whether the runtime's poller has heard of a socket.
func IsPolled(s *Socket) bool { return s.file.Load() != nil }

// Descriptor returns the descriptor of a socket.
func Descriptor(s *Socket) int { return s.fd }
