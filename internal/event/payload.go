package event

import "time"

// Payload is the data of an event. Its type is one of this package's table.
type Payload interface {
	// about returns what the event is about ("port web"), and a sentence for people
	// without its full stop.
	about() (object, text string)
}

// Config is what events of configurations have in common.
type Config struct {
	// Revision is the number of the configuration, 0 if it has none.
	Revision int `json:"revision,omitempty"`
	// Who made the change: a user, a token, or local:UID.
	Who string `json:"who,omitempty"`
	// Via is where the change came from: api, console, file, cli, docker, http or agent.
	Via string `json:"via,omitempty"`
	// Why is what the person who made it wrote.
	Why string `json:"why,omitempty"`
	// Adopted says that another machine made the change, and that this one follows it. Webhooks and
	// notices do not get config.applied for that.
	Adopted bool `json:"adopted,omitempty"`
	// Changes is the difference in words, a sentence each.
	Changes []string `json:"changes,omitempty"`
}

// ConfigApplied is sent when a configuration becomes active.
type ConfigApplied struct {
	Config
	// ConfirmBy is when it is reverted unless it is confirmed.
	ConfirmBy time.Time `json:"confirm_by,omitzero"`
	// Unchecked are other machines that may not be able to serve it, one per line: they did not
	// respond in time, or also reject the previous configuration.
	Unchecked []string `json:"unchecked,omitempty"`
}

// ConfigRefused is sent when a change was rejected and nothing was changed.
type ConfigRefused struct {
	Config
	// Problems is what is wrong with it, a line each.
	Problems []string `json:"problems,omitempty"`
}

// ConfigConfirmed reports that a change was confirmed.
type ConfigConfirmed struct{ Config }

// ConfigReverted is sent when an earlier configuration is active again.
type ConfigReverted struct {
	Config
	// To is the revision that acts again.
	To int `json:"to,omitempty"`
	// Cause is why: not_confirmed, rolled_back, health, restart, or reverted_locally for one machine whose
	// shared store is away.
	Cause string `json:"cause,omitempty"`
}

// ConfigSetAside is sent when a configuration file was edited on a node while another one saved a
// change: the saved change is used, and the edit is kept beside the file.
type ConfigSetAside struct {
	// Node is the name of the node.
	Node string `json:"node"`
	// Document is the configuration file.
	Document string `json:"document"`
	// Kept is the file with the edit.
	Kept string `json:"kept"`
	// Revision is the configuration that is used.
	Revision int `json:"revision,omitempty"`
}

// Port is what events of ports have in common.
type Port struct {
	// Port is the name of the port.
	Port string `json:"port"`
	// Address is where it listens.
	Address string `json:"address,omitempty"`
	// Reason is the keyword for its state.
	Reason string `json:"reason,omitempty"`
	// Hint is what to do.
	Hint string `json:"hint,omitempty"`
}

// PortListening is sent when a port accepts connections.
type PortListening struct{ Port }

// PortWaiting is sent when the address of a port cannot be opened; headgate
// tries again.
type PortWaiting struct{ Port }

// PortClosed is sent when a port no longer accepts connections.
type PortClosed struct{ Port }

// PortReset is sent when an operator has closed all connections of a port at once, and
// has opened again one that waits.
type PortReset struct {
	Port
	// Closed is how many connections or sessions were closed.
	Closed int `json:"closed"`
	// Who did it.
	Who string `json:"who,omitempty"`
	// Why is what the operator said of it.
	Why string `json:"why,omitempty"`
}

// Server is what events of servers have in common.
type Server struct {
	// Kind is proxies, tcp_proxies or udp_proxies.
	Kind string `json:"kind"`
	// Proxy is the name of the proxy.
	Proxy string `json:"proxy"`
	// Route is the path of the route; empty for TCP and UDP proxies.
	Route string `json:"route,omitempty"`
	// Server is the server's URL or address.
	Server string `json:"server"`
	// Reason is the keyword for its state.
	Reason string `json:"reason,omitempty"`
	// Cause says more, in one line.
	Cause string `json:"cause,omitempty"`
}

