package event

import (
	"fmt"
	"reflect"
	"strings"

	"headgate/internal/schema"
)

// Level is how much an event wants to be seen.
type Level string

// The levels.
const (
	Info    Level = "info"
	Warning Level = "warning"
	Error   Level = "error"
)

// Kind is one row of the table: a type of event.
type Kind struct {
	// Type is the name, "object.verb".
	Type string
	// Level is how much it wants to be seen.
	Level Level
	// Payload is the type of its data.
	Payload reflect.Type
}

// table is every event there is.
var table = [...]struct {
	name    string
	level   Level
	payload Payload
}{
	{"config.applied", Info, ConfigApplied{}},
	{"config.refused", Warning, ConfigRefused{}},
	{"config.confirmed", Info, ConfigConfirmed{}},
	{"config.reverted", Warning, ConfigReverted{}},
	{"config.set_aside", Error, ConfigSetAside{}},
	{"port.listening", Info, PortListening{}},
	{"port.waiting", Error, PortWaiting{}},
	{"port.closed", Info, PortClosed{}},
	{"port.reset", Info, PortReset{}},
	{"server.healthy", Info, ServerHealthy{}},
	{"server.unhealthy", Warning, ServerUnhealthy{}},
	{"server.ejected", Warning, ServerEjected{}},
	{"server.drained", Info, ServerDrained{}},
	{"split.changed", Info, SplitChanged{}},
	{"split.returned", Warning, SplitReturned{}},
	{"proxy.down", Error, ProxyDown{}},
	{"proxy.degraded", Warning, ProxyDegraded{}},
	{"proxy.recovered", Info, ProxyRecovered{}},
	{"certificate.loaded", Info, CertificateLoaded{}},
	{"certificate.expiring", Warning, CertificateExpiring{}},
	{"certificate.expired", Error, CertificateExpired{}},
	{"certificate.failed", Error, CertificateFailed{}},
	{"acme.issued", Info, ACMEIssued{}},
	{"acme.blocked", Warning, ACMEBlocked{}},
	{"acme.failed", Error, ACMEFailed{}},
	{"acme.refused", Info, ACMERefused{}},
	{"ech.failed", Error, ECHFailed{}},
	{"discovery.issue_opened", Warning, DiscoveryIssueOpened{}},
	{"discovery.issue_closed", Info, DiscoveryIssueClosed{}},
	{"discovery.lost", Error, DiscoveryLost{}},
	{"discovery.connected", Info, DiscoveryConnected{}},
	{"auth.signed_in", Info, AuthSignedIn{}},
	{"auth.failed", Warning, AuthFailed{}},
	{"auth.throttled", Warning, AuthThrottled{}},
	{"person.signed_in", Info, PersonSignedIn{}},
	{"person.signed_out", Info, PersonSignedOut{}},
	{"person.sign_in_failed", Warning, PersonSignInFailed{}},
	{"gate.sign_in_unreachable", Warning, SignInUnreachable{}},
	{"gate.sign_in_reachable", Info, SignInReachable{}},
	{"client.banned", Warning, ClientBanned{}},
	{"client.unbanned", Info, ClientUnbanned{}},
	{"list.loaded", Info, ListLoaded{}},
	{"list.failed", Warning, ListFailed{}},
	{"list.shrunk", Warning, ListShrunk{}},
	{"list.stale", Warning, ListStale{}},
	{"limit.reached", Warning, LimitReached{}},
	{"store.unavailable", Error, StoreUnavailable{}},
	{"store.restored", Error, StoreRestored{}},
	{"node.role_changed", Warning, NodeRole{}},
	{"node.diverged", Error, NodeDiverged{}},
	{"store.away", Error, StoreAway{}},
	{"store.returned", Info, StoreReturned{}},
	{"store.rewound", Error, StoreRewound{}},
	{"node.joined", Info, NodeJoined{}},
	{"node.detached", Error, NodeDetached{}},
	{"node.returned", Info, NodeReturned{}},
	{"node.behind", Warning, NodeBehind{}},
	{"webhook.dead", Error, WebhookDead{}},
	{"webhook.tested", Info, WebhookTested{}},
	{"notice.dead", Error, NoticeDead{}},
	{"notice.tested", Info, NoticeTested{}},
	{"process.started", Info, ProcessStarted{}},
	{"process.upgraded", Info, ProcessUpgraded{}},
	{"process.stopping", Info, ProcessStopping{}},
}

// kinds finds the row of a payload.
var kinds = func() map[reflect.Type]Kind {
	all := make(map[reflect.Type]Kind, len(table))
	for _, row := range table {
		t := reflect.TypeOf(row.payload)
		all[t] = Kind{row.name, row.level, t}
	}
	return all
}()

// Kinds returns all rows in the order of the table.
func Kinds() []Kind {
	all := make([]Kind, len(table))
	for i, row := range table {
		all[i] = kinds[reflect.TypeOf(row.payload)]
	}
	return all
}

// CheckPattern returns what is wrong with a pattern of types: the name of a type, or
// an object with ".*" for all its verbs, or "*".
func CheckPattern(pattern string) error {
	var known []string
	for _, row := range table {
		if (Filter{Types: []string{pattern}}).Matches(row.name) {
			return nil
		}
		known = append(known, row.name)
	}
	if near := schema.Nearest(pattern, known); near != "" {
		return fmt.Errorf("unknown event type %q, did you mean %q", pattern, near)
	}
	return fmt.Errorf("unknown event type %q", pattern)
}

// Filter selects events. An empty one selects all.
type Filter struct {
	// Types are patterns, as CheckPattern wants them.
	Types []string
}

// Matches reports whether a type is selected.
func (f Filter) Matches(name string) bool {
	if len(f.Types) == 0 {
		return true
	}
	for _, p := range f.Types {
		if object, ok := strings.CutSuffix(p, "*"); p == name || ok && (object == "" || strings.HasSuffix(object, ".") && strings.HasPrefix(name, object)) {
			return true
		}
	}
	return false
}
