package store

import "time"

// Time returns the time of the engine's clock, as far as this machine knows it without a
// request. Machines that share a store agree on it even if their own clocks differ, so
// whatever one writes and another compares with a moment uses it: when sessions, tokens,
// links and bans end. It is the machine's own time for a store that no other machine uses,
// and until the engine was reached for the first time.
func Time(s Store) time.Time {
	if known, ok := s.(interface{ Time() time.Time }); ok {
		return known.Time()
	}
	return time.Now()
}
