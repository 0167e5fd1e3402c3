package api

import (
	"bytes"
	"encoding/json"
	"net/http"
	"strings"
	"time"

	"headgate/internal/config"
	"headgate/internal/control"
	"headgate/internal/control/review"
	"headgate/internal/metrics"
	"headgate/internal/operator"
	"headgate/internal/plan"
)

// objectState is the state of an object, which responses have in addition to its settings.
type objectState struct {
	// Name is the object's name.
	Name string `json:"name" required:"true" max:"128"`
	// Origin is where the object is defined: file and line, or container. It is absent for
	// an object with its defaults that no file defines.
	Origin *config.Origin `json:"origin,omitempty" readonly:"true"`
	// State is the current state: active, degraded, down, maintenance or inactive for a
	// proxy; active, degraded, failing_open, down, inactive or elsewhere (only on other
	// nodes) for a TCP or UDP proxy; the
	// state in /status for a port or certificate; otherwise active or inactive.
	State string `json:"state" readonly:"true"`
	// ETag is the entity tag for If-Match.
	ETag string `json:"etag" readonly:"true"`
	// ReadOnly is why the object cannot be changed here: its document cannot be written, or
	// a provider has discovered it. It is absent if it can.
	ReadOnly string `json:"read_only,omitempty" readonly:"true"`
	// LastChange is when the object was created or changed last, according to the kept
	// revisions.
	LastChange *lastChange `json:"last_change,omitempty" readonly:"true"`
	// Plan describes the change, with warnings and what it affects, in the response to a
	// change or a dry run.
	Plan *review.Review `json:"plan,omitempty" readonly:"true"`
}

// lastChange is when an object was changed.
type lastChange struct {
	// When is the moment.
	When time.Time `json:"when"`
	// Who did it; absent when it is not known, as of a file that was edited.
	Who string `json:"who,omitempty"`
	// Via is how it came: api, console, file, cli, docker, http or agent.
	Via string `json:"via"`
	// Revision is the number of the revision.
	Revision int `json:"revision"`
}

// proxyState is the additional state of a proxy.
type proxyState struct {
	objectState
	// Servers counts the servers of the proxy. A server of two routes counts twice.
	Servers serverCount `json:"servers" readonly:"true"`
	// Issues are what is wrong with it now.
	Issues []string `json:"issues,omitempty" readonly:"true"`
	// Recent counts the requests of the last five minutes.
	Recent traffic `json:"recent" readonly:"true"`
}

// streamState is the state of a TCP or UDP proxy.
type streamState struct {
	objectState
	// Health counts the servers of the proxy. It is absent for an inactive one.
	Health *serverCount `json:"health,omitempty" readonly:"true"`
	// Issues are what is wrong with it now.
	Issues []string `json:"issues,omitempty" readonly:"true"`
}

// traffic counts requests of the last minutes.
type traffic struct {
	// Requests are those that ended.
	Requests int64 `json:"requests"`
	// ClientErrors are those with a status 4xx.
	ClientErrors int64 `json:"errors_4xx"`
	// ServerErrors are those with a status 5xx.
	ServerErrors int64 `json:"errors_5xx"`
}

func showTraffic(p metrics.Point) traffic {
	return traffic{bounded(p.Requests), bounded(p.ClientErrors), bounded(p.ServerErrors)}
}

// serverCount counts servers.
type serverCount struct {
	// Healthy are those that are known to be well.
	Healthy int `json:"healthy" required:"true"`
	// Unknown are those of which nothing is known yet.
	Unknown int `json:"unknown" required:"true"`
	// Total is all of them.
	Total int `json:"total" required:"true"`
}

