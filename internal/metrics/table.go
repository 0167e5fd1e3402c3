package metrics

import "github.com/prometheus/client_golang/prometheus"

// kind is what a metric is to Prometheus.
type kind string

const (
	counter kind = "counter"
	gauge   kind = "gauge"
	histo   kind = "histogram"
)

// family is one metric: its name, what it counts, and its labels.
type family struct {
	name   string
	kind   kind
	labels []string
	help   string
}

// families is the one table of metrics.
type families struct {
	streamOpen, streamMax, streamAccepted, streamReceived, streamSent, streamErrors family

	cached, cacheBytes, cacheLimit, cacheEntries, cacheEvicted family

	requests, responses, observed, duration, received, sent family
	countries                                               family
	connections, accepted, refused, floods                  family
	atLimit, yielded, memory, datagrams                     family
	attempts, errors, firstByte                             family
	retries, retriesRefused, mirrored                       family
	state, active, ejections, checks                        family
	open, opened, waiting                                   family
	certificate, notAfter, onDemand                         family
	providerUp, providerIssues                              family
	listEntries, listUp                                     family
	splitShare, splitRequests, splitErrors                  family
	gateSessions, gateSignIns                               family
	storeDetached, storeLag, storeReconnects                family
	storeOperations, storeSeconds                           family
	pairLeads, pairConnected, pairLag                       family
	pairReconnects, pairContact                             family
	bansActive, bansMade, bansRefused                       family
	applies, appliedTime, applied, dropped, me              family
	spans                                                   family
}

