package config

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
		return "the number " + shorten(n.Value)
	case document.LooksBool:
		return "the boolean " + n.Value
	}
	return fmt.Sprintf("the string %q", shorten(n.Value))
}

// shorten cuts a long value for a message.
func shorten(text string) string {
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
func asObject(n *yaml.Node, o *schema.Object) string {
	if n.Kind != yaml.ScalarNode || o == model().config {
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
		return fmt.Sprintf("write {%s: %s}", required[0].Name, shorten(n.Value))
	case document.LookOf(n) != document.LooksBool:
		return ""
	case on && len(required) == 0:
		return "write {} to have it with its defaults"
	case !on && o.Field("enabled") != nil:
		return "write {enabled: false} to switch it off"
	}
	return ""
}
