//go:build race

package accesslog

// raceEnabled says that allocation counts mean nothing.
const raceEnabled = true