// ServerHealthy is sent when a server gets requests again.
type ServerHealthy struct{ Server }

// ServerUnhealthy is sent when the health check of a server fails.
type ServerUnhealthy struct{ Server }

// ServerEjected is sent when a server gets no requests for a while after
// consecutive failures.
type ServerEjected struct{ Server }

// ServerDrained is sent when an operator has taken a server out of service or returned
// it, and when no request is active any more on one that was taken out.
type ServerDrained struct {
	Server
	// State is what the operator has set: draining, disabled or enabled; or drained when
	// nothing runs on the server any more.
	State string `json:"state"`
	// Who did it.
	Who string `json:"who,omitempty"`
	// Until is when it ends by itself.
	Until time.Time `json:"until,omitzero"`
}

// Split is what events of splits have in common.
type Split struct {
	// Proxy is the name of the proxy.
	Proxy string `json:"proxy"`
	// Route is the route, with its matchers.
	Route string `json:"route"`
	// Share is the candidate's percentage of clients from now on.
	Share int `json:"share"`
	// Who decided it: an operator, schedule or headgate.
	Who string `json:"who,omitempty"`
	// Cause is the reason, in one line.
	Cause string `json:"cause,omitempty"`
}

// SplitCounts is what was counted of a group of servers in the window.
type SplitCounts struct {
	// Requests is how many requests there were.
	Requests int `json:"requests"`
	// Errors is how many of them failed.
	Errors int `json:"errors"`
	// P95 is the 95th percentile of the time to the response head, in milliseconds.
	P95 float64 `json:"p95_ms"`
}

// SplitChanged is sent when the candidate of a split gets another share of the clients, or
// an operator holds the share.
type SplitChanged struct {
	Split
	// Phase is running, held or complete.
	Phase string `json:"phase"`
}

// SplitReturned is sent when the candidate of a split gets no more requests: because it
// responds worse than the stable servers, or because an operator has returned it.
type SplitReturned struct {
	Split
	// Stable are the counts of the stable servers.
	Stable SplitCounts `json:"stable"`
	// Candidate are those of the candidate.
	Candidate SplitCounts `json:"candidate"`
}

// Proxy is what events of whole proxies have in common.
type Proxy struct {
	// Proxy is the name of the proxy.
	Proxy string `json:"proxy"`
	// Healthy is how many of its servers are healthy, and Total how many it has.
	Healthy int `json:"healthy"`
	// Total is how many servers it has.
	Total int `json:"total"`
}

// ProxyDown is sent when a proxy has no healthy server.
type ProxyDown struct{ Proxy }

// ProxyDegraded is sent when a proxy works, but not with all of its servers, or not on
// all of its routes. It also follows proxy.down when only some servers recover.
type ProxyDegraded struct {
	Proxy
	// Reason is what is away.
	Reason string `json:"reason,omitempty"`
}

// ProxyRecovered is sent when a proxy that was down or degraded is healthy again.
type ProxyRecovered struct{ Proxy }

// Certificate is what events of certificates have in common.
type Certificate struct {
	// Certificate is the name of the certificate.
	Certificate string `json:"certificate"`
	// Names are the host names in it.
	Names []string `json:"names,omitempty"`
	// NotAfter is when it expires.
	NotAfter time.Time `json:"not_after,omitzero"`
	// Cause says more, in one line.
	Cause string `json:"cause,omitempty"`
}

// CertificateLoaded is sent when a certificate is served from now on.
type CertificateLoaded struct{ Certificate }

// CertificateExpiring is sent when a certificate expires soon and was not
// renewed.
type CertificateExpiring struct{ Certificate }

// CertificateExpired is sent when a certificate has expired and is still
// served.
type CertificateExpired struct{ Certificate }

// CertificateFailed is sent when a certificate cannot be loaded.
type CertificateFailed struct{ Certificate }

