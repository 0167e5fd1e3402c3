package api

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"syscall"
	"time"

	"headgate/internal/config"
	"headgate/internal/config/diff"
	"headgate/internal/config/document"
	"headgate/internal/control"
	"headgate/internal/operator"
	"headgate/internal/schema"
	"headgate/internal/store"
	"headgate/internal/store/history"
)

// changeQuery are the parameters of everything that changes the documents.
var changeQuery = []parameter{
	{name: "confirm_within", about: "The time within which the change must be confirmed, such as 2m: 10s to 1h. Otherwise the change is reverted."},
	{name: "why", about: "The reason for the change. It is recorded in revisions, events and the audit log."},
}

// documentTag reads the If-Match of a change of the documents.
func (c *call) documentTag(text string) error {
	inner, ok := strings.CutPrefix(text, `"`)
	inner, end := strings.CutSuffix(inner, `"`)
	if !ok || !end || inner == "" || strings.ContainsAny(inner, `",`) {
		return refuse(operator.CodeStale, "", "the ETag in If-Match is none of this object", "read the object again")
	}
	c.ifMatch = text
	return nil
}

// edit is a change of the documents on its way through the API.
type edit struct {
	call *call
	// kind and name are the changed object; nil means the whole configuration.
	kind *config.Kind
	name string
	// make returns the documents with the change in them.
	make func(docs config.Documents, now *config.Config) (config.Documents, error)
	// action and object are recorded in the audit log; "" is config.change of the changed
	// object.
	action string
	why    string // "" is that of the query
	// planned means that the change is only described, even if the files are read-only.
	planned bool
	// cutover is kept in the revision; nil for a change that is none.
	cutover *history.Cutover
}

// matches checks If-Match against the current object or configuration.
func (e *edit) matches(docs config.Documents, now *config.Config) error {
	have, tag := e.call.ifMatch, ""
	one := e.kind != nil && (e.name != "" || e.kind.Single)
	if one {
		tag = now.ETag(e.kind.Name, e.name)
	}
	switch {
	case have == "*", tag != "" && have == tag:
		return nil
	case have == control.ETag(docs): // for which all documents are hashed
		return nil
	case one && tag == "":
		return noObject(e.kind)
	}
	return e.call.api.staleProblem(e, docs, now)
}

// staleProblem returns the error for a stale If-Match, with the current object, or what was
// changed since the configuration that the client has seen.
func (a *API) staleProblem(e *edit, docs config.Documents, now *config.Config) error {
	p := refuse(operator.CodeStale, "", "it was changed since you read it", "read it again and repeat the change")
	if e.kind != nil && (e.name != "" || e.kind.Single) {
		if o, err := a.showOne(now, e.kind, e.name); err == nil {
			p.Current = jsonOf(o)
		}
		return p
	}
	p.Current = jsonOf(map[string]string{"etag": control.ETag(docs)})
	if since, ok := a.configurationOf(e.call.ifMatch); ok {
		p.Current = jsonOf(changedSince{control.ETag(docs), diff.Compare(since, now)})
	}
	return p
}

// changedSince is what a client has missed.
type changedSince struct {
	ETag       string           `json:"etag"`
	Difference *diff.Difference `json:"difference"`
}

// maxLookedAt limits how many revisions are searched for an entity tag.
const maxLookedAt = 100

// configurationOf returns the configuration of the kept revision with an entity tag.
func (a *API) configurationOf(tag string) (*config.Config, bool) {
	for _, r := range a.Control.Revisions(0, maxLookedAt) {
		if control.ETagOf(r) != tag {
			continue
		}
		_, docs, err := a.Control.Revision(r.Number)
		if err != nil {
			return nil, false
		}
		cfg, _, problems := config.LoadDocuments(docs, nil)
		return cfg, len(problems) == 0
	}
	return nil, false
}

// do makes the change, or does all but that in a dry run.
func (e *edit) do() (control.Event, error) {
	c := e.call
	if c.api.Control == nil {
		return control.Event{}, refuse("unavailable", "", "no configuration is active yet", "")
	}
	if err := e.discovered(); err != nil {
		return control.Event{}, err
	}
	within, err := c.within()
	if err != nil {
		return control.Event{}, err
	}
	cause := c.cause()
	cause.Why = cmp.Or(cause.Why, e.why)
	ev, err := c.api.Control.Change(control.Edit{
		Cause: cause, DryRun: c.dryRun, OnPaper: e.planned, ConfirmWithin: within, Cutover: e.cutover,
		Do: func(docs config.Documents, now *config.Config) (config.Documents, error) {
			if err := e.matches(docs, now); err != nil {
				return docs, err
			}
			return e.make(docs, now)
		},
		Check:   e.mayBeHost,
		Records: e.audit,
	})
	if err != nil {
		return ev, e.refusal(err)
	}
	return ev, ev.Late
}

// within reads confirm_within.
func (c *call) within() (time.Duration, error) {
	text := c.text("confirm_within")
	if text == "" {
		return 0, nil
	}
	d, err := time.ParseDuration(text)
	if err != nil || d < control.MinConfirm || d > control.MaxConfirm {
		return 0, refuseParameter("invalid", "confirm_within", control.ErrWithin.Error(), "write it as 2m")
	}
	return d, nil
}