func table() families {
	route := []string{"port", "proxy", "route"}
	server := []string{"proxy", "route", "server"}
	return families{
		requests: family{"headgate_requests_total", counter, append(route[:3:3], "status_class", "reason"),
			"Finished requests. reason is empty for responses of servers, and the word of the access log for our own."},
		responses: family{"headgate_responses_total", counter, append(route[:3:3], "method", "status"),
			"Finished requests by method and status, as the access log has it. Unknown methods are `other`, statuses without a name a class such as `2xx`."},
		countries: family{"headgate_requests_by_country_total", counter, []string{"country", "status_class"},
			"Finished requests by the country of the client, with a `geo.country` database: two letters, or `unknown` for public addresses that it does not contain. Private addresses are not counted. Networks (ASN) have too many values for a label: see the field `asn` of the access log."},
		observed: family{"headgate_rate_limit_observed_total", counter, route,
			"Requests that a rate_limit with `mode: observe` would have refused."},
		duration: family{"headgate_request_duration_seconds", histo, route,
			"Time from the end of the request head to the end of the response. Upgraded connections are not in it."},
		received: family{"headgate_received_bytes_total", counter, route,
			"Bytes of request bodies that were read from clients."},
		sent: family{"headgate_sent_bytes_total", counter, route,
			"Bytes of response bodies that were sent to clients."},
		cached: family{"headgate_cache_requests_total", counter, append(route[:3:3], "use"),
			"Requests by what the route's cache made of them, in the words of the access log: hit, stale, revalidated, collapsed, miss, pass."},
		cacheBytes: family{"headgate_cache_bytes", gauge, []string{"proxy", "route"},
			"Memory that a cache holds: bodies, heads, index. route is empty for the cache of a proxy."},
		cacheLimit: family{"headgate_cache_limit_bytes", gauge, []string{"proxy", "route"},
			"The memory_limit of a cache."},
		cacheEntries: family{"headgate_cache_entries", gauge, []string{"proxy", "route"},
			"Responses that a cache holds."},
		cacheEvicted: family{"headgate_cache_evictions_total", counter, []string{"proxy", "route"},
			"Responses that were given up because the memory of a cache was full."},
		connections: family{"headgate_connections_open", gauge, []string{"port"},
			"Connections of clients that are open."},
		accepted: family{"headgate_connections_accepted_total", counter, []string{"port"},
			"Connections of clients that were accepted."},
		refused: family{"headgate_connections_refused_total", counter, []string{"port", "reason"},
			"Connections that were ended before anything was served on them: `tls_handshake` failed, `proxy_protocol` for a trusted peer without a good header, `full` for QUIC at the limit, and for a client that left while it waited for a connection at the limit."},
		atLimit: family{"headgate_connections_at_limit", gauge, []string{"port"},
			"1 while a port has reached its connection limit: new connections replace idle ones, wait, or are refused."},
		yielded: family{"headgate_connections_yielded_total", counter, []string{"port"},
			"Idle connections, between requests or before a complete first one, that were closed for others at the connection limit."},
		memory: family{"headgate_memory_refused_total", counter, []string{"port"},
			"Requests that were refused, or reset in their bodies, because of `limits.max_memory` or `max_memory_per_client`."},
		datagrams: family{"headgate_datagrams_lost_total", counter, []string{"port", "direction"},
			"Datagrams of HTTP/3 that the system did not send (`send`), and reads that failed (`receive`). Connections stay open: lost data is sent again."},
		streamOpen: family{"headgate_stream_connections_open", gauge, []string{"protocol", "proxy"},
			"Open connections of a TCP proxy, sessions of a UDP proxy."},
		streamMax: family{"headgate_stream_connections_max", gauge, []string{"protocol", "proxy"},
			"`max_sessions` of a UDP proxy: with so many sessions open, a new one replaces another."},
		streamAccepted: family{"headgate_stream_connections_total", counter, []string{"protocol", "proxy"},
			"Connections of a TCP proxy, sessions of a UDP proxy, that have begun."},
		streamReceived: family{"headgate_stream_received_bytes_total", counter, []string{"protocol", "proxy"},
			"Bytes that clients of a TCP or UDP proxy have sent."},
		streamSent: family{"headgate_stream_sent_bytes_total", counter, []string{"protocol", "proxy"},
			"Bytes that were sent to clients of a TCP or UDP proxy."},
		streamErrors: family{"headgate_stream_errors_total", counter, []string{"protocol", "proxy", "reason"},
			"Connections and sessions that failed, and attempts at servers that did, by the word of the access log."},
		floods: family{"headgate_floods_total", counter, []string{"flood"},
			"HTTP/2 connections that were ended because their client flooded us, by the word of the log."},
		attempts: family{"headgate_upstream_attempts_total", counter, server,
			"Requests that were sent, or should have been sent, to a server."},
		errors: family{"headgate_upstream_errors_total", counter, append(server[:3:3], "reason"),
			"Attempts without a response head, by the keyword of the access log."},
		firstByte: family{"headgate_upstream_first_byte_seconds", histo, server,
			"Time from the choice of a server to its response head, with the connection if a new one was needed."},
		retries: family{"headgate_retries_total", counter, []string{"proxy", "route"},
			"Requests that were sent once more to another server, for a reason that `retry` names."},
		retriesRefused: family{"headgate_retries_refused_total", counter, []string{"proxy", "route"},
			"Retries that were not made because the budget was used up."},
		mirrored: family{"headgate_mirror_requests_total", counter, []string{"proxy", "route", "result"},
			"Copies for a mirror: sent (it answered), failed (it did not), dropped (too many were under way), too_long (the body)."},
		state: family{"headgate_upstream_state", gauge, append(server[:3:3], "state"),
			"1, with the state of the server in the labels: unknown, healthy, unhealthy, ejected, slow_start, draining or disabled."},
		active: family{"headgate_upstream_active", gauge, server,
			"Requests that run on a server."},
		ejections: family{"headgate_upstream_ejections_total", counter, server,
			"How often a server was ejected because requests in a row failed."},
		checks: family{"headgate_upstream_checks_total", counter, append(server[:3:3], "result"),
			"Health checks of a server that passed or failed. Routes that share a check count the same ones."},
		open: family{"headgate_upstream_circuit_open", gauge, server,
			"1 while the circuit of a server is open, for servers with a circuit breaker."},
		opened: family{"headgate_upstream_circuit_opened_total", counter, server,
			"How often the circuit of a server was opened."},
		waiting: family{"headgate_upstream_waiting", gauge, []string{"proxy", "route"},
			"Requests that wait because every server of the route has max_requests requests."},
		certificate: family{"headgate_certificate_state", gauge, []string{"certificate", "state"},
			"1, with the state of a certificate in the labels: valid, expiring, expired, or missing when its files cannot be used; of one by ACME also waiting, ordering, blocked or failed."},
		notAfter: family{"headgate_certificate_not_after_seconds", gauge, []string{"certificate"},
			"Unix time at which a certificate ends. One that is missing has none."},
		onDemand: family{"headgate_certificate_on_demand_total", counter, []string{"result"},
			"Handshakes for hosts without a certificate, by result: issued; refused by the list or the application; ask_failed without its response; limited by max_per_hour or max_certificates; failed, or failed_before and not due yet; too_slow for the handshake; too_many_waiting; too_many_names of one client or proxy; bad_name; http3. asked counts requests to applications."},
		providerUp: family{"headgate_discovery_up", gauge, []string{"provider"},
			"1 while a provider of discovery answers, 0 while it does not."},
		providerIssues: family{"headgate_discovery_issues", gauge, []string{"provider"},
			"What cannot be used of what a provider of discovery found."},
		splitShare: family{"headgate_split_share", gauge, []string{"proxy", "route"},
			"Percentage of clients that the candidate of a split gets."},
		splitRequests: family{"headgate_split_requests_total", counter, []string{"proxy", "route", "group"},
			"Requests to a group of a split, as far as they say something about its servers."},
		splitErrors: family{"headgate_split_errors_total", counter, []string{"proxy", "route", "group"},
			"Those that failed: responses with status 500 to 599, and requests that no server has answered."},
		listEntries: family{"headgate_list_entries", gauge, []string{"list"},
			"Addresses and networks in a list."},
		listUp: family{"headgate_list_up", gauge, []string{"list"},
			"1 while the source of a list can be loaded, 0 while it cannot, or was not yet."},
		gateSessions: family{"headgate_gate_sessions", gauge, nil,
			"Sessions of people at applications behind a gate."},
		gateSignIns: family{"headgate_gate_sign_ins_total", counter, []string{"result"},
			"Sign-ins for applications behind a gate since the start: success or failure."},
		storeDetached: family{"headgate_store_detached", gauge, nil,
			"1 while this machine cannot follow the store that it shares with others, 0 while it does. Absent where nothing is shared."},
		storeLag: family{"headgate_store_lag_revisions", gauge, nil,
			"Revisions of the shared store, as far as they are known, that this machine has not read yet."},
		storeReconnects: family{"headgate_store_reconnects_total", counter, nil,
			"How often this machine has followed the shared store again, the start included."},
		storeOperations: family{"headgate_store_operations_total", counter, []string{"operation"},
			"Changes that this machine has committed to the shared store (commit) and read back from it (watch)."},
		storeSeconds: family{"headgate_store_operation_seconds_total", counter, []string{"operation"},
			"Seconds that these operations took in all. Divide by the number of operations for the mean latency."},
		pairLeads: family{"headgate_pair_leads", gauge, nil,
			"1 while this machine leads its pair, 0 while it follows or waits for the other machine. Absent outside a pair."},
		pairConnected: family{"headgate_pair_connected", gauge, nil,
			"1 while the follower of a pair has a stream from the leader, 0 while it has none."},
		pairLag: family{"headgate_pair_lag_revisions", gauge, nil,
			"Revisions of the state that the follower of a pair does not have yet, as far as this machine knows."},
		pairReconnects: family{"headgate_pair_reconnects_total", counter, nil,
			"How often the follower of a pair has opened a stream from the leader since the start of this machine, the first time included."},
		pairContact: family{"headgate_pair_last_contact_timestamp_seconds", gauge, nil,
			"When the other machine of a pair was heard from last, in seconds since 1970. Absent if it was not since the start."},
		bansActive: family{"headgate_bans", gauge, nil,
			"Bans in force."},
		bansMade: family{"headgate_bans_total", counter, nil,
			"Bans made since the start."},
		bansRefused: family{"headgate_bans_refused_total", counter, nil,
			"Requests and connections that bans have refused since the start."},
		applies: family{"headgate_config_applies_total", counter, []string{"result"},
			"Changes of the configuration: applied, or refused because something in them was wrong."},
		appliedTime: family{"headgate_config_last_apply_timestamp_seconds", gauge, nil,
			"Unix time at which the running configuration was applied, 0 before the first."},
		applied: family{"headgate_config_last_apply_successful", gauge, nil,
			"1 if the configuration files are active, 0 if they were rejected and an older configuration is active."},
		dropped: family{"headgate_access_log_dropped_total", counter, nil,
			"Access log records that were dropped because the disk or pipe was too slow, or could not be written."},
		spans: family{"headgate_tracing_spans_total", counter, []string{"result"},
			"Spans of sampled requests: sent to the collector, dropped because it is too slow, lost because it did not accept them."},
		me: family{"headgate_build_info", gauge, []string{"version", "revision", "goversion"},
			"1, with the version of headgate in the labels."},
	}
}

