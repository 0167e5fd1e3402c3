package demand

// outcome is what a handshake for a host without a certificate, or the question of the
// application, resulted in.
type outcome int

const (
	asked outcome = iota
	issued
	refused
	askFailed
	limited
	failed
	failedBefore
	tooSlow
	tooMany
	tooOften
	badName
	overQUIC
	outcomes
)

// words are the outcomes as metrics have them.
var words = [outcomes]string{
	asked: "asked", issued: "issued", refused: "refused", askFailed: "ask_failed", limited: "limited", failed: "failed",
	failedBefore: "failed_before", tooSlow: "too_slow", tooMany: "too_many_waiting", tooOften: "too_many_names", badName: "bad_name", overQUIC: "http3",
}

// Counts returns how often each outcome occurred, by its word.
func (g *Gate) Counts() map[string]uint64 {
	all := make(map[string]uint64, outcomes)
	for o, word := range words {
		all[word] = g.counts[o].Load()
	}
	return all
}
