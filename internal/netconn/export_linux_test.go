package netconn

// Parked returns how many connections are parked, and whether a goroutine waits
// for them.
func Parked() (n int, watched bool) {
	parked.mu.Lock()
	defer parked.mu.Unlock()
	return len(parked.waits), parked.file != nil
}