// mayBeHost refuses values that reach for something of the machine, unless an admin sets
// them. They are refused before anything of them is opened.
func (e *edit) mayBeHost(now, after *config.Config) error {
	if err := e.call.grantsNothing(now, after, e.path()); err != nil {
		return err
	}
	isAdmin := e.call.who.Role.AtLeast(operator.Admin)
	if !isAdmin {
		if err := e.withinRights(now, after); err != nil {
			return err
		}
	}
	for _, v := range diff.NewHostValues(now, after) {
		if v.Disk {
			return refuse("host_field", pointerOf(v.Path, e.path()), "the field can be set on the machine only", "edit the document there")
		}
		if !isAdmin {
			return hostField(pointerOf(v.Path, e.path()))
		}
	}
	return nil
}

func hostField(at string) error {
	return refuse("host_field", at, "files, sockets and variables of the machine may be set by an admin only", "ask an admin, or edit the document")
}

// mayWrite rejects new values with ${…} unless the operator is an admin, before variables
// are substituted for them.
func (e *edit) mayWrite(v any, now *config.Config) error {
	if e.call.who.Role.AtLeast(operator.Admin) {
		return nil
	}
	for _, text := range variables(v) {
		if !now.Writes(text) {
			return hostField("")
		}
	}
	return nil
}

// path is the path of the object in the documents, "" without one.
func (e *edit) path() string {
	switch {
	case e.kind == nil:
		return ""
	case e.kind.Single:
		return e.kind.Name
	}
	return schema.JoinPath(e.kind.Name, e.name)
}

// audit returns the record of the change: what changed, before and after.
func (e *edit) audit(now, after *config.Config) []store.Record {
	d := diff.Compare(now, after)
	before, then := map[string]json.RawMessage{}, map[string]json.RawMessage{}
	var names []string
	for i, o := range d.Objects {
		path := config.KindOf(o.Kind).Path()
		if o.Name != "" {
			path += "/" + o.Name
		}
		if i < maxNamed {
			names = append(names, path)
			if form, ok := now.Canonical(o.Kind, o.Name, true); ok {
				before[path] = form
			}
			if form, ok := after.Canonical(o.Kind, o.Name, true); ok {
				then[path] = form
			}
		}
	}
	if more := len(d.Objects) - maxNamed; more > 0 {
		names = append(names, fmt.Sprintf("and %d more", more))
	}
	action := e.action
	if action == "" {
		action = "config.change"
	}
	return []store.Record{e.call.who.Audit(action, strings.Join(names, " "), cmp.Or(e.call.text("why"), e.why), before, then)}
}

// maxNamed is how many objects a record of the audit shows.
const maxNamed = 20

// refusal returns the response for a rejected change.
func (e *edit) refusal(err error) error {
	var p *problem
	if errors.As(err, &p) {
		return p
	}
	if pending := (*control.ConfirmPending)(nil); errors.As(err, &pending) {
		return refuse("confirm_pending", "", pending.Error(), "")
	}
	if readOnly := (*history.ReadOnly)(nil); errors.As(err, &readOnly) {
		return refuse("read_only", "", readOnly.Error(), "edit the document where it comes from, or let headgate write it")
	}
	if stale := (*control.Stale)(nil); errors.As(err, &stale) {
		p := refuse(operator.CodeStale, "", "the configuration file was edited at the same time", "read it again and repeat the change")
		p.Current = jsonOf(map[string]string{"etag": stale.Have})
		return p
	}
	if errors.Is(err, store.ErrUnavailable) || errors.Is(err, store.ErrClosed) || errors.Is(err, store.ErrUnknownOutcome) {
		return err
	}
	if errors.Is(err, control.ErrUpgrading) {
		return upgrading() // it has begun after the request was accepted
	}
	if errors.Is(err, control.ErrStopping) {
		return refuse("unavailable", "", err.Error(), "")
	}
	refused := (*control.Refused)(nil)
	if !errors.As(err, &refused) {
		return err
	}
	if len(refused.Problems) > 0 {
		return problems(refused.Problems, e.path())
	}
	if errors.Is(err, syscall.EADDRINUSE) {
		return refuse("address_in_use", "", refused.Error(), "nothing was changed; stop the other process, or choose another address")
	}
	return refuse("not_applied", "", refused.Error(), "nothing was changed; see the log")
}

// problems returns the response for problems of a configuration. Object is the path of the
// object in the request's body.
func problems(all []config.Problem, object string) *problem {
	list := make([]mistake, 0, min(len(all), maxMistakes))
	for _, p := range all[:min(len(all), maxMistakes)] {
		what := p.What
		if object == "" && p.File != "" && p.Line > 0 {
			what = fmt.Sprintf("%s:%d: %s", p.File, p.Line, p.What)
		}
		list = append(list, mistake{"invalid", pointerOf(p.Field, object), what, p.Remedy})
	}
	first := list[0]
	out := refuse("invalid", first.Pointer, first.Detail, first.Remedy)
	if len(list) > 1 {
		out.Problems = list
	}
	return out
}