// documentRows are the rows of one kind of object.
func (a *API) documentRows(k *config.Kind) []row {
	const get, post, put, patch, del = http.MethodGet, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete
	path, it := "/"+k.Path(), k.Noun
	with := func(method, path string, access access, about string, r row) row {
		r.method, r.path, r.access, r.area, r.about, r.kind = method, path, access, areaConfig, about, k
		r.gives = method != del
		if r.write {
			r.query = append(r.query, changeQuery...)
			r.dry = true
		}
		return r
	}
	if k.Single {
		editor := editor
		if k.Name == adminKind {
			editor = admin // who could change them could become one
		}
		return []row{
			with(get, path, viewer, "Returns the "+it+".", row{handle: a.object}),
			with(put, path, editor, "Replaces the "+it+".", row{match: true, write: true, tree: true, handle: a.putObject}),
			with(patch, path, editor, "Updates the fields of the "+it+" that are in the body (RFC 7396).", row{match: true, write: true, tree: true, merge: true, handle: a.putObject}),
			with(del, path, editor, "Resets the "+it+" to the defaults.", row{match: true, write: true, handle: a.deleteObject}),
		}
	}
	one := path + "/{name}"
	article := "a "
	if strings.ContainsAny(it[:1], "Aaeio") {
		article = "an "
	}
	return []row{
		with(get, path, viewer, "Lists the objects of the kind "+k.Name+". The ETag is that of the configuration.", row{list: true, query: paging(ordersOf(k)...), handle: a.objects}),
		with(post, path, editor, "Creates "+article+it+". If-Match is the ETag of the configuration.", row{match: true, write: true, tree: true, status: http.StatusCreated, handle: a.createObject}),
		with(get, one, viewer, "Returns one "+it+".", row{handle: a.object}),
		with(put, one, editor, "Replaces "+article+it+". If-Match is its ETag, or that of the configuration.", row{match: true, write: true, tree: true, handle: a.putObject}),
		with(patch, one, editor, "Updates the fields of "+article+it+" that are in the body (RFC 7396).", row{match: true, write: true, tree: true, merge: true, handle: a.putObject}),
		with(del, one, editor, "Deletes "+article+it+" that no other object refers to.", row{match: true, write: true, handle: a.deleteObject}),
		with(post, one+"/rename", editor, "Renames "+article+it+" and updates all references to it.", row{in: of[renameInput](), match: true, write: true, handle: withBody(a.renameObject)}),
	}
}

// running returns the active configuration. There is none before the first change.
func (a *API) running() (*config.Config, error) {
	if a.Control == nil || a.Control.Plan() == nil {
		return nil, refuse("unavailable", "", "no configuration is active yet", "check the status")
	}
	return a.Control.Plan().Config(), nil
}

// states are the states of objects, by name.
type states struct {
	words   map[string]string
	proxies map[string]proxyState
	streams map[string]streamState
	written map[string]string // why documents cannot be written, by name; "" if they can
	plan    *review.Review    // the change that the object is part of
}

// statesOf returns the states of objects of a kind.
func (a *API) statesOf(k *config.Kind, names []string) states {
	s := states{words: map[string]string{}, written: map[string]string{}}
	switch k.Name {
	case "proxies":
		s.proxies = map[string]proxyState{}
		issues := a.Control.Issues(k.Name)
		for _, p := range a.Control.Plan().ProxiesNamed(names) {
			now := proxyState{Servers: serverCount{p.Healthy, p.Unknown, p.Total}, Recent: showTraffic(a.recently(p.Name))}
			if p.Reason != "" {
				now.Issues = []string{p.Reason}
			}
			now.Issues = append(now.Issues, issues[p.Name]...)
			s.words[p.Name], s.proxies[p.Name] = p.State, now
		}
	case "tcp_proxies", "udp_proxies":
		s.streams = map[string]streamState{}
		issues := a.Control.Issues(k.Name)
		list, udp := a.Control.StreamStates()
		if k.Name == "udp_proxies" {
			list = udp
		}
		for _, p := range list {
			now := streamState{Health: &serverCount{p.Healthy, p.Unknown, len(p.Servers)}}
			if p.Reason != "" {
				now.Issues = []string{p.Reason}
			}
			now.Issues = append(now.Issues, issues[p.Name]...)
			s.words[k.Name+" "+p.Name], s.streams[p.Name] = p.State, now
		}
	case "ports", "certificates":
		now := a.Control.StatusOf(control.NoProxy)
		for _, p := range now.Ports {
			if s.words["ports "+p.Name] == "" || p.State != "draining" {
				s.words["ports "+p.Name] = p.State
			}
		}
		for _, c := range now.Certificates {
			if c.Source == control.CertificateConfigured {
				s.words["certificates "+c.Name] = string(c.State)
			}
		}
	}
	return s
}

func (s *states) word(cfg *config.Config, k *config.Kind, name string, o config.Named) string {
	if word := s.words[k.Name+" "+name]; word != "" {
		return word
	}
	if word := s.words[name]; word != "" {
		return word
	}
	switch o := o.(type) {
	case *config.TCPProxy:
		return streamWord(o.Active, cfg.Here(o.Nodes))
	case *config.UDPProxy:
		return streamWord(o.Active, cfg.Here(o.Nodes))
	}
	return "active"
}