// ACME is what events of orders have in common.
type ACME struct {
	// Certificate is the name of the certificate that is ordered.
	Certificate string `json:"certificate"`
	// Directory is the ACME server.
	Directory string `json:"directory,omitempty"`
	// Names are the host names of the order.
	Names []string `json:"names,omitempty"`
	// Cause is what the ACME server or the preflight says.
	Cause string `json:"cause,omitempty"`
	// Hint is what to do.
	Hint string `json:"hint,omitempty"`
	// RetryAt is when it is tried again.
	RetryAt time.Time `json:"retry_at,omitzero"`
}

// ACMEIssued is sent when an order resulted in a certificate.
type ACMEIssued struct{ ACME }

// ACMEBlocked is sent when an order is not started, because it could not
// succeed.
type ACMEBlocked struct{ ACME }

// ACMEFailed is sent when an order failed.
type ACMEFailed struct{ ACME }

// ACMERefused is sent when a certificate on demand is not renewed, because its host is no
// longer allowed.
type ACMERefused struct{ ACME }

// ECHFailed is sent when HTTPS records with the key of Encrypted Client Hello could not be
// written to the DNS, or did not become visible there.
type ECHFailed struct {
	// Entry is the ACME entry whose DNS provider writes the records.
	Entry string `json:"entry"`
	// Names are the names of the records.
	Names []string `json:"names"`
	// Cause is why the first of them was not written.
	Cause string `json:"cause,omitempty"`
	// Hint is what to do.
	Hint string `json:"hint,omitempty"`
	// RetryAt is when it is tried again.
	RetryAt time.Time `json:"retry_at,omitzero"`
}

// Issue is what events of discovery have in common.
type Issue struct {
	// Provider is the name of the provider.
	Provider string `json:"provider"`
	// Object is what it is about, such as a container.
	Object string `json:"object,omitempty"`
	// Label is the label that is meant.
	Label string `json:"label,omitempty"`
	// Code is the kind of issue, in one word.
	Code string `json:"code,omitempty"`
	// Message says what is wrong.
	Message string `json:"message,omitempty"`
	// Hint is what to do.
	Hint string `json:"hint,omitempty"`
}

// DiscoveryIssueOpened is sent for an object that a provider cannot use.
type DiscoveryIssueOpened struct{ Issue }

// DiscoveryIssueClosed is sent when an issue is resolved.
type DiscoveryIssueClosed struct{ Issue }

// DiscoveryLost is sent when a provider does not answer.
type DiscoveryLost struct{ Issue }

// DiscoveryConnected is sent when a provider answers.
type DiscoveryConnected struct{ Issue }

// Auth is what events of signing in have in common.
type Auth struct {
	// User is the name that was given.
	User string `json:"user,omitempty"`
	// Token is the name of the token, when one was used.
	Token string `json:"token,omitempty"`
	// Address is the client's address.
	Address string `json:"address,omitempty"`
	// Method is how: password, totp, recovery_code, passkey, oidc, token or setup.
	Method string `json:"method,omitempty"`
	// Reason is why it failed, in one word.
	Reason string `json:"reason,omitempty"`
}

// AuthSignedIn is sent when an operator has signed in.
type AuthSignedIn struct {
	Auth
	// Warning is what an admin should know, such as a passkey that may have been copied.
	Warning string `json:"warning,omitempty"`
}

// AuthFailed is sent when a sign-in was rejected.
type AuthFailed struct{ Auth }

// AuthThrottled is sent when sign-ins are rejected for a while, because too
// many failed.
type AuthThrottled struct{ Auth }

// Banned is what events of bans have in common.
type Banned struct {
	// Network is the address of the client, its IPv6 /64, or a wider network.
	Network string `json:"network"`
	// Rule is the ban rule, absent for a ban by an operator.
	Rule string `json:"rule,omitempty"`
	// Reason is what the ban is for.
	Reason string `json:"reason,omitempty"`
	// Until is when the ban ends by itself.
	Until time.Time `json:"until"`
	// Who is the operator who banned the client or lifted the ban, or headgate.
	Who string `json:"who,omitempty"`
}

