package api

import (
	"encoding/json"
	"errors"
	"mime"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"headgate/internal/config"
	"headgate/internal/config/diff"
	"headgate/internal/config/document"
	"headgate/internal/control"
	"headgate/internal/control/review"
	"headgate/internal/operator"
	"headgate/internal/plan/whatif"
	"headgate/internal/schema"
)

// configRows are the operations on the whole configuration.
func (a *API) configRows() []row {
	const get, post, put = http.MethodGet, http.MethodPost, http.MethodPut
	rows := []row{
		{method: get, path: "/config", access: admin, out: of[configBody](), handle: a.config,
			about: "Returns the configuration files as they are, with their secrets. With Accept: application/yaml, returns the text of one."},
		{method: put, path: "/config", access: admin, in: of[configInput](), out: of[changeBody](), match: true, write: true, maxBody: maxConfig, handle: withBody(a.putConfig),
			about: "Replaces the texts of configuration files in one change. If-Match is the ETag of the configuration."},
		{method: get, path: "/config/schema", access: viewer, free: true, handle: a.configSchema,
			about: "Returns the JSON Schema of the configuration: every field with its help, default and limits."},
		{method: post, path: "/config/edits", access: editor, in: of[editsInput](), out: of[changeBody](), match: true, write: true, maxBody: maxConfig, handle: withBody(a.edits),
			about: "Applies several edits in one change. If-Match is the ETag of the configuration."},
		{method: post, path: "/config/plan", access: editor, in: of[planInput](), out: of[changeBody](), maxBody: maxConfig, dry: true, may: []int{http.StatusConflict}, handle: withBody(a.planEdits),
			about: "Checks edits, or new texts of configuration files, and returns what they would change. Nothing is changed, so the files need not be writable. Only admins can send texts of files."},
		{method: post, path: "/config/validate", access: admin, in: of[configInput](), out: of[validation](), maxBody: maxConfig, dry: true, handle: withBody(a.validate),
			about: "Lists all problems of configuration files without applying them."},
	}
	rows = append(append(rows, a.revisionRows()...), a.seriesRows()...)
	for i := range rows {
		r := &rows[i]
		if r.area == "" {
			r.area = areaConfig
		}
		if r.write {
			r.query, r.dry = append(r.query, changeQuery...), true
		}
	}
	return rows
}

// configSchema gives what forms and editors are made from.
func (a *API) configSchema(*call) (any, error) { return json.RawMessage(config.JSONSchema()), nil }

// maxConfig bounds a body with whole documents.
const maxConfig = int64(document.MaxSize) + maxBody

// configBody is the configuration.
type configBody struct {
	// ETag is that of the configuration: all documents.
	ETag string `json:"etag"`
	// Folder is the directory of the configuration files, in which others can be created.
	// It is absent if headgate serves a single file.
	Folder string `json:"folder,omitempty"`
	// Documents are the documents.
	Documents []documentBody `json:"documents"`
}

func (c configBody) entityTag() string { return c.ETag }

// documentBody is one document.
type documentBody struct {
	// Name is the name of the file.
	Name string `json:"name" required:"true" max:"4096"`
	// Text is its content: YAML or JSON.
	Text string `json:"text" required:"true" max:"8388608"`
	// ReadOnly is why it cannot be written, absent if it can.
	ReadOnly string `json:"read_only,omitempty" readonly:"true"`
}

// configInput are documents.
type configInput struct {
	// Documents are the documents that get another text. The name may be left to the last
	// part of its path; those that are not named stay. Where the configuration is a folder,
	// one of another name is made there.
	Documents []documentBody `json:"documents" required:"true" min:"1" max:"200"`
}

// Change is the result of a change, for programs of this module that print its plan.
type Change = changeBody

// changeBody is the result of a change.
type changeBody struct {
	// Revision is that of the change, "" of a dry run.
	Revision string `json:"revision,omitempty"`
	// ETag is that of the configuration after it, "" of a dry run.
	ETag string `json:"etag,omitempty"`
	// DryRun is whether nothing was changed.
	DryRun bool `json:"dry_run,omitempty"`
	// Until is when the configuration before comes back, unless the change is confirmed.
	Until time.Time `json:"until,omitzero"`
	// Changes are the objects that are not the same, with their fields.
	Changes []diff.ObjectChange `json:"changes"`
	// Plan describes the change, with warnings and what it affects.
	Plan *review.Review `json:"plan,omitempty"`
	// WhatIf is the effect of the change on recent requests. It is set for dry runs and
	// plans only, if recent requests are recorded.
	WhatIf *whatif.Result `json:"what_if,omitempty"`
	// Notes are settings that work but are not recommended, and the machines of unchecked.
	Notes []schema.Problem `json:"notes,omitempty"`
	// Unchecked are other machines that may not be able to serve the change: they did not
	// respond in time, or also reject the active configuration.
	Unchecked []schema.Problem `json:"unchecked,omitempty"`
}

