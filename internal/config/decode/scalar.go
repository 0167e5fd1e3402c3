package decode

import (
	"fmt"
	"net/netip"
	"reflect"
	"strings"

	"go.yaml.in/yaml/v4"

	"headgate/internal/config/document"
	"headgate/internal/schema"
	"headgate/internal/setting/unit"
)

// scalar reads a plain value of type t, which is f's or that of its elements.
func (d *Decoder) scalar(n *yaml.Node, f *schema.Field, t *schema.Type, v reflect.Value, at schema.Place) {
	value := document.Resolved(n)
	if value.Kind != yaml.ScalarNode || !document.PlainTag(value) {
		d.broken(n, at, fmt.Sprintf("found %s, expected %s", found(value), expected(t)), "")
		return
	}
	text := value.Value
	if !f.NoExpand && !d.Labels && strings.Contains(text, "${") {
		expanded, fault := d.Expander.Text(text)
		if fault != nil {
			d.problem(n, at, fault.What, fault.Remedy)
			return
		}
		if d.Expanded == nil {
			d.Expanded = map[string]string{}
		}
		d.Expanded[at.Path()] = text
		text = expanded
	} else if fault := wrongType(value, t); fault != nil {
		d.problem(n, at, fault.What, fault.Remedy)
		return
	}
	if t.Kind == schema.Bool {
		text = strings.ToLower(text)
	}
	if fault := setScalar(v, t, text); fault != nil {
		d.problem(n, at, fault.What, fault.Remedy)
		return
	}
	if t == f.Type {
		d.check(n, f, v, at)
	}
}

// check reports a value that is outside the bounds of its field.
func (d *Decoder) check(n *yaml.Node, f *schema.Field, v reflect.Value, at schema.Place) {
	if what, remedy := f.Check(v); what != "" {
		d.problem(n, at, what, remedy)
	}
}

// setScalar sets v from text.
func setScalar(v reflect.Value, t *schema.Type, text string) *fault {
	if t.Go == reflect.TypeFor[netip.AddrPort]() {
		address, f := parseAddress(text)
		v.Set(reflect.ValueOf(address))
		return f
	}
	if t.Go == reflect.TypeFor[unit.AddressRange]() {
		addresses, f := parseAddressRange(text)
		v.Set(reflect.ValueOf(addresses))
		return f
	}
	if err := t.SetText(v, text); err != nil {
		return &fault{What: err.Error()}
	}
	return nil
}

// found describes the value at n, for a message.
func found(n *yaml.Node) string {
	switch {
	case !document.PlainTag(n):
		return fmt.Sprintf("the tag %s", n.Tag)
	case n.Kind == yaml.MappingNode:
		return "an object"
	case n.Kind == yaml.SequenceNode:
		return "a list"
	case document.IsNull(n):
		return "nothing"
	}
	switch document.LookOf(n) {
	case document.LooksNumber:
		return "the number " + Shorten(n.Value)
	case document.LooksBool:
		return "the boolean " + n.Value
	}
	return fmt.Sprintf("the string %q", Shorten(n.Value))
}

// Shorten cuts a long value for a message.
func Shorten(text string) string {
	const longest = 60
	if len(text) <= longest {
		return text
	}
	cut := longest
	for cut > 0 && text[cut]&0xc0 == 0x80 {
		cut--
	}
	return text[:cut] + "…"
}

// expected names what a plain value of type t looks like.
func expected(t *schema.Type) string {
	switch t.Kind {
	case schema.Bool:
		return "true or false"
	case schema.Int:
		return "a whole number"
	case schema.Text:
		return "a string"
	}
	switch t.Go {
	case reflect.TypeFor[unit.Duration]():
		return `a duration like "30s"`
	case reflect.TypeFor[unit.Size]():
		return `a size like "10MiB"`
	case reflect.TypeFor[unit.Percent]():
		return `a percentage like "10%"`
	case reflect.TypeFor[unit.Switch]():
		return "true or false"
	case reflect.TypeFor[netip.AddrPort]():
		return `an address like "0.0.0.0:8080"`
	case reflect.TypeFor[unit.AddressRange]():
		return `an address like "0.0.0.0:8080" or "0.0.0.0:5000-5100"`
	}
	return "a string"
}

// wrongType reports a scalar that does not have the form of type t.
func wrongType(n *yaml.Node, t *schema.Type) *fault {
	switch l := document.LookOf(n); {
	case t.Kind == schema.Text && l != document.LooksText:
		return wrong(fmt.Sprintf("found %s, expected a string", found(n)), fmt.Sprintf("put it in quotes: %q", n.Value))
	case t.Kind == schema.Bool && l != document.LooksBool:
		remedy := ""
		switch strings.ToLower(n.Value) {
		case "yes", "on", "true", "1", "y":
			remedy = "write true"
		case "no", "off", "false", "0", "n":
			remedy = "write false"
		}
		return wrong(fmt.Sprintf("found %s, expected true or false", found(n)), remedy)
	case t.Kind == schema.Int && l != document.LooksNumber:
		return wrong(fmt.Sprintf("found %s, expected a whole number", found(n)), "")
	case t.Kind == schema.Scalar && l == document.LooksBool && t.Go != reflect.TypeFor[unit.Switch]():
		return wrong(fmt.Sprintf("found %s, expected %s", found(n), expected(t)), "")
	}
	return nil
}

// asObject returns how to write a scalar as the object that is expected here, if it is
// clear: as a switch, or as the single required field.
func (d *Decoder) asObject(n *yaml.Node, o *schema.Object) string {
	if n.Kind != yaml.ScalarNode || o == d.Root {
		return ""
	}
	var required []*schema.Field
	for _, f := range o.Fields {
		if f.Required {
			required = append(required, f)
		}
	}
	on := strings.EqualFold(n.Value, "true")
	switch {
	case document.LookOf(n) != document.LooksBool && len(required) == 1 && required[0].Type.Elem == nil && required[0].Type.Object == nil:
		return fmt.Sprintf("write {%s: %s}", required[0].Name, Shorten(n.Value))
	case document.LookOf(n) != document.LooksBool:
		return ""
	case on && len(required) == 0:
		return "write {} to use its defaults"
	case !on && o.Field("enabled") != nil:
		return "write {enabled: false} to switch it off"
	}
	return ""
}