// ClientBanned reports a client that is rejected for a while.
type ClientBanned struct{ Banned }

// ClientUnbanned reports a client that is no longer banned.
type ClientUnbanned struct{ Banned }

// List is what events of lists of addresses have in common.
type List struct {
	// List is the name of the list.
	List string `json:"list"`
	// Source is where its entries come from: entries, url, file or crowdsec.
	Source string `json:"source"`
	// Entries is how many entries it has.
	Entries int `json:"entries"`
	// Before is how many it had before.
	Before int `json:"before,omitempty"`
	// Loaded is when its entries were loaded last; absent if they never were.
	Loaded time.Time `json:"loaded,omitzero"`
	// Cause says why its source could not be used.
	Cause string `json:"cause,omitempty"`
}

// ListLoaded reports a list that was loaded for the first time, has other entries, or can
// be loaded again.
type ListLoaded struct{ List }

// ListFailed reports a list that cannot be loaded. Its last entries are used.
type ListFailed struct{ List }

// ListShrunk reports a download that is not used, because it has lost most of the entries
// of the one before.
type ListShrunk struct{ List }

// ListStale reports a list that could not be loaded for three of its intervals, and at
// least a day. Its last entries are used.
type ListStale struct{ List }

// Person is what events of people at applications have in common.
type Person struct {
	// Person is PROVIDER/ID, absent if it is not known.
	Person string `json:"person,omitempty"`
	// Provider is the name of the sign-in provider.
	Provider string `json:"provider,omitempty"`
	// Address is the address of the client.
	Address string `json:"address,omitempty"`
	// Cause is why it failed, in one line.
	Cause string `json:"cause,omitempty"`
	// Who is the operator who did it, absent for the person.
	Who string `json:"who,omitempty"`
}

// PersonSignedIn reports a person who signed in for applications behind a gate.
type PersonSignedIn struct{ Person }

// PersonSignedOut reports a session for applications that was ended.
type PersonSignedOut struct{ Person }

// PersonSignInFailed reports a sign-in for applications that was not confirmed.
type PersonSignInFailed struct{ Person }

// SignInUnreachable reports that this machine cannot reach the sign-in page.
type SignInUnreachable struct {
	// Cause is why, in one line.
	Cause string `json:"cause"`
}

// SignInReachable reports that the sign-in page can be reached again.
type SignInReachable struct{}

// LimitReached is sent when a limit takes effect.
type LimitReached struct {
	// Limit is the name of the setting.
	Limit string `json:"limit"`
	// Object is what it belongs to.
	Object string `json:"object,omitempty"`
	// Value is the bound.
	Value string `json:"value,omitempty"`
	// Effect is what happens to what is over it.
	Effect string `json:"effect,omitempty"`
}

// StoreUnavailable is sent when the store cannot be written at the moment.
type StoreUnavailable struct {
	// Cause says why, in one line.
	Cause string `json:"cause,omitempty"`
}

// StoreAway is sent when a node cannot reach the store that it shares with others: it serves
// its copy, and changes are refused.
type StoreAway struct {
	// Node is the name of the node.
	Node string `json:"node"`
	// Cause is the error, in one line.
	Cause string `json:"cause,omitempty"`
}

// StoreReturned is sent when a node follows the shared store again after it was away.
type StoreReturned struct {
	// Node is the name of the node.
	Node string `json:"node"`
	// Seconds is how long the store was away.
	Seconds int `json:"seconds"`
}

// StoreRewound is sent when the shared store was set back to an older state. The node serves
// its copy until an operator decides whose state is right.
type StoreRewound struct {
	// Node is the name of the node.
	Node string `json:"node"`
	// Cause is what the node has found, in one line.
	Cause string `json:"cause,omitempty"`
}