func (c changeBody) entityTag() string { return c.ETag }

// changed describes an applied or planned change.
func (a *API) changed(c *call, ev control.Event) changeBody {
	b := changeBody{DryRun: c.dryRun, Changes: ev.Difference.Objects, Plan: ev.Review, WhatIf: ev.WhatIf, Notes: ev.Notes, Unchecked: ev.Unchecked}
	if c.dryRun {
		return b
	}
	b.Revision, b.ETag = ev.Revision, a.Control.ETag()
	if p := a.Control.Pending(); p != nil && p.Revision == ev.Revision {
		b.Until = p.Until
	}
	return b
}

// config gives the documents.
func (a *API) config(c *call) (any, error) {
	if a.Control == nil {
		return nil, refuse("unavailable", "", "no configuration is active yet", "")
	}
	docs, tag, err := a.Control.Documents()
	if err != nil {
		return nil, refuse("unavailable", "", err.Error(), "")
	}
	b := configBody{ETag: tag, Folder: a.Control.Folder(docs), Documents: []documentBody{}}
	for _, d := range docs.List {
		one := documentBody{Name: d.Name, Text: string(d.Data)}
		if err := a.Control.Writable(d.Name); err != nil {
			one.ReadOnly = err.Error()
		}
		b.Documents = append(b.Documents, one)
	}
	if wantsYAML(c.rq) && len(b.Documents) == 1 {
		c.w.Header().Set("Content-Type", "application/yaml")
		return plainText{b.Documents[0].Text, tag}, nil
	}
	return b, nil
}

// plainText is an answer that is no JSON.
type plainText struct{ text, etag string }

func (p plainText) entityTag() string { return p.etag }

func wantsYAML(rq *http.Request) bool {
	kind, _, err := mime.ParseMediaType(rq.Header.Get("Accept"))
	return err == nil && (kind == "application/yaml" || kind == "text/yaml")
}

// replaced returns documents with other texts in them, and with new ones where the
// configuration is a folder.
func (a *API) replaced(docs config.Documents, texts []documentBody) (config.Documents, error) {
	out := config.Documents{Dir: docs.Dir, List: slices.Clone(docs.List)}
	for i, d := range texts {
		var name string
		var err error
		if out, name, err = a.withDocument(out, d.Name); err != nil {
			return docs, refuse("invalid", "/documents/"+itoa(i)+"/name", err.Error(), "")
		}
		at := slices.IndexFunc(out.List, func(o config.Document) bool { return o.Name == name })
		out.List[at].Data = []byte(d.Text)
	}
	return out, nil
}

// withDocument returns documents with one that is called name, by its path or the last
// part of it, and its path. It is made where it is not there.
func (a *API) withDocument(docs config.Documents, name string) (config.Documents, string, error) {
	for _, d := range docs.List {
		if d.Name == name || filepath.Base(d.Name) == name {
			return docs, d.Name, nil
		}
	}
	return a.Control.NewDocument(docs, name)
}

// putConfig replaces texts of documents.
func (a *API) putConfig(c *call, in *configInput) (any, error) {
	e := &edit{call: c, make: func(docs config.Documents, _ *config.Config) (config.Documents, error) {
		return a.replaced(docs, in.Documents)
	}}
	return e.apply()
}

// apply makes the change and returns its description.
func (e *edit) apply() (any, error) {
	ev, err := e.do()
	if err != nil {
		return nil, err
	}
	return e.call.api.changed(e.call, ev), nil
}

// editsInput are edits.
type editsInput struct {
	// Edits are made one after the other, all or none.
	Edits []editBody `json:"edits" required:"true" min:"1" max:"1000"`
}

// editBody is one edit of a document.
type editBody struct {
	// Op is what is done: set gives a field or object a value, remove takes it out, and
	// rename gives an object another name, wherever it is named.
	Op string `json:"op" required:"true" enum:"set,remove,rename"`
	// Path is where: `proxies.shop.routes[0].path`. The index after the last element of a
	// list appends one.
	Path string `json:"path" required:"true" max:"1024"`
	// Value is the value of a set, as JSON. Fields that are null are absent.
	Value json.RawMessage `json:"value,omitempty"`
	// To is the new name of a rename.
	To string `json:"to,omitempty" max:"128"`
	// Document is the document that a new object goes to; without it the first. Where the
	// configuration is a folder, one that is not there is made.
	Document string `json:"document,omitempty" max:"4096"`
}

