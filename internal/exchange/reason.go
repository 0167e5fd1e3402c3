package exchange

import "errors"

// Reason is why a response is headgate's own, or why one was incomplete. The same keyword
// is used in the access log, in metrics, in the console and in the docs.
type Reason uint8

// The reasons. None means that a server, the cache, a file or a fixed response made
// the response and that all of it was sent.
const (
	None Reason = iota
	BadRequest
	AmbiguousPath
	AuthRequired
	AddressDenied
	Banned
	GateDenied
	GateNeedsHTTPS
	SignInUnavailable
	NoRoute
	RequestTimeout
	LengthRequired
	BodyTooLarge
	HeadTooLarge
	URITooLong
	Misdirected
	EarlyData
	RateLimited
	MethodUnknown
	MethodRefused
	CodingUnknown
	VersionUnknown
	UpstreamRefused
	UpstreamReset
	UpstreamCanceled
	UpstreamDNS
	UpstreamTLS
	UpstreamInvalid
	UpstreamTimeout
	NoHealthyServer
	CircuitOpen
	Maintenance
	Overloaded
	Loop
	Redirected
	LastHop
	ACMEChallenge
	CORSPreflight
	AuthFailed
	AuthTimeout
	ClientClosed
	ClientTimeout
	NotCached
	NotFound
	PreconditionFailed
	RangeNotSatisfiable
	FileUnreadable
	ShuttingDown
	Internal
	reasonCount
)

// reasons is the one table of reasons. Status 0 marks reasons that only end a
// response and never begin one.
var reasons = [reasonCount]struct {
	word   string
	status int
	// proxy is the error type of RFC 9209, section 2.3.
	proxy string
	// close says that the connection cannot be used again.
	close bool
	// title and hint are what a person reads.
	title, hint string
}{
	None:                {word: ""},
	BadRequest:          {"bad_request", 400, "http_request_error", true, "Bad request", "The request is not valid HTTP and was not passed on."},
	AmbiguousPath:       {"ambiguous_path", 400, "http_request_denied", true, "Ambiguous path", "The path of the request can be read in more than one way and was not passed on."},
	AuthRequired:        {"auth_required", 401, "http_request_denied", false, "Sign-in required", "This page needs a user name and a password."},
	AddressDenied:       {"address_denied", 403, "http_request_denied", false, "Not allowed", "Requests from your address are not allowed here."},
	Banned:              {"banned", 403, "http_request_denied", false, "Not allowed", "Your address is banned for a while, because of many requests that are not allowed here."},
	GateDenied:          {"gate_denied", 403, "http_request_denied", false, "No access", "You are signed in, and may not open this."},
	GateNeedsHTTPS:      {"gate_needs_https", 403, "http_request_denied", false, "HTTPS required", "This can be used over HTTPS only."},
	SignInUnavailable:   {"sign_in_unavailable", 503, "destination_unavailable", false, "Signing in is not possible", "Signing in is not possible at the moment. Try again in a minute."},
	NoRoute:             {"no_route", 404, "destination_not_found", false, "Not found", "Nothing is published at this address."},
	RequestTimeout:      {"request_timeout", 408, "http_request_error", true, "Request time-out", "The request took too long to arrive."},
	LengthRequired:      {"length_required", 411, "http_request_error", true, "Length required", "The request must say how long its body is."},
	BodyTooLarge:        {"body_too_large", 413, "http_request_error", true, "Content too large", "The body of the request is larger than allowed here."},
	HeadTooLarge:        {"head_too_large", 431, "http_request_error", true, "Header fields too large", "The header of the request is larger than allowed here. Deleting this site's cookies may help."},
	URITooLong:          {"uri_too_long", 414, "http_request_error", true, "Address too long", "The address of the request is longer than allowed here."},
	Misdirected:         {"misdirected", 421, "http_request_error", false, "Misdirected request", "This connection was opened for another host."},
	EarlyData:           {"early_data", 425, "http_request_denied", false, "Too early", "The request has to be sent again after the handshake."},
	RateLimited:         {"rate_limited", 429, "http_request_denied", false, "Too many requests", "Too many requests came from you in a short time. Wait a little, then try again."},
	MethodUnknown:       {"method_unknown", 501, "http_request_denied", true, "Method not implemented", "This method cannot be passed on."},
	MethodRefused:       {"method_refused", 405, "http_request_denied", false, "Method not allowed", "This method is not allowed here."},
	CodingUnknown:       {"coding_unknown", 501, "http_request_error", true, "Transfer coding not implemented", "The request uses a transfer coding that is not known here."},
	VersionUnknown:      {"version_unknown", 505, "http_request_error", true, "HTTP version not supported", "The request uses a version of HTTP that is not spoken here."},
	UpstreamRefused:     {"upstream_refused", 502, "connection_refused", false, "Bad gateway", "The server behind this site could not be reached."},
	UpstreamReset:       {"upstream_reset", 502, "connection_terminated", false, "Bad gateway", "The server behind this site closed the connection before it answered."},
	UpstreamCanceled:    {"upstream_canceled", 502, "connection_terminated", false, "Bad gateway", "The server behind this site canceled the request."},
	UpstreamDNS:         {"upstream_dns", 502, "dns_error", false, "Bad gateway", "The server behind this site could not be found."},
	UpstreamTLS:         {"upstream_tls", 502, "tls_certificate_error", false, "Bad gateway", "No trusted connection to the server behind this site could be made."},
	UpstreamInvalid:     {"upstream_invalid", 502, "http_protocol_error", false, "Bad gateway", "The server behind this site gave an answer that is not valid HTTP."},
	UpstreamTimeout:     {"upstream_timeout", 504, "http_response_timeout", false, "Gateway time-out", "The server behind this site did not answer in time."},
	NoHealthyServer:     {"no_healthy_server", 503, "destination_unavailable", false, "Service unavailable", "No server behind this site can answer at the moment."},
	CircuitOpen:         {"circuit_open", 503, "destination_unavailable", false, "Service unavailable", "The servers behind this site are given time to recover."},
	Maintenance:         {"maintenance", 503, "http_request_denied", false, "Maintenance", "This site is being worked on and will be back soon."},
	Overloaded:          {"overloaded", 503, "connection_limit_reached", false, "Service unavailable", "Too many requests are being served at the moment."},
	Loop:                {"loop", 508, "proxy_loop_detected", false, "Loop detected", "The request came back to the proxy that sent it."},
	Redirected:          {word: "redirected"},
	LastHop:             {word: "last_hop"},
	ACMEChallenge:       {word: "acme_challenge"},
	CORSPreflight:       {word: "cors_preflight"},
	AuthFailed:          {"auth_failed", 502, "destination_unavailable", false, "Bad gateway", "The sign-in service of this site could not be reached."},
	AuthTimeout:         {"auth_timeout", 504, "http_response_timeout", false, "Gateway time-out", "The sign-in service of this site did not answer in time."},
	ClientClosed:        {"client_closed", StatusClientClosed, "", true, "Client closed request", ""},
	ClientTimeout:       {"client_timeout", StatusClientClosed, "", true, "Client too slow", ""},
	NotCached:           {"not_cached", 504, "http_request_denied", false, "Not in the cache", "The request asked for a stored answer only, and there is none that may be used."},
	NotFound:            {"not_found", 404, "destination_not_found", false, "Not found", "There is no file at this address."},
	PreconditionFailed:  {"precondition_failed", 412, "http_request_denied", false, "Precondition failed", "The file is not the version that the request asks for."},
	RangeNotSatisfiable: {"range_not_satisfiable", 416, "http_request_denied", false, "Range not satisfiable", "The file does not have the part that the request asks for."},
	FileUnreadable:      {"file_unreadable", 500, "proxy_internal_error", false, "File not readable", "The file at this address cannot be read at the moment."},
	ShuttingDown:        {"shutting_down", 503, "destination_unavailable", true, "Service unavailable", "The proxy is being stopped."},
	Internal:            {"internal", 500, "proxy_internal_error", true, "Internal error", "Something went wrong in the proxy itself. It has been noted."},
}