// apply makes document edits. Object is the path of the object that the body is.
func apply(docs config.Documents, object string, edits ...document.Edit) (config.Documents, error) {
	out, p := docs.Edit(edits...)
	if p != nil {
		what := p.What
		if p.File != "" && p.Line > 0 {
			what = fmt.Sprintf("%s:%d: %s", p.File, p.Line, p.What) // another object: point the operator to its line in the file
		}
		return docs, refuse("invalid", pointerOf(p.Field, object), what, p.Remedy)
	}
	return out, nil
}

// createObject makes an object.
func (a *API) createObject(c *call) (any, error) {
	k, name := c.row.kind, c.newName
	e := &edit{call: c, kind: k, name: ""}
	e.make = func(docs config.Documents, now *config.Config) (config.Documents, error) {
		if k.Find(now, name) != nil {
			return docs, refuse(operator.CodeExists, "/name", "there is a "+k.Noun+" with this name already", "take another name, or PUT it")
		}
		e.name = name // from here on, problems refer to fields of the object
		if err := unmask(c.tree, nil, k.Schema(), ""); err != nil {
			return docs, err
		}
		if err := e.mayWrite(c.tree, now); err != nil {
			return docs, err
		}
		return apply(docs, e.path(), document.Edit{Op: document.Set, Path: e.path(), Value: jsonOf(c.tree)})
	}
	ev, err := e.do()
	if err != nil {
		return nil, err
	}
	c.w.Header().Set("Location", Prefix+"/"+k.Path()+"/"+name)
	return a.showChanged(&ev, k, name)
}

// putObject replaces an object, or merges a patch with it.
func (a *API) putObject(c *call) (any, error) {
	k, name := c.row.kind, c.name()
	e := &edit{call: c, kind: k, name: name}
	e.make = func(docs config.Documents, now *config.Config) (config.Documents, error) {
		was := treeOf(now, k, name)
		if was == nil {
			return docs, noObject(k)
		}
		tree := c.tree
		if c.row.merge {
			tree = mergePatch(treeOf(now, k, name), c.tree).(map[string]any)
		}
		if err := unmask(tree, was, k.Schema(), ""); err != nil {
			return docs, err
		}
		if err := e.mayWrite(tree, now); err != nil {
			return docs, err
		}
		return replace(docs, e.path(), was, tree)
	}
	ev, err := e.do()
	if err != nil {
		return nil, err
	}
	return a.showChanged(&ev, k, name)
}

// deleteObject removes an object that no other object uses. Settings return to their
// defaults.
func (a *API) deleteObject(c *call) (any, error) {
	k, name := c.row.kind, c.name()
	e := &edit{call: c, kind: k, name: name}
	e.make = func(docs config.Documents, now *config.Config) (config.Documents, error) {
		if _, there := now.Origin(k.Name, name); k.Single && !there {
			return docs, nil // they are the defaults
		}
		if !k.Single && k.Find(now, name) == nil {
			return docs, noObject(k)
		}
		if users := now.Users(k.Name, name); len(users) > 0 {
			return docs, inUse(k, users)
		}
		return apply(docs, e.path(), document.Edit{Op: document.Remove, Path: e.path()})
	}
	_, err := e.do()
	return nil, err
}

// inUse returns the error for an object that others use, with their names.
func inUse(k *config.Kind, users []config.Reference) error {
	var words []string
	for _, u := range users[:min(len(users), maxNamed)] {
		if word := config.KindOf(u.Kind).Noun + " " + u.Name; !slices.Contains(words, word) {
			words = append(words, word)
		}
	}
	p := refuse("in_use", "", "the "+k.Noun+" is used by "+strings.Join(words, ", "), "remove it there first")
	p.Current = jsonOf(map[string]any{"users": users[:min(len(users), maxMistakes)]})
	return p
}

// renameInput is the new name of an object.
type renameInput struct {
	// Name is the new name.
	Name string `json:"name" required:"true" max:"128"`
}

// renameObject gives an object another name, wherever it is named.
func (a *API) renameObject(c *call, in *renameInput) (any, error) {
	k, name := c.row.kind, c.name()
	e := &edit{call: c, kind: k, name: name, action: "config.rename"}
	e.make = func(docs config.Documents, now *config.Config) (config.Documents, error) {
		switch {
		case k.Find(now, name) == nil:
			return docs, noObject(k)
		case k.Find(now, in.Name) != nil && in.Name != name:
			return docs, refuse(operator.CodeExists, "/name", "there is a "+k.Noun+" with this name already", "take another name")
		case in.Name == name:
			return docs, nil
		}
		return apply(docs, "", now.RenameEdits(k.Name, name, in.Name)...)
	}
	ev, err := e.do()
	if err != nil {
		return nil, err
	}
	c.w.Header().Set("Location", Prefix+"/"+k.Path()+"/"+in.Name)
	return a.showChanged(&ev, k, in.Name)
}
