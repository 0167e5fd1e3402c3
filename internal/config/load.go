package config

import (
	"fmt"
	"reflect"

	"headgate/internal/config/decode"
	"headgate/internal/config/document"
	"headgate/internal/schema"
)

// MaxFileSize is the largest document that is read.
const MaxFileSize = document.MaxSize

// MaxDocuments is how many documents a configuration may have.
const MaxDocuments = 200

// Document is one file of a configuration, or a text in place of one.
type Document struct {
	// Name is its name in problems and origins.
	Name string
	// Data is its content: YAML or JSON. It must not be modified.
	Data []byte
}

// Documents are the files of a configuration.
type Documents struct {
	// Dir is the folder where relative paths in the documents begin.
	Dir string
	// List are the documents. Each object is defined in one of them.
	List []Document

	before *Loaded              // see Config.Recall
	read   []*document.Document // the documents of the list as parsed by Edit
}

// readAs returns a document of the list as it was read on top of what was loaded before,
// nil if it was not.
func (d *Documents) readAs(i int, before *Loaded) *document.Document {
	if i >= len(d.read) || d.before != before {
		return nil
	}
	if doc := d.read[i]; !doc.Forgot() && doc.Name() == d.List[i].Name && doc.Text() == string(d.List[i].Data) {
		return doc
	}
	return nil
}

// Load reads a configuration from one file of YAML or JSON. Name is the name of the file in
// problems; data is its content and is not kept. All problems are returned at once, in the
// order of the file, including the result of Check; the Config is nil if there are any.
//
// In values, ${VAR} is replaced by an environment variable, ${VAR:-text} by a variable or a
// text if it is unset or empty, and ${file:/path} by the content of a file, without its
// last line end; a relative path begins in the directory of the documents, if that is
// known. $${ is replaced by ${. The regex and the replacement of a rewrite are not
// expanded, because the dollar sign has a meaning in them. An expanded value never changes
// the structure.
//
// Top-level keys that begin with x- are ignored, and can be used for anchors.
func Load(name string, data []byte) (*Config, *Loaded, []Problem) {
	return LoadDocuments(Documents{List: []Document{{Name: name, Data: data}}}, nil)
}

// LoadDocuments is Load for several documents, each of which is a complete file with a
// version. A problem is reported for an object that is defined in two of them, with both
// places. Problems are in the order of the documents.
//
// Before is the previously loaded configuration, or nil. Objects that have not changed are
// the same pointers as there, even if they moved to another document; in plain files,
// objects whose text has not changed are not parsed.
func LoadDocuments(docs Documents, before *Config) (*Config, *Loaded, []Problem) {
	l := loader{expand: decode.NewExpander(docs.Dir)}
	if before != nil {
		l.before = before.loaded
	}
	return l.load(docs)
}

// Loaded is additional information about a configuration: its documents and the position of
// each object. It is immutable.
type Loaded struct {
	config *Config
	docs   []*document.Document
	notes  []Problem

	// is identifies this load, since the previous one, nil for none; renewed are the
	// proxies that differ from it. See ProxiesSince.
	is, since *lineage
	renewed   []string
	special   special
}

// Notes returns what an operator should know about a valid configuration.
func (l *Loaded) Notes() []Problem { return l.notes }

// Report returns an empty report that locates problems in the documents. It is for checks
// after Load, such as plan.Compile.
func (l *Loaded) Report() *schema.Report {
	name := ""
	if len(l.docs) > 0 {
		name = l.docs[0].Name()
	}
	return schema.NewReport(name, l)
}

// Report returns an empty report for checks of the configuration after Load, whose
// problems carry the places of their fields. One that a program made has none.
func (c *Config) Report() *schema.Report {
	if c.loaded == nil {
		return schema.NewReport("", nil)
	}
	return c.loaded.Report()
}

// Position returns line and column, from 1, of the field with this path in its
// document: see document.Document.Position.
func (l *Loaded) Position(path string) (line, column int) {
	if d := l.document(path); d != nil {
		return d.Position(path)
	}
	return 0, 0
}

// File returns the name of the document that holds the field with this path, or
// the nearest object around it.
func (l *Loaded) File(path string) string {
	if d := l.document(path); d != nil {
		return d.Name()
	}
	return ""
}

// MadeFrom reports whether the configuration was made of a document with this name and content.
func (c *Config) MadeFrom(d Document) bool {
	doc := c.loaded.named(d.Name)
	return doc != nil && doc.Text() == string(d.Data)
}

// DocumentContent returns the content of the document with a name that the configuration
// was made of, nil if there is none. It must not be modified. c may be nil.
func (c *Config) DocumentContent(name string) []byte {
	if c == nil {
		return nil
	}
	if doc := c.loaded.named(name); doc != nil {
		return bytesOf(doc.Text())
	}
	return nil
}

