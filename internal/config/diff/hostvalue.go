package diff

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"headgate/internal/accesslog"
	"headgate/internal/config"
	"headgate/internal/schema"
)

// HostValue is a value that accesses something of the machine: a file, a socket, a variable
// of the process, a command. Setting it needs more rights than changing the object.
type HostValue struct {
	// Path is the path of the field: "proxies.shop.routes[0].servers[0].url".
	Path string
	// Text is the value in the document, and Value the value after its variables are replaced,
	// which may be a secret.
	Text, Value string
	// Disk is whether it can only be set by editing the file.
	Disk bool
	// Kind and Name are the kind and name of the object.
	Kind, Name string

	field  string
	local  bool // marked as such
	socket bool
}

// Use is what a value makes headgate do on the machine.
type Use string

// The uses of values that have an effect only on the machine on which they were set: values of
// another machine could run programs, or send the contents of a file to clients.
const (
	Runs    Use = "command"            // a program is run
	Serves  Use = "files"              // the files of a folder are sent to clients
	Page    Use = "page"               // a file is sent to clients
	Logo    Use = "logo"               // an image is sent to clients
	Logs    Use = "log"                // a file is written
	Socket  Use = "socket"             // clients reach a Unix socket
	Reads   Use = "${file:…}"          // a file becomes a part of a value
	Reveals Use = "variable"           // a variable of headgate itself becomes a part of a value
	Proves  Use = "client certificate" // headgate authenticates to servers with a key
)

// Local returns the use of a value that has an effect only where it was set and on machines that
// allow it; "" for all other values.
func (v *HostValue) Local() Use {
	switch {
	case strings.Contains(v.Text, "${file:"):
		return Reads
	case strings.Contains(strings.ToUpper(v.Text), "${HEADGATE_"):
		return Reveals
	case v.Disk:
		return Runs
	case v.socket && v.Kind != "discovery": // headgate only lists the containers of an engine
		return Socket
	case !v.local:
		return ""
	case strings.HasSuffix(v.field, ".Path"):
		if v.Value == accesslog.Stdout || v.Value == accesslog.Stderr {
			return ""
		}
		return Logs
	case strings.HasSuffix(v.field, ".File"):
		return Page
	case strings.HasSuffix(v.field, ".Logo"):
		return Logo
	case strings.HasSuffix(v.field, ".ClientCertFile"), strings.HasSuffix(v.field, ".ClientKeyFile"):
		return Proves
	}
	return Serves
}

// Key identifies the use of a value: values with the same key access the same thing in the same way.
// The contents of a file go where its field sends them, so the key then includes the field.
func (v *HostValue) Key() string {
	use := v.Local()
	if use == Reads || use == Reveals {
		return string(use) + " " + v.field + " " + v.Text
	}
	return string(use) + " " + v.Text
}

// HostIndex contains the host values of objects. It is immutable; nil is empty.
type HostIndex struct{ of map[config.Named][]HostValue }

// Values returns all host values of a configuration, in the order of its kinds and names,
// and an index of them. Objects that are in the previous index are not searched again.
func (x *HostIndex) Values(c *config.Config) (all []HostValue, next *HostIndex) {
	next = &HostIndex{map[config.Named][]HostValue{}}
	for _, k := range config.Kinds() {
		if k.Single {
			all = append(all, hostValues(c, k, nil)...)
			continue
		}
		for _, name := range k.Names(c) {
			o := k.Find(c, name)
			found, known := []HostValue(nil), false
			if x != nil {
				found, known = x.of[o]
			}
			if !known {
				found = hostValues(c, k, []string{name})
			}
			next.of[o] = found
			all = append(all, found...)
		}
	}
	return all, next
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
	w := hostWalk{config: c, kind: k.Name}
	if k.Single {
		w.object(k.Schema(), reflect.ValueOf(c).Elem().FieldByIndex(config.Describe().Field(k.Name).Index), k.Name)
		return w.found
	}
	for _, name := range names {
		if o := k.Find(c, name); o != nil {
			w.name = name
			w.object(k.Schema(), reflect.ValueOf(o).Elem(), schema.JoinPath(k.Name, name))
		}
	}
	return w.found
}

// hostWalk looks for host values.
type hostWalk struct {
	config     *config.Config
	kind, name string // of the object
	found      []HostValue
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
	value := fmt.Sprint(v.Interface())
	text, variable := w.config.Written(path)
	if !variable {
		text = value
	}
	socket := isSocket(text)
	if variable || f.Host != "" && text != "" && text != f.Default || socket {
		w.found = append(w.found, HostValue{
			Path: path, Text: text, Value: value, Disk: f.Host == schema.HostDisk, Kind: w.kind, Name: w.name,
			field: f.Owner.String() + "." + f.GoName + w.choice, local: f.Local, socket: socket || isSocket(value),
		})
	}
}

// isSocket reports whether a text is a URL of a Unix socket, whose scheme may be in
// either case: "unix:", "unix+h2c:" and "fcgi+unix:".
func isSocket(text string) bool {
	scheme, _, found := strings.Cut(text, ":")
	return found && slices.Contains(strings.Split(strings.ToLower(scheme), "+"), "unix")
}
