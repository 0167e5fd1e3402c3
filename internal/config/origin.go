package config

import "fmt"

// Via is the way by which an object came into a configuration.
type Via string

// The ways.
const (
	// ViaDocument is a document: a file, or one that the API writes.
	ViaDocument Via = "document"
	// ViaDocker is a container's labels.
	ViaDocker Via = "docker"
	// ViaHTTP is a document that was downloaded.
	ViaHTTP Via = "http"
	// ViaAgent is a container's labels on another machine, which an agent reports.
	ViaAgent Via = "agent"
)

// Origin is where an object comes from.
type Origin struct {
	// Via is the way by which it came.
	Via Via `json:"via"`
	// Document is the name of the document that defines it, or its URL without the query.
	Document string `json:"document,omitempty"`
	// Line is the line of its name, from 1.
	Line int `json:"line,omitempty"`
	// Column is the column of its name, from 1.
	Column int `json:"column,omitempty"`
	// Provider is the entry of discovery that found it: "local".
	Provider string `json:"provider,omitempty"`
	// Node is the node of that provider, where several share the configuration: no other
	// node has the object.
	Node string `json:"node,omitempty"`
	// Container is the name of the container whose labels define it.
	Container string `json:"container,omitempty"`
	// Label is the label that defines it.
	Label string `json:"label,omitempty"`
}

// String returns the origin in the form of a problem's place: "shop.yaml:12:3", or
// "container shop, label headgate.host".
func (o Origin) String() string {
	if o.Node != "" {
		on := o
		on.Node = ""
		return on.String() + ", only on " + o.Node
	}
	switch {
	case o.Container != "" && o.Label != "":
		return "container " + o.Container + ", label " + o.Label
	case o.Container != "":
		return "container " + o.Container
	case o.Line > 0:
		return fmt.Sprintf("%s:%d:%d", o.Document, o.Line, o.Column)
	}
	return o.Document
}

// Origin returns where the object of a kind with this name comes from; name is ""
// for the object of a single kind. It returns false for an object that was made by
// a program, or that no document mentions.
func (c *Config) Origin(kind, name string) (Origin, bool) {
	if c.loaded == nil {
		return Origin{}, false
	}
	if d := c.found[[2]string{kind, name}]; d != nil {
		o := d.Discovered.Origin
		if c.several {
			o.Node = c.node
		}
		return o, true
	}
	section, entry := kind, name
	if name == "" {
		section, entry = "", kind
	}
	for _, d := range c.loaded.docs {
		if e := d.Entry(section, entry); e != nil {
			return Origin{Via: ViaDocument, Document: d.Name(), Line: e.Line, Column: e.Column}, true
		}
	}
	return Origin{}, false
}
