package api

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/klauspost/compress/gzip"

	"headgate/internal/operator"
	"headgate/internal/query"
	"headgate/internal/store"
)

// A row with ofNode shows the state of one machine. With the parameter node, this machine queries
// the named machine, which runs the same row for the same operator. Both machines check that the
// operator may use it. Other machines can query only such rows, and only with GET.

// NodeQuestion is the name of the query to other machines that AnswerNode handles.
const NodeQuestion = "api.show"

// The limits of queries to other machines.
const (
	// nodeTimeout is the time that another machine has to respond.
	nodeTimeout = 3 * time.Second
	// maxNodeBody is the maximum size of a response in bytes, before compression.
	maxNodeBody = 8 << 20
	// maxTail is the maximum number of requests of another machine's log in one response.
	maxTail = 1000
	// tailEvery is the interval at which the log of another machine is read while it is followed.
	tailEvery = time.Second
)

// Peers queries other machines: see query.Peers.
type Peers interface {
	QueryNodes(ctx context.Context, nodes []string, name string, data []byte) map[string]query.Answer
}

// nodeParameter is the parameter of rows with ofNode.
var nodeParameter = parameter{name: "node", about: "The name of the machine whose state is returned; the default is the machine that receives the request. If the machine does not respond within 3 s, the status is 504."}

// nodeQuestion is a query for a row of another machine.
type nodeQuestion struct {
	// Path is the path of the row, and Query its parameters.
	Path  string `json:"path"`
	Query string `json:"query,omitempty"`
	// Who, Role and Scopes are the name, role and scopes of the operator.
	Who    string        `json:"who"`
	Role   operator.Role `json:"role"`
	Scopes []string      `json:"scopes,omitempty"`
	// From is the position at which a log that is followed continues; 0 is now.
	From int64 `json:"from,omitempty"`
}

// nodeReply is the response. Its first line is JSON, and the body follows.
type nodeReply struct {
	// Node is the name of the machine that responds.
	Node string `json:"node"`
	// Status is the status of the response; from 400 on, the body is a problem.
	Status int `json:"status"`
	// Until is the value of From for the next query of a log that is followed.
	Until int64 `json:"until,omitempty"`

	body []byte // JSON
}

// tailBody is the part of a log that was added since a position.
type tailBody struct {
	// Items are the newest requests, newest first.
	Items []requestBody `json:"items"`
	// Missed is the minimum number of requests that are left out.
	Missed uint64 `json:"missed,omitempty"`
}

// otherNode returns the machine that a request is about, "" if it is this one.
func (c *call) otherNode() string {
	name := c.text(nodeParameter.name)
	if !c.row.ofNode || c.api.Control != nil && name == c.api.Control.NodeName() {
		return ""
	}
	return name
}

// showNode returns what another machine shows for a request.
func (a *API) showNode(c *call, node string) (any, error) {
	reply, err := a.queryNode(c, node, 0)
	if err != nil {
		return nil, err
	}
	return json.RawMessage(reply.body), nil
}

// queryNode queries another machine for the row of a request. The error is a problem, of this or of
// the other machine.
func (a *API) queryNode(c *call, node string, from int64) (*nodeReply, error) {
	ctx, stop := context.WithTimeout(c.rq.Context(), nodeTimeout)
	defer stop()
	about, err := a.otherMachine(ctx, node)
	if err != nil {
		return nil, err
	}
	parameters := c.rq.URL.Query()
	parameters.Del(nodeParameter.name)
	data, err := json.Marshal(nodeQuestion{c.row.path, parameters.Encode(), c.who.Name, c.who.Role, c.who.Scopes, from})
	if err != nil {
		return nil, err
	}
	return a.replyOf(about, a.Peers.QueryNodes(ctx, []string{node}, NodeQuestion, data)[node])
}

// replyOf reads the response of a machine. The error is a problem.
func (a *API) replyOf(n *store.Node, answer query.Answer) (*nodeReply, error) {
	if answer.Err != nil {
		return nil, a.noAnswer(n, answer.Err)
	}
	reply, err := readReply(answer.Data)
	switch {
	case err != nil:
		return nil, refuse("unavailable", "", fmt.Sprintf("the response from machine %s cannot be read: %v", n.Name, err), "run the same version of headgate on all machines; \"headgate node list\" shows the versions")
	case reply.Node != n.Name:
		return nil, refuse("unavailable", "", fmt.Sprintf("machine %s responded instead of machine %s", clean(reply.Node), n.Name), "give each machine a different name with --node")
	case reply.Status >= http.StatusBadRequest:
		return nil, problemOfNode(reply)
	}
	return reply, nil
}

