package api

import (
	"context"
	"errors"
	"net/http"
	"time"

	"headgate/internal/cluster"
	"headgate/internal/control"
	"headgate/internal/operator"
	"headgate/internal/store"
)

// nodeRows are the rows of the machines that share the store.
func (a *API) nodeRows() []row {
	const get, post = http.MethodGet, http.MethodPost
	return []row{
		{method: get, path: "/nodes", access: viewer, area: areaNodes, out: of[nodeBody](), list: true, query: paging("name"), handle: a.nodes,
			about: "Lists the nodes that share the store. Without a shared store, the list contains only this node."},
		{method: get, path: "/nodes/{name}", access: viewer, area: areaNodes, out: of[nodeBody](), may: []int{404}, handle: a.node,
			about: "Returns one node."},
		{method: post, path: "/nodes/{name}/drain", access: editor, area: areaNodes, in: of[nodeInput](), out: of[nodeBody](), may: []int{404}, dry: true, handle: withBody(a.drainNode),
			about: "Drains a node: its /readyz answers 503, and its open HTTP connections end with their next response. Its ports stay open. The drain lasts until undrain, including across restarts."},
		{method: post, path: "/nodes/{name}/undrain", access: editor, area: areaNodes, in: of[nodeInput](), out: of[nodeBody](), may: []int{404}, dry: true, handle: withBody(a.undrainNode),
			about: "Returns a drained node to service."},
		{method: get, path: "/store", access: viewer, area: areaNodes, out: of[storeBody](), handle: a.store,
			about: "Shows the state of the store: whether it is shared with other nodes, and how far this node follows it."},
		{method: get, path: "/store/check", access: admin, area: areaNodes, out: of[StoreCheck](), may: []int{409}, handle: a.checkStore,
			about: "Checks the database that the nodes share, over the connection of this node: its revision, its clock, and settings with which acknowledged changes can be lost."},
		{method: post, path: "/store/adopt", access: admin, area: areaNodes, in: of[nodeInput](), out: of[storeBody](), may: []int{409}, dry: true, handle: withBody(a.adoptStore),
			about: "Replaces this node's copy with the state of a shared store that was set back, for example by a restored backup. Newer changes in the copy are lost."},
		{method: post, path: "/store/push", access: admin, area: areaNodes, in: of[nodeInput](), out: of[storeBody](), may: []int{409}, dry: true, handle: withBody(a.pushStore),
			about: "Writes the copy of this node to a shared store that was set back, for example by a restored backup. What was committed there since is lost."},
		{method: post, path: "/store/migrate", access: admin, area: areaNodes, in: of[nodeInput](), out: of[StoreMigration](), may: []int{409}, dry: true, handle: withBody(a.migrateStore),
			about: "Brings the tables of the shared database to the newest version that this node's release knows. Refused while a node runs whose release could not use them afterwards."},
		{method: http.MethodDelete, path: "/nodes/{name}", access: admin, area: areaNodes, may: []int{404, 409}, dry: true, handle: a.removeNode,
			about: "Removes a node that no longer runs, so that other nodes do not wait for it."},
	}
}

// nodeInput is the body of drain and undrain.
type nodeInput struct {
	// Why is recorded in the audit log.
	Why string `json:"why,omitempty" max:"1024"`
}

// nodeBody is a node.
type nodeBody struct {
	// Name identifies the node.
	Name string `json:"name"`
	// Self is true for the node that answers.
	Self bool `json:"self"`
	// State is ready; not_ready, for the reason in reason; drained; stopped; or missing if
	// the node has not published anything for 90 seconds.
	State string `json:"state"`
	// Reason is why the node is not ready.
	Reason string `json:"reason,omitempty"`
	// Version is the version of headgate on the node.
	Version string `json:"version,omitempty"`
	// Revision is the configuration that the node serves.
	Revision int `json:"revision"`
	// LatestRevision is the newest configuration that a running node serves.
	LatestRevision int `json:"latest_revision"`
	// Addresses are those that the ports of the node listen on.
	Addresses []string `json:"addresses,omitempty"`
	// Seen is when the node published its state, at least every 30 seconds.
	Seen time.Time `json:"seen,omitzero"`
	// ClockOffset is how far the clock of the node is ahead of the store's, such as -1.5s.
	ClockOffset string `json:"clock_offset"`
	// Problems are what to look at on the node.
	Problems []string `json:"problems,omitempty"`
	// DrainedSince is when an operator drained the node.
	DrainedSince time.Time `json:"drained_since,omitzero"`
	// DrainedBy is the operator who drained it.
	DrainedBy string `json:"drained_by,omitempty"`
	// DrainedWhy is the reason that the operator gave.
	DrainedWhy string `json:"drained_why,omitempty"`
}