// named returns the document with a name, or nil. l may be nil.
func (l *Loaded) named(name string) *document.Document {
	if l != nil {
		for _, d := range l.docs {
			if d.Name() == name {
				return d
			}
		}
	}
	return nil
}

// document returns the document that has a path; the first, if none has it.
func (l *Loaded) document(path string) *document.Document {
	if len(l.docs) == 0 {
		return nil
	}
	for _, d := range l.docs[:len(l.docs)*min(len(path), 1)] {
		if d.Holds(path) {
			return d
		}
	}
	return l.docs[0]
}

// loader is Load with what it reads from outside the file.
type loader struct {
	expand *decode.Expander
	before *Loaded
}

func (l loader) load(docs Documents) (*Config, *Loaded, []Problem) {
	c := New()
	c.Dir = docs.Dir
	out := &Loaded{config: c}
	if n := len(docs.List); n == 0 || n > MaxDocuments {
		return nil, nil, []Problem{{What: fmt.Sprintf("the configuration has %d documents", n), Remedy: fmt.Sprintf("it needs at least one, and at most %d", MaxDocuments)}}
	}
	report := schema.NewReport("", out)
	d := newSectionReader(c, l, len(docs.List) == 1)
	unread := l.read(docs, out, d, report)
	c.expanded, c.secrets, c.loaded = d.values.Expanded, l.expand.Secrets, out
	var before *Config
	if l.before != nil {
		before = l.before.config
	}
	all := c.resolve(before, d.proxies, !d.cloned)
	out.compare(l.before, d.proxies, all)
	out.special = specialOf(c, before)
	if !unread { // else every reference into the document would be a problem
		l.check(c, report)
	}
	if !report.Empty() {
		if unread && len(docs.List) == 1 {
			out = nil
		}
		return nil, out, c.conceal(report.Problems())
	}
	out.notes = c.conceal(report.Notes())
	for _, doc := range out.docs {
		doc.Forget()
	}
	return c, out, nil
}

// read reads every document into the configuration. It reports whether there was
// one of which nothing could be read.
func (l loader) read(docs Documents, out *Loaded, d *sectionReader, report *schema.Report) (unread bool) {
	for i, src := range docs.List {
		doc, p := docs.readAs(i, l.before), (*Problem)(nil)
		if doc == nil {
			doc, p = document.Read(src.Name, src.Data, document.Outline{Section: isSection, Before: l.before.named(src.Name)})
		}
		if f := d.values.Foreign(src.Name, src.Data, doc); f != nil {
			p = f
		}
		if p != nil {
			report.Add(*p)
			unread = true
			continue
		}
		out.docs = append(out.docs, doc)
		report.SetFile(src.Name)
		d.whole(doc, report.Root())
	}
	report.SetFile("")
	return unread
}

// check validates the objects together. Unchanged proxies are not validated again if
// nothing that proxies refer to has changed.
func (l loader) check(c *Config, report *schema.Report) {
	ch := newChecker(c, report)
	if l.before != nil && len(l.before.notes) < schema.MaxNotes && sameAround(l.before.config, c) {
		ch.carried = true
		for _, name := range c.loaded.renewed {
			if c.Proxies[name] != nil {
				ch.renewed = append(ch.renewed, name)
			}
		}
		for _, n := range l.before.notes {
			if p := proxyOf(c, n.Field); p != nil && l.before.config.Proxies[p.Name] == p {
				n.File = ""
				n.Line, n.Column = 0, 0
				report.AddNote(n)
			}
		}
	}
	ch.checkKinds()
}

// proxyOf returns the proxy of a path, or nil.
func proxyOf(c *Config, path string) *Proxy {
	first, rest := document.CutStep(path)
	if first.Name != "proxies" || rest == "" {
		return nil
	}
	second, _ := document.CutStep(rest)
	return c.Proxies[second.Name]
}

// sameAround reports whether two configurations have the same objects but for
// their proxies. Where they are used is no object: it is set after a load.
func sameAround(a, b *Config) bool {
	x, y := *a, *b
	x.Proxies, y.Proxies = nil, nil
	x.Dir, y.Dir = "", ""
	x.expanded, y.expanded, x.loaded, y.loaded = nil, nil, nil, nil
	x.secrets, y.secrets = nil, nil
	x.node, y.node, x.several, y.several, x.withheld, y.withheld = "", "", false, false, nil, nil
	x.documents, y.documents, x.found, y.found = nil, nil, nil, nil
	return reflect.DeepEqual(x, y)
}

// isSection reports whether a key of the outermost object holds objects by name.
func isSection(key string) bool {
	k := KindOf(key)
	return k != nil && !k.Single
}
