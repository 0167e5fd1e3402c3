package event

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

func (p ConfigApplied) about() (string, string) {
	text := "the configuration was applied" + p.by()
	if !p.ConfirmBy.IsZero() {
		text += ", and is reverted at " + p.ConfirmBy.UTC().Format(time.RFC3339) + " unless it is confirmed"
	}
	return p.object(), text
}

func (p ConfigRefused) about() (string, string) {
	text := "a change of the configuration" + p.by() + " was refused"
	if len(p.Problems) > 0 {
		text += ": " + p.Problems[0]
	}
	return p.object(), text
}

func (p ConfigConfirmed) about() (string, string) {
	return p.object(), "the configuration was confirmed" + p.by()
}

func (p ConfigReverted) about() (string, string) {
	return p.object(), "the configuration went back to revision " + strconv.Itoa(p.To) + because(p.Cause)
}

func (c Config) object() string {
	if c.Revision == 0 {
		return "configuration"
	}
	return "revision " + strconv.Itoa(c.Revision)
}

func (c Config) by() string {
	switch {
	case c.Who != "" && c.Via != "":
		return " by " + c.Who + " through " + c.Via
	case c.Who != "":
		return " by " + c.Who
	}
	return ""
}

func (p PortListening) about() (string, string) { return p.sentence("listens at " + p.Address) }
func (p PortWaiting) about() (string, string) {
	return p.sentence("waits for " + p.Address + because(p.Reason))
}
func (p PortClosed) about() (string, string) { return p.sentence("was closed") }

func (p PortReset) about() (string, string) {
	return p.sentence("was reset" + Config{Who: p.Who}.by() + because(p.Why) + ", connections closed: " + strconv.Itoa(p.Closed))
}

func (p Port) sentence(what string) (string, string) {
	object := "port " + p.Port
	return object, object + " " + what
}

func (p ServerHealthy) about() (string, string) { return p.sentence("is healthy" + because(p.Cause)) }
func (p ServerUnhealthy) about() (string, string) {
	return p.sentence("is unhealthy" + because(p.Cause))
}
func (p ServerEjected) about() (string, string) {
	return p.sentence("gets no requests for a while" + because(p.Cause))
}
func (p ServerDrained) about() (string, string) {
	switch p.State {
	case "drained":
		return p.sentence("is drained: nothing runs on it any more")
	case "draining":
		return p.sentence("gets no new clients, drained" + Config{Who: p.Who}.by() + because(p.Cause))
	}
	return p.sentence("is " + p.State + Config{Who: p.Who}.by() + because(p.Cause))
}

func (p SplitChanged) about() (string, string) {
	what := fmt.Sprintf("gives the candidate %d%%", p.Share)
	if p.Phase == "held" {
		what = fmt.Sprintf("is held at %d%%", p.Share)
	}
	return p.sentence(what + Config{Who: p.Who}.by() + because(p.Cause))
}
func (p SplitReturned) about() (string, string) {
	return p.sentence("gives the candidate no more requests" + Config{Who: p.Who}.by() + because(p.Cause))
}

func (p Split) sentence(what string) (string, string) {
	object := "proxy " + p.Proxy + ", route " + p.Route + ", split"
	return object, object + " " + what
}

func (p Server) sentence(what string) (string, string) {
	object := "proxy " + p.Proxy
	if p.Route != "" {
		object += ", route " + p.Route
	}
	object += ", server " + p.Server
	return object, object + " " + what
}

func (p ProxyDown) about() (string, string)     { return p.sentence("has no healthy server") }
func (p ProxyDegraded) about() (string, string) { return p.sentence("is degraded" + because(p.Reason)) }
func (p ProxyRecovered) about() (string, string) {
	return p.sentence(fmt.Sprintf("has %d of %d healthy servers", p.Healthy, p.Total))
}

func (p Proxy) sentence(what string) (string, string) {
	object := "proxy " + p.Proxy
	return object, object + " " + what
}

func (p CertificateLoaded) about() (string, string) { return p.sentence("is served") }
func (p CertificateExpiring) about() (string, string) {
	return p.sentence("expires at " + p.NotAfter.UTC().Format(time.RFC3339))
}
func (p CertificateExpired) about() (string, string) { return p.sentence("has expired") }
func (p CertificateFailed) about() (string, string) {
	return p.sentence("cannot be loaded" + because(p.Cause))
}

