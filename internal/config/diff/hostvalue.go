package diff

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"headgate/internal/config"
	"headgate/internal/schema"
)

// HostValue is a value that accesses something of the machine: a file, a socket, a variable
// of the process, a command. Setting it needs more rights than changing the object.
type HostValue struct {
	// Path is the path of the field: "proxies.shop.routes[0].servers[0].url".
	Path string
	// Text is the value in the document.
	Text string
	// Disk is whether it can only be set by editing the file.
	Disk bool

	field string
}

// NewHostValues returns the host values in after that are not in before. Objects that are
// unchanged are skipped, and a value that only moved within the objects of its kind is not
// new, unless the object around it changed its purpose.
func NewHostValues(before, after *config.Config) []HostValue {
	var out []HostValue
	for _, k := range config.Kinds() {
		var names []string
		if !k.Single {
			k.Changed(before, after, func(name string, _, _ config.Named) { names = append(names, name) })
			slices.Sort(names)
		}
		had := map[[2]string]int{}
		for _, v := range hostValues(before, k, names) {
			had[[2]string{v.field, v.Text}]++
		}
		for _, v := range hostValues(after, k, names) {
			key := [2]string{v.field, v.Text}
			if had[key]--; had[key] < 0 {
				out = append(out, v)
			}
		}
	}
	return out
}

// hostValues returns those of the objects of a kind with these names that exist.
func hostValues(c *config.Config, k *config.Kind, names []string) []HostValue {
	w := hostWalk{config: c}
	if k.Single {
		w.object(k.Schema(), reflect.ValueOf(c).Elem().FieldByIndex(config.Describe().Field(k.Name).Index), k.Name)
		return w.found
	}
	for _, name := range names {
		if o := k.Find(c, name); o != nil {
			w.object(k.Schema(), reflect.ValueOf(o).Elem(), schema.JoinPath(k.Name, name))
		}
	}
	return w.found
}

// hostWalk looks for host values.
type hostWalk struct {
	config *config.Config
	found  []HostValue
	// choice is the discriminator of the current object, such as the direction of a header
	// rule: a value for requests must not become one for responses.
	choice string
}

func (w *hostWalk) object(o *schema.Object, v reflect.Value, path string) {
	outer := w.choice
	defer func() { w.choice = outer }()
	w.choice = ""
	for _, f := range o.Fields {
		if f.Required && len(f.Enum) > 0 {
			w.choice += fmt.Sprintf(" %v", v.FieldByIndex(f.Index))
		}
	}
	for _, f := range o.Fields {
		w.value(f, f.Type, v.FieldByIndex(f.Index), schema.JoinPath(path, f.Name))
	}
}

func (w *hostWalk) value(f *schema.Field, t *schema.Type, v reflect.Value, path string) {
	if v.Kind() == reflect.Pointer {
		if v.IsNil() {
			return
		}
		v = v.Elem()
	}
	switch t.Kind {
	case schema.Struct:
		w.object(t.Object, v, path)
	case schema.List:
		for i := range v.Len() {
			w.value(f, t.Elem, v.Index(i), fmt.Sprintf("%s[%d]", path, i))
		}
	case schema.Map:
		for _, key := range v.MapKeys() {
			w.value(f, t.Elem, v.MapIndex(key), schema.JoinPath(path, key.String()))
		}
	default:
		w.plain(f, v, path)
	}
}

func (w *hostWalk) plain(f *schema.Field, v reflect.Value, path string) {
	text, variable := w.config.Written(path)
	if !variable {
		text = fmt.Sprint(v.Interface())
	}
	if variable || f.Host != "" && text != "" && text != f.Default || isSocket(text) {
		w.found = append(w.found, HostValue{Path: path, Text: text, Disk: f.Host == schema.HostDisk, field: f.Owner.String() + "." + f.GoName + w.choice})
	}
}

// isSocket reports whether a text is a URL of a Unix socket, whose scheme may be in
// either case.
func isSocket(text string) bool {
	scheme, _, _ := strings.Cut(text, ":")
	scheme, _, _ = strings.Cut(scheme, "+")
	return len(scheme) < len(text) && strings.EqualFold(scheme, "unix")
}