// all returns the table in the order of the docs.
func (f *families) all() []*family {
	return []*family{
		&f.cached, &f.cacheBytes, &f.cacheLimit, &f.cacheEntries, &f.cacheEvicted,
		&f.requests, &f.responses, &f.countries, &f.observed, &f.duration, &f.received, &f.sent, &f.connections, &f.accepted, &f.refused, &f.atLimit, &f.yielded, &f.memory, &f.datagrams, &f.streamOpen, &f.streamMax, &f.streamAccepted, &f.streamReceived, &f.streamSent, &f.streamErrors,
		&f.floods, &f.attempts, &f.errors, &f.firstByte,
		&f.retries, &f.retriesRefused, &f.mirrored,
		&f.state, &f.active, &f.ejections, &f.checks, &f.open, &f.opened, &f.waiting,
		&f.certificate, &f.notAfter, &f.onDemand, &f.providerUp, &f.providerIssues,
		&f.splitShare, &f.splitRequests, &f.splitErrors, &f.listEntries, &f.listUp, &f.gateSessions, &f.gateSignIns, &f.bansActive, &f.bansMade, &f.bansRefused,
		&f.storeDetached, &f.storeLag, &f.storeReconnects, &f.storeOperations, &f.storeSeconds,
		&f.pairLeads, &f.pairConnected, &f.pairLag, &f.pairReconnects, &f.pairContact,
		&f.applies, &f.appliedTime, &f.applied, &f.dropped, &f.spans, &f.me,
	}
}

func (f *family) desc() *prometheus.Desc {
	return prometheus.NewDesc(f.name, f.help, f.labels, nil)
}