// problemOfNode returns the problem in the response of another machine.
func problemOfNode(reply *nodeReply) error {
	var p problem
	if err := json.Unmarshal(reply.body, &p); err != nil {
		return refuse("unavailable", "", fmt.Sprintf("machine %s responded with status %d", reply.Node, reply.Status), "check its log")
	}
	known := refuse(p.Code, p.Pointer, p.Detail, p.Remedy)
	known.Parameter = p.Parameter
	return known
}

// otherMachine returns the published state of a machine that can be queried.
func (a *API) otherMachine(ctx context.Context, name string) (*store.Node, error) {
	var all []store.Node
	own := ""
	if a.Control != nil {
		var err error
		if all, err = store.Nodes(ctx, a.Control.Store()); err != nil {
			return nil, err
		}
		own = a.Control.NodeName()
	}
	names := []string{own}
	for i := range all {
		if n := &all[i]; n.Name != name {
			names = append(names, n.Name)
		} else if a.Peers != nil {
			if n.Stopped {
				return nil, nodeStopped(n)
			}
			return n, nil
		}
	}
	slices.Sort(names)
	return nil, refuseParameter(operator.CodeNotFound, nodeParameter.name, fmt.Sprintf("there is no machine %s; the machines are %s", clean(name), strings.Join(slices.Compact(names), ", ")), "use one of these names")
}

// noAnswer returns the problem for a machine that has not responded.
func (a *API) noAnswer(n *store.Node, err error) error {
	switch {
	case errors.Is(err, query.ErrNoAnswer):
		return nodeAway(n, fmt.Sprintf("it did not respond within %v", nodeTimeout))
	case errors.Is(err, query.ErrBusy):
		return refuse(operator.CodeOverloaded, "", fmt.Sprintf("machine %s was not queried: %v", n.Name, err), "close some of the pages that show other machines")
	case errors.Is(err, query.ErrUnknown):
		return refuse("unavailable", "", fmt.Sprintf("machine %s cannot show its state here: it runs headgate %s", n.Name, n.Version), "upgrade headgate there, or open the console of that machine")
	}
	return refuse("unavailable", "", fmt.Sprintf("machine %s was not queried: %v", n.Name, err), "open the console of that machine; \"headgate store status\" shows whether this machine reaches the store")
}

// nodeAway returns the problem for a machine that does not respond.
func nodeAway(n *store.Node, why string) error {
	return refuse("node_away", "", fmt.Sprintf("machine %s does not respond: %s; it last published its state at %s", n.Name, why, n.Seen.UTC().Format(time.RFC3339)),
		"check that headgate is running there and reaches the store; \"headgate node list\" shows the state of all machines")
}

// nodeStopped returns the problem for a machine on which headgate was stopped. It is not queried.
func nodeStopped(n *store.Node) error { return nodeAway(n, "headgate was stopped there") }

// AnswerNode handles a query of another machine: it runs a row for an operator whom that
// machine has authenticated. The result is at most query.MaxData bytes.
func (a *API) AnswerNode(ctx context.Context, from string, data []byte) ([]byte, error) {
	var q nodeQuestion
	if err := json.Unmarshal(data, &q); err != nil {
		return nil, fmt.Errorf("the query cannot be read: %v", err)
	}
	out, err := a.answerRow(ctx, &q)
	if err == nil {
		return out, nil
	}
	p, internal := problemOf(err)
	if internal {
		a.Log.Error("a request from another machine to the API failed", "node", from, "path", clean(q.Path), "error", err)
	}
	body, err := json.Marshal(p)
	if err != nil {
		return nil, err
	}
	return a.pack(&nodeReply{Status: p.Status, body: body})
}