func showNode(n *control.NodeState) nodeBody {
	b := nodeBody{
		Name: n.Name, Self: n.Self, State: n.State, Version: n.Version, Revision: n.Applied, LatestRevision: n.Latest,
		Addresses: n.Addresses, Seen: n.Seen, ClockOffset: n.Offset.String(), Problems: n.Problems,
	}
	if n.State == control.NodeNotReady {
		b.Reason = n.NotReady
	}
	if d := n.Drained; d != nil {
		b.DrainedSince, b.DrainedBy, b.DrainedWhy = d.Since, d.Who, d.Why
	}
	return b
}

func (a *API) nodes(c *call) (any, error) {
	if a.Control == nil {
		return page{Items: []any{}}, nil
	}
	nodes, err := a.Control.Nodes(c.rq.Context())
	if err != nil {
		return nil, err
	}
	var all []listed
	for i := range nodes {
		all = append(all, listed{name: nodes[i].Name, value: showNode(&nodes[i])})
	}
	return c.list(all)
}

func (a *API) node(c *call) (any, error) { return a.nodeOf(c) }

// nodeOf returns the node that the path names.
func (a *API) nodeOf(c *call) (nodeBody, error) {
	if a.Control == nil {
		return nodeBody{}, errNoNode()
	}
	n, err := a.Control.Node(c.rq.Context(), c.name())
	if err != nil {
		return nodeBody{}, nodeError(err)
	}
	return showNode(&n), nil
}

func errNoNode() error {
	return refuse(operator.CodeNotFound, "", "there is no such node", "\"headgate node list\" lists them")
}

// nodeError returns the problem for an error of nodes.
func nodeError(err error) error {
	switch {
	case errors.Is(err, control.ErrNoNode):
		return errNoNode()
	case errors.Is(err, control.ErrNodeRunning):
		return refuse("in_use", "", "the node is running", "stop headgate on the node first")
	}
	return err
}

func (a *API) drainNode(c *call, in *nodeInput) (any, error) {
	return a.setDrain(c, "node.drain", in, &store.NodeDrain{Since: time.Now().UTC(), Who: c.who.Name, Why: in.Why})
}

func (a *API) undrainNode(c *call, in *nodeInput) (any, error) {
	return a.setDrain(c, "node.undrain", in, nil)
}

// setDrain changes whether the node that the path names is drained.
func (a *API) setDrain(c *call, action string, in *nodeInput, drain *store.NodeDrain) (any, error) {
	if _, err := a.nodeOf(c); err != nil || c.dryRun {
		return nodeBody{Name: c.name()}, err
	}
	record := c.who.Audit(action, "nodes/"+c.name(), in.Why, nil, nil)
	if err := a.Control.DrainNode(c.rq.Context(), c.name(), drain, record); err != nil {
		return nil, nodeError(err)
	}
	return a.nodeOf(c)
}

func (a *API) removeNode(c *call) (any, error) {
	if a.Control == nil {
		return nil, errNoNode()
	}
	if c.dryRun {
		return nil, nodeError(a.Control.TryRemoveNode(c.rq.Context(), c.name()))
	}
	record := c.who.Audit("node.remove", "nodes/"+c.name(), "", nil, nil)
	return nil, nodeError(a.Control.RemoveNode(c.rq.Context(), c.name(), record))
}

// storeBody is the state of the store.
type storeBody struct {
	// Shared reports whether several nodes use the store. The other fields are absent if not.
	Shared bool `json:"shared"`
	// Engine is the address of the store, without secrets.
	Engine string `json:"engine,omitempty"`
	// State is following; detached while the store cannot be reached: changes are refused; or
	// rewound if it was set back to an older state: adopt or push decides.
	State string `json:"state,omitempty"`
	// Since is when the state began.
	Since time.Time `json:"since,omitzero"`
	// Reason is why the store is not followed.
	Reason string `json:"reason,omitempty"`
	// Revision is how far the copy of this node has come.
	Revision int64 `json:"revision,omitempty"`
	// Head is the newest revision of the store that this node knows.
	Head int64 `json:"head,omitempty"`
	// Reconnects is how often this node has followed the store again.
	Reconnects uint64 `json:"reconnects,omitempty"`
}

func (a *API) store(*call) (any, error) { return a.storeNow(), nil }