// streamWord returns the state of a TCP or UDP proxy that is not in the plan.
func streamWord(active, here bool) string {
	switch {
	case !active:
		return plan.ProxyInactive
	case !here:
		return plan.ProxyElsewhere
	}
	return plan.ProxyActive
}

// objectText is an object in a response: its settings and its state.
type objectText struct {
	text []byte
	etag string
}

// MarshalJSON returns the object.
func (s objectText) MarshalJSON() ([]byte, error) { return s.text, nil }

func (s objectText) entityTag() string { return s.etag }

// show writes an object. It has to be there.
func (a *API) show(cfg *config.Config, k *config.Kind, name string, s *states) (objectText, error) {
	form, ok := a.formOf(cfg, k, name)
	if !ok {
		return objectText{}, noObject(k)
	}
	state := proxyState{objectState: objectState{Name: name, ETag: form.etag}}
	if k.Single {
		state.Name = k.Name
	}
	state.Plan = s.plan
	state.State = s.word(cfg, k, name, k.Find(cfg, name))
	if o, ok := cfg.Origin(k.Name, name); ok {
		state.Origin, state.ReadOnly = &o, a.readOnly(k, o, s)
	}
	if l := a.Control.LastChange(k.Name, name); l.Revision > 0 {
		state.LastChange = &lastChange{l.When, l.Who, l.Via, l.Revision}
	}
	var v any = state.objectState
	if now, ok := s.proxies[name]; ok {
		state.Servers, state.Issues, state.Recent = now.Servers, now.Issues, now.Recent
		v = state
	}
	if now, ok := s.streams[name]; ok {
		now.objectState = state.objectState
		v = now
	}
	data, err := json.Marshal(v)
	if err != nil {
		return objectText{}, err
	}
	if inner := bytes.TrimSuffix(bytes.TrimPrefix(form.text, []byte("{")), []byte("}")); len(inner) > 0 {
		data = append(append(append(data[:len(data)-1], ','), inner...), '}')
	}
	return objectText{data, state.ETag}, nil
}

// readOnly returns why an object with an origin cannot be changed here, "" if it can.
func (a *API) readOnly(k *config.Kind, o config.Origin, s *states) string {
	if o.Via != config.ViaDocument {
		return fromElsewhere(k, o)
	}
	why, known := s.written[o.Document]
	if !known {
		if err := a.Control.Writable(o.Document); err != nil {
			why = err.Error()
		}
		s.written[o.Document] = why
	}
	return why
}

func fromElsewhere(k *config.Kind, o config.Origin) string {
	return "the " + k.Noun + " comes from " + o.String()
}

func noObject(k *config.Kind) error {
	return refuse(operator.CodeNotFound, "", "there is no such "+k.Noun, "")
}

// object gives one object.
func (a *API) object(c *call) (any, error) {
	cfg, err := a.running()
	if err != nil {
		return nil, err
	}
	return a.showOne(cfg, c.row.kind, c.name())
}

// showChanged returns an object as it is after a change, or would be, with a description of
// the change.
func (a *API) showChanged(ev *control.Event, k *config.Kind, name string) (any, error) {
	s := a.statesOf(k, []string{name})
	s.plan = ev.Review
	o, err := a.show(ev.After, k, name, &s)
	if err != nil {
		return nil, err
	}
	return o, nil
}

func (a *API) showOne(cfg *config.Config, k *config.Kind, name string) (any, error) {
	s := a.statesOf(k, []string{name})
	o, err := a.show(cfg, k, name, &s)
	if err != nil {
		return nil, err
	}
	return o, nil
}

// objects lists the objects of a kind. Only those of the page are written.
func (a *API) objects(c *call) (any, error) {
	cfg, err := a.running()
	if err != nil {
		return nil, err
	}
	k := c.row.kind
	names, next, err := a.chosen(c, cfg)
	if err != nil {
		return nil, err
	}
	s := a.statesOf(k, names)
	items := make([]any, 0, len(names))
	for _, name := range names {
		o, err := a.show(cfg, k, name, &s)
		if err != nil {
			return nil, err
		}
		items = append(items, o)
	}
	if tag := a.Control.ETag(); tag != "" {
		c.w.Header().Set("ETag", tag)
	}
	return page{Items: items, Next: next}, nil
}

// cause returns who makes a change and why, for revisions, events and the audit log.
func (c *call) cause() control.Cause {
	return control.Cause{Who: c.who.Name, Why: c.text("why"), From: c.who.Address, Via: control.Via(c.who.Via)}
}
