package config

import (
	"reflect"

	"headgate/internal/schema"
)

// Load reads a configuration file: YAML, or JSON, which is YAML. Name is how
// the file is called in problems; data is its content and is not kept. All
// problems come back at once, in the order of the file, with the result of
// Check among them; the Config is nil when there are any. The Document is nil
// only when the file could not be parsed.
//
// In values, ${VAR} stands for an environment variable, ${VAR:-text} for the
// same with a text to use when it is unset or empty, and ${file:/path} for what
// a file holds, without its last line end. $${ stands for ${. The regex and the
// replacement of a rewrite have a use of their own for the dollar sign and are
// taken as they are. What is put in can be part of a value; it never changes
// the structure.
//
// Keys of the outermost object that begin with x- are ignored: a place for
// anchors.
func Load(name string, data []byte) (*Config, *Document, []Problem) {
	return loader{expand: newExpander()}.load(name, data)
}

// loader is Load with what it reads from outside the file.
type loader struct{ expand *expander }

func (l loader) load(name string, data []byte) (*Config, *Document, []Problem) {
	root, p := read(name, data)
	if p != nil {
		return nil, nil, []Problem{*p}
	}
	doc := &Document{name: name, root: root}
	report := doc.Report()
	c := New()
	c.Version = 0
	d := decoder{expand: l.expand, model: model().config}
	d.object(root, d.model, reflect.ValueOf(c).Elem(), report.Root())
	c.expanded = d.expanded
	c.name()
	checkConfig(c, report)
	if !report.Empty() {
		return nil, doc, report.Problems()
	}
	doc.notes = report.Notes()
	return c, doc, nil
}

// Check tells every problem of a configuration that Load's reading of single
// values cannot: what does not fit together, and what no bound can say. Load
// has called it already; it is for a Config that was put together by a program.
// Routes of different proxies that want the same requests are found when the
// plan is compiled.
func Check(c *Config, report *schema.Report) {
	checkConfig(c, report)
}