// StatusClientClosed is logged for a response whose client had disconnected. It is never
// sent.
const StatusClientClosed = 499

// String returns the word of the reason, "" for None.
func (r Reason) String() string { return reasons[r].word }

// Status returns the status code of an answer with this reason, 0 if the
// reason makes no answer.
func (r Reason) Status() int { return reasons[r].status }

// Closes reports whether the client's connection ends with such an answer.
func (r Reason) Closes() bool { return reasons[r].close }

// Title returns a few words for people, Hint a sentence.
func (r Reason) Title() string { return reasons[r].title }

// Hint returns a sentence for the person in front of the browser.
func (r Reason) Hint() string { return reasons[r].hint }

// ProxyError returns the error type for the Proxy-Status field (RFC 9209,
// section 2.3), or "".
func (r Reason) ProxyError() string { return reasons[r].proxy }

// Reasons returns all reasons but None, in the order of the table.
func Reasons() []Reason {
	all := make([]Reason, 0, reasonCount-1)
	for r := None + 1; r < reasonCount; r++ {
		all = append(all, r)
	}
	return all
}

// Error is an error with a known reason. Bodies and sources return it.
type Error struct {
	// Reason is why.
	Reason Reason
	// Err is what happened, for the log.
	Err error
}

// ReasonOf returns the reason of an error, None if it has none.
func ReasonOf(err error) Reason {
	if known, ok := errors.AsType[*Error](err); ok {
		return known.Reason
	}
	return None
}

// Error returns the reason and what happened.
func (e *Error) Error() string {
	if e.Err == nil {
		return e.Reason.String()
	}
	return e.Reason.String() + ": " + e.Err.Error()
}

// Unwrap returns what happened.
func (e *Error) Unwrap() error { return e.Err }

// Known reports whether r is one of the table, as a number from elsewhere may not be.
func (r Reason) Known() bool { return int(r) < len(reasons) }
