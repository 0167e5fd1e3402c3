package api

import (
	"encoding/json"
	"errors"
	"net/http"
	"strconv"
	"time"

	"headgate/internal/gate/people"
	"headgate/internal/operator"
	"headgate/internal/pair"
	"headgate/internal/setting/shown"
	"headgate/internal/store"
)

// problem is the answer to a request that was refused (RFC 9457).
type problem struct {
	// Type is required by RFC 9457; it carries no more information than the code.
	Type string `json:"type"`
	// Title is the meaning of the code.
	Title string `json:"title"`
	// Status is the status of the response.
	Status int `json:"status"`
	// Code is a keyword from the table of codes.
	Code string `json:"code"`
	// Pointer is the position in the body, as a JSON pointer (RFC 6901). For a problem in
	// configuration files, it is the position in the configuration.
	Pointer string `json:"pointer,omitempty"`
	// Parameter is the affected query parameter or header.
	Parameter string `json:"parameter,omitempty"`
	// Detail describes what is wrong.
	Detail string `json:"detail"`
	// Remedy is how to fix it.
	Remedy string `json:"remedy,omitempty"`
	// Grant is what a change would grant behind a gate, if it was rejected because of that.
	Grant string `json:"grant,omitempty"`
	// Problems are all problems, if there are several.
	Problems []mistake `json:"problems,omitempty"`
	// Current is the current object, if the change was based on an older one.
	Current json.RawMessage `json:"current,omitempty"`

	retryAfter time.Duration
	allow      string
}

// mistake is one thing that is wrong with a body.
type mistake struct {
	// Code is a keyword from the table of codes.
	Code string `json:"code"`
	// Pointer is the position in the body or the configuration, as a JSON pointer (RFC
	// 6901).
	Pointer string `json:"pointer"`
	// Detail describes what is wrong.
	Detail string `json:"detail"`
	// Remedy is how to fix it.
	Remedy string `json:"remedy,omitempty"`
}

// Error returns the detail.
func (p *problem) Error() string { return p.Detail }

// codes is the one table of problems.
var codes = [...]struct {
	code   string
	status int
	title  string
}{
	{"invalid_json", 400, "The body is not valid JSON"},
	{"invalid", 400, "A value is not valid"},
	{"unknown_field", 400, "A field is not known"},
	{"unknown_parameter", 400, "A parameter is not known"},
	{"token_in_url", 400, "A secret is in the URL"},
	{operator.CodeSignedOut, 401, "Sign-in required"},
	{operator.CodeTOTP, 401, "A code is required"},
	{operator.CodeForbidden, 403, "Not allowed"},
	{"host_field", 403, "An admin, or only the machine, may set this"},
	{"read_only", 403, "It cannot be changed here"},
	{"cross_origin", 403, "The request comes from another site"},
	{operator.CodeNotFound, 404, "Not found"},
	{"method_not_allowed", 405, "The method is not allowed"},
	{operator.CodeExists, 409, "The name is taken"},
	{"in_use", 409, "Others use it"},
	{"not_shared", 409, "No database is shared"},
	{"node_outdated", 409, "A node needs a newer release first"},
	{"not_rewound", 409, "The store was not set back"},
	{"confirm_pending", 409, "A change waits to be confirmed"},
	{"nothing_pending", 409, "No change waits to be confirmed"},
	{"address_in_use", 409, "An address is in use"},
	{"compare_running", 409, "A comparison runs already"},
	{"not_held", 409, "The server is not drained or disabled"},
	{"split_state", 409, "The split is in a state that does not allow this"},
	{"protected", 409, "The address is never banned"},
	{"not_enabled", 409, "There are no ban rules"},
	{"not_banned", 404, "The address is not banned"},
	{"not_open", 409, "The port is not open"},
	{"not_leader", 409, "Another machine makes changes"},
	{"not_in_group", 409, "The machine is in no group"},
	{"group_full", 409, "The group has two machines"},
	{"not_promoted", 409, "The machine was not promoted"},
	{"upgrade_refused", 409, "No upgrade is possible now"},
	{"upgrade_failed", 409, "The new process could not serve"},
	{"not_applied", 409, "The change could not be applied"},
	{operator.CodeLastAdmin, 409, "No administrator would remain"},
	{operator.CodeStale, 412, "It was changed since it was read"},
	{"too_large", 413, "The body is too large"},
	{"media_type", 415, "The body is not JSON"},
	{"misdirected", 421, "Wrong host"},
	{"precondition_required", 428, "If-Match is required"},
	{operator.CodeThrottled, 429, "Too many attempts"},
	{"internal", 500, "Internal error"},
	{"access_required", 403, "Only some may manage access to applications"},
	{"passkeys_unavailable", 409, "Passkeys cannot be used here"},
	{operator.CodeProvider, 502, "The sign-in provider failed"},
	{operator.CodeOverloaded, 503, "Too much at once"},
	{"upgrading", 503, "Headgate is being upgraded"},
	{"not_followed", 503, "The follower is away"},
	{operator.CodeStore, 503, "The store is unavailable"},
	{"node_away", 504, "Another machine does not respond"},
	{"unavailable", 503, "It is not possible at the moment"},
}

