package ports

import (
	"log/slog"
	"net/netip"
	"time"

	"headgate/internal/clock"
)

// refusalPause is the minimum time between two log lines about clients whose
// requests were rejected. The metric counts all of them.
const refusalPause = time.Minute

// refusals returns the function that counts requests rejected because their clients
// hold too much memory, and logs the first in a minute.
func (l *listener) refusals(log *slog.Logger) func(netip.Prefix) {
	var logged clock.Spacing
	return func(client netip.Prefix) {
		l.counter.Load().MemoryRefused()
		if !logged.Due(clock.Now(), refusalPause) {
			return
		}
		log.Warn("requests refused, clients hold too much memory",
			"client", client.String(), "address", l.key.address.String(),
			"remedy", "limits.max_memory and max_memory_per_client of the port bound it; headgate_memory_refused_total counts")
	}
}