func (c Certificate) sentence(what string) (string, string) {
	object := "certificate " + c.Certificate
	return object, object + " " + what
}

func (a ACMEIssued) about() (string, string)  { return a.sentence("was issued") }
func (a ACMEBlocked) about() (string, string) { return a.sentence("is not ordered" + because(a.Cause)) }
func (a ACMEFailed) about() (string, string)  { return a.sentence("was not issued" + because(a.Cause)) }
func (a ACMERefused) about() (string, string) {
	return a.sentence("is not renewed: its host is no longer allowed")
}

func (a ACME) sentence(what string) (string, string) {
	object, text := Certificate{Certificate: a.Certificate}.sentence(what)
	if len(a.Names) > 0 { // the name of a wildcard's certificate is no name of a host
		_, text = Certificate{Certificate: a.Names[0]}.sentence(what)
	}
	return object, text
}

func (e ECHFailed) about() (string, string) {
	what := fmt.Sprintf("%d HTTPS records are not written", len(e.Names))
	if len(e.Names) == 1 {
		what = "the HTTPS record of " + e.Names[0] + " is not written"
	}
	return "acme entry " + e.Entry, what + because(e.Cause)
}

func (i DiscoveryIssueOpened) about() (string, string) { return i.sentence(i.Message) }
func (i DiscoveryIssueClosed) about() (string, string) {
	return i.sentence("no longer so: " + i.Message)
}
func (i DiscoveryLost) about() (string, string) {
	return i.sentence("does not answer" + because(i.Message))
}
func (i DiscoveryConnected) about() (string, string) { return i.sentence("answers") }

func (i Issue) sentence(what string) (string, string) {
	object := "provider " + i.Provider
	if i.Object != "" {
		object += ", " + i.Object
	}
	return object, object + ": " + what
}

func (a AuthSignedIn) about() (string, string) { return a.sentence("signed in" + because(a.Warning)) }
func (a AuthFailed) about() (string, string) {
	return a.sentence("was refused to sign in" + because(a.Reason))
}
func (a AuthThrottled) about() (string, string) {
	return a.sentence("is refused for a while to sign in")
}

func (a Auth) sentence(what string) (string, string) {
	object := "user " + a.User
	switch {
	case a.Token != "":
		object = "token " + a.Token
	case a.User == "":
		object = "a client"
	}
	text := object + " " + what
	if a.Address != "" {
		text += " from " + a.Address
	}
	return object, text
}

func (l LimitReached) about() (string, string) {
	object := strings.TrimSpace(l.Object + " limit " + l.Limit)
	return object, fmt.Sprintf("%s (%s) is reached: %s", object, l.Value, l.Effect)
}

func (s StoreUnavailable) about() (string, string) {
	return "store", "nothing can be kept" + because(s.Cause)
}

func (s StoreAway) about() (string, string) {
	return "store", "node " + s.Node + " cannot reach the shared store; it serves its copy, and changes are refused" + because(s.Cause)
}

func (s StoreReturned) about() (string, string) {
	return "store", fmt.Sprintf("node %s follows the shared store again, which was away for %d seconds", s.Node, s.Seconds)
}

func (s StoreRewound) about() (string, string) {
	return "store", "node " + s.Node + " has found that the shared store was set back to an older state, and serves its copy until an operator decides" + because(s.Cause)
}

func (c ConfigSetAside) about() (string, string) {
	return "config", fmt.Sprintf("%s was edited on node %s while another node saved revision %d, which is used; the edit is kept as %s", c.Document, c.Node, c.Revision, c.Kept)
}

func (n NodeJoined) about() (string, string) {
	return "node " + n.Node.Node, "node " + n.Node.Node + " has joined"
}

func (n NodeDetached) about() (string, string) {
	return "node " + n.Node.Node, "node " + n.Node.Node + " has not published its state for 90 seconds"
}

func (n NodeReturned) about() (string, string) {
	return "node " + n.Node.Node, "node " + n.Node.Node + " publishes its state again"
}

func (n NodeBehind) about() (string, string) {
	return "node " + n.Node.Node, fmt.Sprintf("node %s serves revision %d, and others serve %d", n.Node.Node, n.Revision, n.Latest)
}