// editing returns the change that edits make.
func (c *call) editing(in *editsInput) *edit {
	e := &edit{call: c}
	e.make = func(docs config.Documents, now *config.Config) (config.Documents, error) {
		var edits []document.Edit
		for i, b := range in.Edits {
			at := "/edits/" + itoa(i)
			if len(b.Value) > 0 {
				value, err := parse(b.Value)
				if err != nil {
					return docs, err
				}
				if err := e.mayWrite(value, now); err != nil {
					return docs, hostField(at + "/value")
				}
				if hasMask(value) {
					if value, err = unmaskAt(b.Path, value, now, at+"/value"); err != nil {
						return docs, err
					}
					b.Value = jsonOf(value)
				}
			}
			kind, name, isObject := objectAt(b.Path)
			if b.Op == string(document.Rename) && isObject {
				edits = append(edits, now.RenameEdits(kind.Name, name, b.To)...)
				continue
			}
			edit := document.Edit{Op: document.Op(b.Op), Path: b.Path, To: b.To}
			if edit.Op == document.Set {
				edit.Value = b.Value
			}
			if b.Document != "" {
				var err error
				if docs, edit.Document, err = c.api.withDocument(docs, b.Document); err != nil {
					return docs, refuse("invalid", at+"/document", err.Error(), "")
				}
			}
			edits = append(edits, edit)
		}
		return apply(docs, "", edits...)
	}
	return e
}

// objectAt returns the object that a path names, if it names a whole one.
func objectAt(path string) (k *config.Kind, name string, ok bool) {
	section, rest := document.CutStep(path)
	object, more := document.CutStep(rest)
	k = config.KindOf(section.Name)
	return k, object.Name, k != nil && !k.Single && rest != "" && more == "" && object.Index < 0
}

// edits makes edits in one change.
func (a *API) edits(c *call, in *editsInput) (any, error) { return c.editing(in).apply() }

// planInput is what is planned: edits, or documents.
type planInput struct {
	// Edits are made one after the other, all or none.
	Edits []editBody `json:"edits,omitempty" max:"1000"`
	// Documents are the documents that get another text, as in PUT /config.
	Documents []documentBody `json:"documents,omitempty" max:"200"`
}

// planEdits describes what edits or files would change.
func (a *API) planEdits(c *call, in *planInput) (any, error) {
	c.dryRun, c.ifMatch = true, "*"
	e := c.editing(&editsInput{in.Edits})
	switch {
	case (len(in.Edits) == 0) == (len(in.Documents) == 0):
		return nil, refuse("invalid", "/edits", "either edits or documents are wanted", "")
	case len(in.Edits) > 0:
	case !c.who.Role.AtLeast(operator.Admin):
		return nil, refuse(operator.CodeForbidden, "/documents", "texts of documents are taken from admins only", "send edits, or ask an admin")
	default:
		e.make = func(docs config.Documents, _ *config.Config) (config.Documents, error) {
			return a.replaced(docs, in.Documents)
		}
	}
	e.planned = true
	return e.apply()
}

// validation is what a check of documents has found.
type validation struct {
	// Valid is whether this machine, and the others that share the files, can serve them.
	Valid bool `json:"valid"`
	// Problems are the mistakes in the files.
	Problems []schema.Problem `json:"problems,omitempty"`
	// Notes are settings that work but are not recommended, and other machines that did not check the files.
	Notes []schema.Problem `json:"notes,omitempty"`
}

// validate checks documents together with those that are not named.
func (a *API) validate(c *call, in *configInput) (any, error) {
	if a.Control == nil {
		return nil, refuse("unavailable", "", "no configuration is active yet", "")
	}
	docs, _, err := a.Control.Documents()
	if err != nil {
		return nil, refuse("unavailable", "", err.Error(), "")
	}
	if docs, err = a.replaced(docs, in.Documents); err != nil {
		return nil, err
	}
	ev, err := a.Control.DryRun(control.Cause{Via: control.Via(c.who.Via)}, docs)
	if err == nil {
		return validation{Valid: true, Notes: ev.Notes}, nil
	}
	var refused *control.Refused
	if errors.As(err, &refused) && len(refused.Problems) > 0 {
		return validation{Problems: refused.Problems[:min(len(refused.Problems), maxMistakes)], Notes: ev.Notes}, nil
	}
	return validation{Problems: []schema.Problem{{What: strings.TrimSpace(err.Error())}}}, nil
}
