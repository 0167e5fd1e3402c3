package config

import (
	"fmt"
	"unsafe"

	"headgate/internal/config/document"
	"headgate/internal/schema"
	"headgate/internal/setting/ipset"
)

// Edit returns the documents after all edits, made one after the other. An edit is made in
// the document that has the object; a new object goes to the document that the edit names,
// else the first. The problem describes which edit cannot be made, and why. The result is
// validated by LoadDocuments.
func (d Documents) Edit(edits ...document.Edit) (Documents, *Problem) {
	read := make([]*document.Document, len(d.List))
	for i, doc := range d.List {
		if read[i] = d.readAs(i, d.before); read[i] != nil {
			continue
		}
		if before := d.before.named(doc.Name); before != nil && before.Text() == string(doc.Data) {
			read[i] = before
			continue
		}
		var p *Problem
		if read[i], p = document.Read(doc.Name, doc.Data, document.Outline{Section: isSection, Before: d.before.named(doc.Name)}); p != nil {
			return d, p
		}
	}
	changed := make([]bool, len(read))
	for _, e := range edits {
		i, p := choose(read, e)
		if p != nil {
			return d, p
		}
		after, p := read[i].Edit(e, isSection)
		if p != nil {
			return d, p
		}
		read[i], changed[i] = after, true
	}
	out := Documents{Dir: d.Dir, before: d.before, List: make([]Document, len(d.List)), read: read}
	for i, doc := range d.List {
		if out.List[i] = doc; changed[i] {
			out.List[i].Data = bytesOf(read[i].Text())
		}
	}
	return out, nil
}

// bytesOf returns the bytes of a text without a copy, of which there would be one for each
// edit of a large file. Data of documents is never written to.
func bytesOf(text string) []byte { return unsafe.Slice(unsafe.StringData(text), len(text)) }

// Recall returns documents with their parsed form in c, so that edits only parse what has
// changed.
func (c *Config) Recall(docs Documents) Documents {
	docs.before = c.loaded
	return docs
}

// choose returns the index of the document that an edit goes to.
func choose(read []*document.Document, e document.Edit) (int, *Problem) {
	for i, doc := range read {
		if e.Path != "" && doc.Holds(e.Path) {
			return i, nil
		}
	}
	for i, doc := range read {
		if e.Document == "" || doc.Name() == e.Document {
			return i, nil
		}
	}
	return 0, &Problem{Field: e.Path, What: fmt.Sprintf("there is no document %q", e.Document), Remedy: "name one of the configuration's"}
}

// RenameEdits returns the edits that rename an object, in its document and in all
// references to it.
func (c *Config) RenameEdits(kind, name, to string) []document.Edit {
	value := fmt.Appendf(nil, "%q", to)
	if kind == "lists" {
		value = fmt.Appendf(nil, "%q", ipset.ListReference(to))
	}
	edits := []document.Edit{}
	for _, u := range c.Users(kind, name) {
		edits = append(edits, document.Edit{Op: document.Set, Path: u.Path, Value: value})
	}
	return append(edits, document.Edit{Op: document.Rename, Path: schema.JoinPath(kind, name), To: to})
}
