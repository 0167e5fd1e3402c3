//go:build race

package tracing

// raceEnabled says that allocation counts mean nothing.
const raceEnabled = true