// answerRow runs the row that another machine requests.
func (a *API) answerRow(ctx context.Context, q *nodeQuestion) (out []byte, err error) {
	defer func() {
		if v := recover(); v != nil {
			a.Log.Error("panic in a request from another machine to the API", "path", clean(q.Path), "panic", fmt.Sprint(v), "stack", string(debug.Stack()))
			out, err = nil, refuse("internal", "", "internal error; see the log of the machine", "")
		}
	}()
	i := slices.IndexFunc(a.rows, func(r *row) bool { return r.ofNode && r.method == http.MethodGet && r.path == q.Path })
	if i < 0 {
		return nil, refuse(operator.CodeNotFound, "", "other machines cannot request "+clean(q.Path), "")
	}
	rq := (&http.Request{Method: http.MethodGet, URL: &url.URL{Path: Prefix + q.Path, RawQuery: q.Query}, Header: http.Header{}}).WithContext(ctx)
	c := &call{api: a, row: a.rows[i], rq: rq, who: operator.Identity{Name: q.Who, Role: q.Role, Scopes: q.Scopes, Via: "node"}}
	if err := c.allowed(); err != nil {
		return nil, err
	}
	if err := c.checkQuery(); err != nil {
		return nil, err
	}
	if c.text(nodeParameter.name) != "" {
		return nil, refuseParameter("invalid", nodeParameter.name, "a machine shows only its own state to other machines", "")
	}
	if c.row.stream != nil {
		return a.answerTail(c, q.From)
	}
	for {
		v, err := c.row.handle(c)
		if err != nil {
			return nil, err
		}
		out, err := a.packJSON(&nodeReply{Status: http.StatusOK}, v)
		if !errors.Is(err, store.ErrTooLarge) {
			return out, err
		}
		if !c.fewer() {
			return nil, refuse("unavailable", "", "the response is too large to be sent to another machine", "request less: name a proxy, or leave out the proxies with proxies=false")
		}
	}
}

// fewer halves the number of requested entries. The cursor of the response then continues with the
// entries that are left out. It returns false if there is nothing to halve.
func (c *call) fewer() bool {
	limit := c.number("limit", defaultPage, maxPage) / 2
	if !c.row.list || limit < 1 {
		return false
	}
	parameters := c.rq.URL.Query()
	parameters.Set("limit", strconv.Itoa(limit))
	c.rq.URL.RawQuery = parameters.Encode()
	return true
}

// answerTail returns the requests that ended since a position. The oldest are left out if there
// are too many.
func (a *API) answerTail(c *call, from int64) ([]byte, error) {
	b, until, err := a.logTail(c, from)
	if err != nil {
		return nil, err
	}
	for {
		out, err := a.packJSON(&nodeReply{Status: http.StatusOK, Until: until}, b)
		if !errors.Is(err, store.ErrTooLarge) || len(b.Items) == 0 {
			return out, err
		}
		keep := len(b.Items) / 2
		b.Missed += uint64(len(b.Items) - keep)
		b.Items = b.Items[:keep]
	}
}

func (a *API) packJSON(r *nodeReply, v any) (out []byte, err error) {
	if r.body, err = json.Marshal(v); err != nil {
		return nil, err
	}
	return a.pack(r)
}

// pack encodes a response as a line of JSON and the compressed body. The error wraps
// store.ErrTooLarge.
func (a *API) pack(r *nodeReply) ([]byte, error) {
	if a.Control != nil {
		r.Node = a.Control.NodeName()
	}
	var b bytes.Buffer
	if err := json.NewEncoder(&b).Encode(r); err != nil {
		return nil, err
	}
	z := gzip.NewWriter(&b)
	_, err := z.Write(r.body)
	if err := errors.Join(err, z.Close()); err != nil {
		return nil, err
	}
	if len(r.body) > maxNodeBody || b.Len() > query.MaxData {
		return nil, fmt.Errorf("%d bytes, %d compressed: %w", len(r.body), b.Len(), store.ErrTooLarge)
	}
	return b.Bytes(), nil
}

// readReply decodes a response of pack.
func readReply(data []byte) (*nodeReply, error) {
	line, packed, _ := bytes.Cut(data, []byte{'\n'})
	r := &nodeReply{}
	if err := json.Unmarshal(line, r); err != nil {
		return nil, err
	}
	z, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return nil, err
	}
	if r.body, err = io.ReadAll(io.LimitReader(z, maxNodeBody+1)); err != nil {
		return nil, err
	}
	if len(r.body) > maxNodeBody || !json.Valid(r.body) {
		return nil, errors.New("the body is too large, or is not JSON")
	}
	return r, nil
}