func (a *API) storeNow() storeBody {
	if a.Control == nil {
		return storeBody{}
	}
	h, ok := a.Control.StoreHealth()
	if !ok {
		return storeBody{}
	}
	b := storeBody{Shared: true, Engine: h.Engine, State: string(h.State), Since: h.Since, Revision: int64(h.Revision), Head: int64(h.Head), Reconnects: h.Reconnects}
	if h.Why != nil {
		b.Reason = h.Why.Error()
	}
	return b
}

// StoreCheck is what a check of the shared database has found.
type StoreCheck struct {
	// Engine identifies the database, without its password.
	Engine string `json:"engine" required:"true"`
	// Server is the version of PostgreSQL.
	Server string `json:"server" required:"true"`
	// Primary is false for a replica, which accepts no changes.
	Primary bool `json:"primary" required:"true"`
	// Schema is the version of the tables in the database.
	Schema int `json:"schema" required:"true"`
	// Revision is the newest revision in the database.
	Revision int64 `json:"revision" required:"true"`
	// LatencyMS is how long a request took, in milliseconds.
	LatencyMS float64 `json:"latency_ms" required:"true"`
	// ClockOffset is how far the clock of the database is ahead of that of this node, such as -1.5s.
	ClockOffset string `json:"clock_offset" required:"true"`
	// Warnings are settings with which acknowledged changes can be lost or one node can block
	// changes on all nodes, and whether the tables can be migrated.
	Warnings []string `json:"warnings" required:"true"`
}

// storeCheckTimeout bounds a check of the shared database.
const storeCheckTimeout = 10 * time.Second

func (a *API) checkStore(c *call) (any, error) {
	if a.CheckStore == nil {
		return nil, refuse("not_shared", "", control.ErrNotShared.Error(), "GET /store shows the state of the store")
	}
	ctx, stop := context.WithTimeout(c.rq.Context(), storeCheckTimeout)
	defer stop()
	found, err := a.CheckStore(ctx)
	if err != nil {
		return nil, err
	}
	if found.Warnings == nil {
		found.Warnings = []string{}
	}
	return found, nil
}

// StoreMigration is the version of the tables of the shared database.
type StoreMigration struct {
	// From is the version before.
	From int `json:"from" required:"true"`
	// Version is the version afterwards. It equals From if there was nothing to do.
	Version int `json:"version" required:"true"`
	// ReadableFrom is the oldest version that a release has to know to use the database.
	ReadableFrom int `json:"readable_from" required:"true"`
}

// migrateStore migrates the shared database. The audit record follows: the tables are locked
// before.
func (a *API) migrateStore(c *call, in *nodeInput) (any, error) {
	if a.MigrateStore == nil {
		return nil, refuse("not_shared", "", control.ErrNotShared.Error(), "GET /store shows the state of the store")
	}
	m, err := a.MigrateStore(c.rq.Context(), c.dryRun)
	switch outdated := (*store.Outdated)(nil); {
	case errors.As(err, &outdated):
		return nil, refuse("node_outdated", "", outdated.Error(), "\"headgate node list\" shows the versions; a node that was removed without being stopped counts as running for 90 seconds")
	case err != nil:
		return nil, err
	}
	if !c.dryRun && m.Version != m.From {
		c.note("store.migrate", "store", in.Why)
	}
	return m, nil
}

func (a *API) adoptStore(c *call, in *nodeInput) (any, error) {
	return a.decideStore(c, "store.adopt", in, a.AdoptStore)
}

func (a *API) pushStore(c *call, in *nodeInput) (any, error) {
	return a.decideStore(c, "store.push", in, a.PushStore)
}

// decideStore decides whose state is right. The audit record follows: before, the store
// accepts none.
func (a *API) decideStore(c *call, action string, in *nodeInput, decide func(context.Context) error) (any, error) {
	if decide == nil {
		return nil, errNotRewound(control.ErrNotShared)
	}
	if c.dryRun {
		if b := a.storeNow(); b.State == string(cluster.Rewound) {
			return b, nil
		}
		return nil, errNotRewound(cluster.ErrNotRewound)
	}
	err := decide(c.rq.Context())
	switch {
	case errors.Is(err, control.ErrNotShared), errors.Is(err, cluster.ErrNotRewound):
		return nil, errNotRewound(err)
	case err != nil:
		return nil, err
	}
	c.note(action, "store", in.Why)
	return a.storeNow(), nil
}

func errNotRewound(err error) error {
	return refuse("not_rewound", "", err.Error(), "there is nothing to decide; \"headgate store status\" shows the state")
}