// storeRetry is the value of Retry-After while the store is unavailable.
const storeRetry = 5 * time.Second

// maxDetail bounds each text of a problem, in bytes.
const maxDetail = 1024

// refuse returns a problem.
func refuse(code, pointer, detail, remedy string) *problem {
	p := &problem{Type: "about:blank", Code: code, Pointer: shown.Short(pointer, maxDetail), Detail: shown.Short(detail, maxDetail), Remedy: shown.Short(remedy, maxDetail)}
	for _, row := range codes {
		if row.code == code {
			p.Status, p.Title = row.status, row.title
			return p
		}
	}
	p.Code, p.Status, p.Title = "internal", http.StatusInternalServerError, "Internal error"
	return p
}

// refuseParameter returns a problem with a parameter of the query, or a header field.
func refuseParameter(code, name, detail, remedy string) *problem {
	p := refuse(code, "", detail, remedy)
	p.Parameter = name
	return p
}

// problemOf returns the problem for an error, and whether it is an internal error.
func problemOf(err error) (p *problem, internal bool) {
	var refused *operator.Error
	var person *people.Error
	switch {
	case errors.As(err, &p):
		return p, false
	case errors.As(err, &person):
		p = refuse(person.Code, "", person.Detail, person.Remedy)
		if person.Field != "" {
			p.Pointer = "/" + person.Field
		}
		return p, p.Status == http.StatusInternalServerError
	case errors.As(err, &refused):
		p = refuse(refused.Code, "", refused.Detail, refused.Remedy)
		if refused.Field != "" {
			p.Pointer = "/" + refused.Field
		}
		p.retryAfter = refused.RetryAfter
		return p, p.Status == http.StatusInternalServerError
	case errors.As(err, new(*pair.NotLeader)), errors.As(err, new(*pair.NotFollowed)):
		errors.As(pairProblem(err), &p)
		return p, false
	case errors.Is(err, store.ErrSingleCopy):
		p = refuse(operator.CodeStore, "", err.Error(), "the change is active here; it is on both machines when the follower has caught up, which \"headgate status\" shows")
		return p, false
	case errors.Is(err, store.ErrUnknownOutcome):
		p = refuse(operator.CodeStore, "", "the commit was sent to the store, but its response was lost: "+err.Error(), "read the object again to see whether it was changed; requests are served as before")
		return p, false
	case errors.Is(err, store.ErrUnavailable), errors.Is(err, store.ErrClosed):
		p = refuse(operator.CodeStore, "", "nothing was changed: "+err.Error(), `look at the disk, at the log and at "headgate store status", and try again; requests are served as before`)
		p.retryAfter = storeRetry
		return p, false
	}
	return refuse("internal", "", "internal error; see the log", ""), true
}

// write sends the problem.
func (p *problem) write(w http.ResponseWriter) {
	h := w.Header()
	h.Set("Content-Type", "application/problem+json")
	if p.retryAfter > 0 {
		h.Set("Retry-After", strconv.Itoa(int((p.retryAfter+time.Second-1)/time.Second)))
	}
	if p.allow != "" {
		h.Set("Allow", p.allow)
	}
	if p.Status == http.StatusUnauthorized {
		h.Set("WWW-Authenticate", `Bearer realm="headgate"`)
	}
	h.Del("ETag")
	w.WriteHeader(p.Status)
	body, err := json.Marshal(p)
	if err != nil {
		return // plain texts
	}
	w.Write(append(body, '\n'))
}