// Node is what events of nodes have in common.
type Node struct {
	// Node is the name of the node.
	Node string `json:"node"`
	// Version is the version of headgate on the node.
	Version string `json:"version,omitempty"`
	// Revision is the configuration that the node serves, 0 if that is not known.
	Revision int `json:"revision,omitempty"`
	// Latest is the newest configuration that a running node serves.
	Latest int `json:"latest_revision,omitempty"`
}

// NodeJoined is sent when a node uses the shared store for the first time.
type NodeJoined struct{ Node }

// NodeDetached is sent when a node has not published its state for 90 seconds: it has ended
// without a notice, or cannot reach the shared store.
type NodeDetached struct{ Node }

// NodeReturned is sent when a node publishes its state again that was reported as detached.
type NodeReturned struct{ Node }

// NodeBehind is sent when a node has served an older configuration than others for half a
// minute.
type NodeBehind struct{ Node }

// StoreRestored is sent when a damaged file was moved aside.
type StoreRestored struct {
	// Cause says what was damaged.
	Cause string `json:"cause,omitempty"`
	// Aside is where the damaged file lies.
	Aside string `json:"aside,omitempty"`
	// From is the copy that is used instead; empty if it starts empty.
	From string `json:"from,omitempty"`
}

// NodeRole reports that a machine of a pair leads or follows, or has lost the other one.
type NodeRole struct {
	// Node is the machine that reports.
	Node string `json:"node"`
	// Role is leader, follower or waiting.
	Role string `json:"role"`
	// Leader is the machine that leads.
	Leader string `json:"leader,omitempty"`
	// Epoch is the number of its period.
	Epoch string `json:"epoch,omitempty"`
	// Connected is whether the follower has a stream from the leader.
	Connected bool `json:"connected"`
}

// NodeDiverged reports that a machine yielded to another one, and had changes that the
// leader does not have.
type NodeDiverged struct {
	// Node is the machine that yielded.
	Node string `json:"node"`
	// Epoch is the number of the period in which it led.
	Epoch string `json:"epoch"`
	// Leader is the machine that leads now.
	Leader string `json:"leader"`
	// Folder is where the machine keeps all that it had.
	Folder string `json:"folder"`
	// Changes describe what only that machine had.
	Changes []string `json:"changes,omitempty"`
}

// WebhookDead is sent when a webhook did not accept a message for a day.
type WebhookDead struct {
	// Webhook is the name of the webhook.
	Webhook string `json:"webhook"`
	// Event is the number of the event that was to be sent.
	Event int64 `json:"event"`
	// Cause is what the last try ended with.
	Cause string `json:"cause,omitempty"`
}

// WebhookTested is sent for a test message that an operator requested.
type WebhookTested struct {
	// Webhook is the name of the webhook.
	Webhook string `json:"webhook"`
	// Operator who requested it.
	Who string `json:"who,omitempty"`
}

// ProcessStarted is sent when headgate starts.
type ProcessStarted struct {
	// Version is that of the program.
	Version string `json:"version,omitempty"`
	// Instance is the name of this machine's headgate.
	Instance string `json:"instance,omitempty"`
}

// ProcessUpgraded is sent when a new process has replaced this one without an
// interruption.
type ProcessUpgraded struct {
	// Version is the version of the program.
	Version string `json:"version,omitempty"`
	// From is the version of the previous program.
	From string `json:"from,omitempty"`
}

// ProcessStopping is sent when headgate stops.
type ProcessStopping struct {
	// Cause is why.
	Cause string `json:"cause,omitempty"`
}

// NoticeDead reports a message of a notice that was not accepted for a day.
type NoticeDead struct {
	// Notice is the name of the notice.
	Notice string `json:"notice"`
	// Event is the id of the first event of the message.
	Event int64 `json:"event"`
	// Cause is the result of the last attempt.
	Cause string `json:"cause,omitempty"`
}

// NoticeTested reports a test message that an operator has requested.
type NoticeTested struct {
	// Notice is the name of the notice.
	Notice string `json:"notice"`
	// Who requested it.
	Who string `json:"who,omitempty"`
}