func (s StoreRestored) about() (string, string) {
	from := "starts empty"
	if s.From != "" {
		from = "goes on from " + s.From
	}
	return "store", "a damaged file was set aside at " + s.Aside + ", and the store " + from + because(s.Cause)
}

func (n NodeRole) about() (string, string) {
	text := "machine " + n.Node
	switch {
	case n.Role == "leader":
		text += " leads"
	case n.Role == "follower" && n.Connected:
		text += " follows " + n.Leader
	case n.Role == "follower":
		text += " follows " + n.Leader + ", which it cannot reach; its copy is served"
	default:
		text += " has not reached the other machine since it was started, and refuses changes"
	}
	if n.Role == "leader" && !n.Connected {
		text += "; no follower is connected"
	}
	return "node " + n.Node, text
}

func (n NodeDiverged) about() (string, string) {
	return "node " + n.Node, fmt.Sprintf("machine %s yielded to %s and had %d changes of its own, which are kept in %s", n.Node, n.Leader, len(n.Changes), n.Folder)
}

func (w WebhookDead) about() (string, string) {
	return "webhook " + w.Webhook, fmt.Sprintf("webhook %s did not accept event %d for a day%s", w.Webhook, w.Event, because(w.Cause))
}

func (w WebhookTested) about() (string, string) {
	return "webhook " + w.Webhook, "webhook " + w.Webhook + " is tested" + Config{Who: w.Who}.by()
}

func (p ProcessStarted) about() (string, string) {
	return "headgate", "headgate " + p.Version + " has started"
}

func (p ProcessUpgraded) about() (string, string) {
	return "headgate", "headgate was upgraded from " + p.From + " to " + p.Version + " without an interruption"
}

func (p ProcessStopping) about() (string, string) {
	return "headgate", "headgate is being stopped" + because(p.Cause)
}

// because appends a cause.
func because(cause string) string {
	if cause == "" {
		return ""
	}
	return ": " + cause
}

func (p ClientBanned) about() (string, string) {
	return "client " + p.Network, "banned until " + p.Until.UTC().Format(time.RFC3339) + p.by() + because(p.Reason)
}

func (p ClientUnbanned) about() (string, string) {
	return "client " + p.Network, "no longer banned" + p.by()
}

func (p ListLoaded) about() (string, string) {
	text := fmt.Sprintf("loaded: %d entries", p.Entries)
	if p.Before != p.Entries {
		text += fmt.Sprintf(", %d before", p.Before)
	}
	return "list " + p.List.List, text
}

func (p ListFailed) about() (string, string) {
	return "list " + p.List.List, "cannot be loaded" + because(p.Cause)
}

func (p ListShrunk) about() (string, string) {
	return "list " + p.List.List, "a download was not used" + because(p.Cause)
}

func (p ListStale) about() (string, string) {
	return "list " + p.List.List, "not loaded since " + p.Loaded.UTC().Format(time.RFC3339) + because(p.Cause)
}

func (p Banned) by() string {
	switch {
	case p.Rule != "":
		return " by bans." + p.Rule
	case p.Who != "":
		return " by " + p.Who
	}
	return ""
}

func (n NoticeDead) about() (string, string) {
	return "notice " + n.Notice, fmt.Sprintf("event %d was not accepted by the receiver of notice %s for a day%s", n.Event, n.Notice, because(n.Cause))
}

func (n NoticeTested) about() (string, string) {
	return "notice " + n.Notice, "this is a test of notice " + n.Notice + Config{Who: n.Who}.by()
}

func (p PersonSignedIn) about() (string, string) {
	return "person " + p.Person.Person, "signed in from " + p.Address
}

func (p PersonSignedOut) about() (string, string) {
	if p.Who != "" {
		return "person " + p.Person.Person, "signed out by " + p.Who
	}
	return "person " + p.Person.Person, "signed out"
}

func (p PersonSignInFailed) about() (string, string) {
	return "sign-in provider " + p.Provider, "a sign-in from " + p.Address + " failed" + because(p.Cause)
}

func (p SignInUnreachable) about() (string, string) {
	return "sign-in page", "the sign-in page cannot be reached" + because(p.Cause)
}

func (p SignInReachable) about() (string, string) {
	return "sign-in page", "the sign-in page can be reached again"
}
